"""The SQL function `headway.submit`: jobs from any language, in the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row

from headway.executors.call.functions import Options
from headway.model.retry import Retry
from headway.model.worker import FunctionInfo
from headway.options import base_of_call, build
from headway.transactional import submit_in
from tests.flow.programs import (
    Ears,
    Place,
    by_psycopg,
    job,
    postgres_place,
)


@pytest.fixture
async def on_postgres(migrated: str) -> AsyncIterator[Place]:
    async with postgres_place(migrated, by_psycopg) as place:
        yield place


async def test_the_sql_function_stores_a_job_as_the_library_does(on_postgres: Place) -> None:
    ears = await Ears(on_postgres.store).open()
    with psycopg.connect(on_postgres.url) as connection:
        row = connection.execute("""select headway.submit('mail.welcome', kwargs => '{"user_id": 42}')""").fetchone()
        assert row is not None
        assert await on_postgres.get(row[0]) is None
        connection.commit()
    await ears.until("default")
    twin = job("mail.welcome", payload='{"function":"mail.welcome","kwargs":{"user_id":42}}')
    await on_postgres.store.submit([twin])
    made, library = await on_postgres.there(row[0]), await on_postgres.there(twin.id)
    assert json.loads(made.payload) == json.loads(library.payload)
    assert made.run_at == made.desired_at == made.created_at
    ours = {"id": None, "payload": None, "run_at": None, "desired_at": None, "created_at": None}
    assert msgspec.structs.asdict(made) | ours == msgspec.structs.asdict(library) | ours
    assert [claim.id for claim in await on_postgres.claim()] == [made.id, library.id]
    with psycopg.connect(on_postgres.url) as connection:
        lengths = connection.execute("select distinct octet_length(digest) from headway.job").fetchall()
    assert lengths == [(16,)]


async def test_every_column_the_library_sets_is_set_by_the_sql_function(on_postgres: Place) -> None:
    with psycopg.connect(on_postgres.url, row_factory=dict_row) as connection:
        connection.execute("select headway.submit('f')")
        submit_in(connection, [job("f", payload='{"function" : "f", "kwargs" : {}}')])
        one, other = connection.execute("select * from headway.job order by id").fetchall()
    assert {name for name in one if one[name] != other[name]} <= {"id", "digest", "payload"}


async def test_what_a_worker_has_announced_holds_where_nothing_is_given(on_postgres: Place) -> None:
    options = Options(
        queue="mail", priority=7, timeout=3.0, retry=Retry(max_attempts=4, wait=2.0), key="welcome", tags=("a", "b"),
        expires=60.0, retain=5.0,
    )  # fmt: skip
    known = FunctionInfo(name="f", queue="mail", defaults=options.given(), parameters={}, code_version="v7")
    await on_postgres.store.announce([known])
    with psycopg.connect(on_postgres.url, row_factory=dict_row) as connection:
        connection.execute("select headway.submit('f', created_by => 'one')")
        connection.execute(
            "select headway.submit('f', queue => 'slow', priority => 1, timeout => 9, tags => '{c}',"
            " created_by => 'two')"
        )
        base = base_of_call("f", options, "v7")
        submit_in(connection, [build(base, '{"function" : "f", "kwargs" : {}}', {})])
        rows = connection.execute("select * from headway.job order by created_by nulls last").fetchall()
    one, given, library = rows
    assert {name for name in one if one[name] != library[name]} <= {"id", "digest", "payload", "created_by"}
    assert (given["queue"], given["rank"], given["timeout"], given["tags"]) == ("slow", -1, 9.0, ["c"])
    assert given["retry"] == one["retry"] is not None


async def test_options_of_the_sql_function_are_kept(on_postgres: Place) -> None:
    with psycopg.connect(on_postgres.url) as connection:
        row = connection.execute(
            "select headway.submit('report', queue => 'slow', run_at => '2040-01-01T00:00:00Z', priority => -5,"
            " key => 'report 7', timeout => 2.5, tags => '{a,b}', created_by => 'ann', correlation_id => 'c1')"
        ).fetchone()
        delayed = connection.execute("select headway.submit('later', delay => 90)").fetchone()
        connection.commit()
    assert row is not None
    assert delayed is not None
    made, later = await on_postgres.there(row[0]), await on_postgres.there(delayed[0])
    assert (made.queue, made.priority, made.key, made.timeout) == ("slow", -5, "report 7", 2.5)
    assert (made.tags, made.created_by, made.correlation_id) == (("a", "b"), "ann", "c1")
    assert made.run_at == datetime(2040, 1, 1, tzinfo=UTC)
    assert later.run_at - later.created_at == timedelta(seconds=90)
    assert await on_postgres.claim() == []


async def test_a_job_of_the_sql_function_goes_with_its_transaction(on_postgres: Place) -> None:
    with psycopg.connect(on_postgres.url) as connection:
        connection.execute("select headway.submit('mail.welcome')")
        connection.rollback()
    assert await on_postgres.claim() == []


async def test_the_sql_function_can_leave_workers_asleep(on_postgres: Place) -> None:
    ears = await Ears(on_postgres.store).open()
    with psycopg.connect(on_postgres.url) as connection:
        connection.execute("select headway.submit('mail', queue => 'quiet', notify => false)")
        connection.execute("select headway.submit('mail', queue => 'later', delay => 5)")
        connection.execute("select headway.submit('mail', queue => 'loud')")
        connection.commit()
    assert await ears.until("loud") == ["loud"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("''", "function must not be empty"),
        ("null", "function must not be empty"),
        ("'f', priority => 101", "priority must be from -100 to 100, not 101"),
        ("'f', priority => -101", "priority must be from -100 to 100, not -101"),
        ("'f', kwargs => '[1]'", "kwargs must be a JSON object, not array"),
        ("'f', kwargs => '7'", "kwargs must be a JSON object, not number"),
        ("'f', kwargs => null", "kwargs must be a JSON object, not null"),
        ("'f', queue => ''", "queue must be 1 to 200 characters without control characters"),
        ("'f', queue => repeat('q', 201)", "queue must be 1 to 200 characters without control characters"),
        ("'f', queue => E'\\x01worker'", "queue must be 1 to 200 characters without control characters"),
        ("'f', key => repeat('k', 201)", "key must be 1 to 200 characters without control characters"),
        ("E'f\\ng'", "function must be 1 to 200 characters without control characters"),
        ("'f', run_at => now(), delay => 1", "give run_at or delay, not both"),
        ("'f', kwargs => json_build_object('a', repeat('x', 256 * 1024))", "take 2621.. bytes, the limit is 262144"),
    ],
)
def test_the_sql_function_refuses_bad_input_in_words(migrated: str, arguments: str, message: str) -> None:
    with (
        psycopg.connect(migrated) as connection,
        pytest.raises(psycopg.errors.InvalidParameterValue, match=message),
    ):
        connection.execute(f"select headway.submit({arguments})".encode())


def test_ids_of_the_sql_function_are_uuid7_and_ascend(migrated: str) -> None:
    before = datetime.now(UTC)
    with psycopg.connect(migrated) as connection:
        rows = connection.execute("select headway.submit('f') from generate_series(1, 500)").fetchall()
    after = datetime.now(UTC)
    made = [row[0] for row in rows]
    assert {(one.version, one.variant) for one in made} == {(7, "specified in RFC 4122")}
    assert made == sorted(made)
    assert len(set(made)) == 500
    times = [datetime.fromtimestamp((one.int >> 80) / 1000, UTC) for one in made]
    assert before - timedelta(milliseconds=1) <= times[0] <= times[-1] <= after
