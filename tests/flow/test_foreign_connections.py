"""Connections as users have them: in autocommit, with settings of their own, of the wrong kind."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import Any, Literal

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from psycopg.types.json import JsonbDumper
from psycopg.types.string import TextLoader
from sqlalchemy.ext.asyncio import AsyncEngine

from headway.model.errors import ConfigurationError, SchemaError
from headway.model.states import State
from headway.model.submission import Dedupe, OnConflict
from headway.transactional import asubmit_in, submit_in
from tests.flow.programs import (
    ON_POSTGRES,
    Ears,
    Place,
    accepted,
    async_engine,
    by_psycopg,
    by_sqlite3,
    job,
    postgres_place,
    sqlite_place,
    sync_engine,
)


@pytest.fixture
async def on_postgres(migrated: str) -> AsyncIterator[Place]:
    async with postgres_place(migrated, by_psycopg) as place:
        yield place


@pytest.fixture
async def on_sqlite(tmp_path: Path) -> AsyncIterator[Place]:
    async with sqlite_place(tmp_path, by_sqlite3) as place:
        yield place


# Connections in no transaction.


async def test_on_a_psycopg_connection_in_autocommit_the_job_is_stored_at_once(on_postgres: Place) -> None:
    plain, keyed = job(), job(key="k", on_conflict=OnConflict.REJECT)
    with psycopg.connect(on_postgres.url, autocommit=True) as connection:
        submit_in(connection, [plain])
        submit_in(connection, [keyed])
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert {claim.id for claim in await on_postgres.claim()} == {plain.id, keyed.id}


async def test_within_an_explicit_transaction_of_an_autocommit_connection_the_job_follows_it(
    on_postgres: Place,
) -> None:
    kept, dropped = job(), job()
    with psycopg.connect(on_postgres.url, autocommit=True) as connection:
        with connection.transaction():
            submit_in(connection, [kept])
        with connection.transaction(force_rollback=True):
            submit_in(connection, [dropped])
    assert [claim.id for claim in await on_postgres.claim()] == [kept.id]


async def test_on_an_async_psycopg_connection_in_autocommit_the_job_is_stored_at_once(on_postgres: Place) -> None:
    welcome = job(key="k", on_conflict=OnConflict.REJECT)
    async with await psycopg.AsyncConnection.connect(on_postgres.url, autocommit=True) as connection:
        await asubmit_in(connection, [welcome])
        assert [claim.id for claim in await on_postgres.claim()] == [welcome.id]


async def test_on_an_asyncpg_connection_in_no_transaction_the_job_is_stored_at_once(on_postgres: Place) -> None:
    welcome = job(key="k", on_conflict=OnConflict.REJECT)
    connection = await asyncpg.connect(on_postgres.url)
    await asubmit_in(connection, [welcome])
    assert not connection.is_in_transaction()
    assert [claim.id for claim in await on_postgres.claim()] == [welcome.id]
    await connection.close()


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg", "psycopg async"])
async def test_in_autocommit_everything_about_a_job_is_stored_by_one_transaction(
    on_postgres: Place, driver: str
) -> None:
    first, second = job(key="sync"), job(key="sync", on_conflict=OnConflict.WAIT)
    await on_postgres.store.submit([first])
    if driver == "asyncpg":
        connection = await asyncpg.connect(on_postgres.url)
        await asubmit_in(connection, [second])
        await connection.close()
    elif driver == "psycopg":
        with psycopg.connect(on_postgres.url, autocommit=True) as blocked:
            submit_in(blocked, [second])
    else:
        async with await psycopg.AsyncConnection.connect(on_postgres.url, autocommit=True) as other:
            await asubmit_in(other, [second])
    with psycopg.connect(on_postgres.url) as reader:
        [[transactions]] = reader.execute(
            "select array_agg(distinct x) from (select xmin::text from headway.job where id = %(id)s union all"
            " select xmin::text from headway.edge union all select xmin::text from headway.history) as t(x)",
            {"id": second.id},
        )
    assert len(transactions) == 1


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_a_sqlalchemy_connection_in_autocommit_stores_at_once(on_postgres: Place, driver: str) -> None:
    welcome = job()
    async with async_engine(on_postgres.url, driver) as engine, engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await asubmit_in(connection, [welcome])
        assert [claim.id for claim in await on_postgres.claim()] == [welcome.id]


async def test_a_sqlalchemy_block_that_raises_takes_the_job_with_it(on_postgres: Place) -> None:
    welcome = job()

    async def act(engine: AsyncEngine) -> None:
        async with engine.begin() as connection:
            # The first thing in the block: SQLAlchemy has not even sent BEGIN.
            await asubmit_in(connection, [welcome])
            raise ZeroDivisionError

    async with async_engine(on_postgres.url, "asyncpg") as engine:
        with pytest.raises(ZeroDivisionError):
            await act(engine)
    assert await on_postgres.get(welcome.id) is None


async def test_a_savepoint_rolled_back_takes_the_job_with_it(on_postgres: Place) -> None:
    kept, dropped = job(), job()
    async with async_engine(on_postgres.url, "asyncpg") as engine, engine.begin() as connection:
        await asubmit_in(connection, [kept])
        savepoint = await connection.begin_nested()
        await asubmit_in(connection, [dropped])
        await savepoint.rollback()
    assert [claim.id for claim in await on_postgres.claim()] == [kept.id]


async def test_blocking_connections_are_taken_in_async_code(on_postgres: Place, on_sqlite: Place) -> None:
    for place in (on_postgres, on_sqlite):
        welcome = job()
        async with place.program(place.url) as program:
            await asubmit_in(program.connection, [welcome])
            await program.commit()
        assert [claim.id for claim in await place.claim()] == [welcome.id]


async def test_conflicts_are_not_judged_by_a_transaction_that_cannot_see_them(on_postgres: Place) -> None:
    with psycopg.connect(on_postgres.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        accepted(*submit_in(connection, [job(key="k")]))
        with pytest.raises(ConfigurationError, match="read committed"):
            submit_in(connection, [job(key="k", on_conflict=OnConflict.REJECT)])


# The owner's settings.


async def test_codecs_of_an_asyncpg_connection_do_not_matter(on_postgres: Place) -> None:
    connection = await asyncpg.connect(on_postgres.url)
    for name in ("json", "jsonb"):
        await connection.set_type_codec(name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    await connection.set_type_codec("uuid", encoder=str, decoder=str, schema="pg_catalog")
    await connection.set_type_codec("timestamptz", encoder=str, decoder=str, schema="pg_catalog")
    welcome = job(metadata={"a": [1]}, tags=("x",))
    async with connection.transaction():
        first = accepted(*await asubmit_in(connection, [welcome]))
        again = accepted(*await asubmit_in(connection, [welcome]))
    await connection.close()
    assert (again.job_id, again.repeated) == (first.job_id, True)
    record = await on_postgres.there(welcome.id)
    assert (json.loads(record.payload), record.metadata, record.tags) == ({"kwargs": {"a": 1}}, {"a": [1]}, ("x",))
    assert record.run_at == first.run_at


async def test_adapters_and_factories_of_a_psycopg_connection_do_not_matter(on_postgres: Place) -> None:
    class ListAsJson(JsonbDumper):
        pass

    with psycopg.connect(on_postgres.url, row_factory=dict_row, cursor_factory=psycopg.ClientCursor) as connection:
        connection.adapters.register_dumper(list, ListAsJson)
        for name in ("uuid", "timestamptz", "bytea"):
            connection.adapters.register_loader(name, TextLoader)
        connection.execute("set timezone to 'Asia/Kathmandu'")
        welcome = job(dedupe=Dedupe("k"))
        first = accepted(*submit_in(connection, [welcome]))
        again = accepted(*submit_in(connection, [welcome]))
        assert first.created_at.tzinfo is UTC
        assert connection.row_factory is dict_row
        assert connection.execute("select 1 as one").fetchone() == {"one": 1}
    assert first.job_id == again.job_id == welcome.id
    assert (await on_postgres.there(welcome.id)).created_at == first.created_at


@contextmanager
def converters(**registered: Callable[[bytes], Any]) -> Iterator[None]:
    for name, convert in registered.items():
        sqlite3.register_converter(name, convert)
    yield
    for name in registered:
        del sqlite3.converters[name.upper()]


async def test_settings_of_a_sqlite_connection_do_not_matter_and_stay(on_sqlite: Place) -> None:
    class Odd(sqlite3.Connection):
        def cursor(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("Headway makes its own")

    def as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Any:
        return dict(zip([column[0] for column in cursor.description], row, strict=True))

    path = on_sqlite.url.removeprefix("sqlite:///")
    old = job("old", key="sync")
    await on_sqlite.store.submit([old])
    with converters(integer=lambda raw: f"int {raw!r}", text=lambda raw: ["text", raw], blob=lambda raw: None):
        connection = sqlite3.connect(path, detect_types=sqlite3.PARSE_DECLTYPES, factory=Odd)
        connection.row_factory = as_dict
        connection.text_factory = bytes
        welcome = job(dedupe=Dedupe("k"))
        replacing = job(key="sync", on_conflict=OnConflict.REPLACE)
        child = job("child", after=(replacing.id,))
        first = accepted(*submit_in(connection, [welcome]))
        again = accepted(*submit_in(connection, [welcome]))
        answers = submit_in(connection, [replacing, child])
        connection.commit()
        assert connection.row_factory is as_dict
        assert connection.text_factory is bytes
        assert str(connection.isolation_level) == ""
        connection.close()
    assert first.job_id == again.job_id == welcome.id
    assert [accepted(answer).state for answer in answers] == [State.SCHEDULED, State.BLOCKED]
    assert (await on_sqlite.there(old.id)).state is State.CANCELLED
    assert (await on_sqlite.there(welcome.id)).created_at == first.created_at


@pytest.mark.parametrize("level", ["DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
async def test_every_isolation_level_of_sqlite3_leaves_the_commit_to_the_program(
    on_sqlite: Place, level: Literal["DEFERRED", "IMMEDIATE", "EXCLUSIVE"]
) -> None:
    kept, dropped = job(key="k", on_conflict=OnConflict.REJECT), job()
    connection = sqlite3.connect(on_sqlite.url.removeprefix("sqlite:///"), isolation_level=level)
    submit_in(connection, [dropped])
    assert connection.in_transaction
    connection.rollback()
    submit_in(connection, [kept])
    connection.commit()
    connection.close()
    assert [claim.id for claim in await on_sqlite.claim()] == [kept.id]


async def test_a_sqlite_connection_in_autocommit_stores_at_once_and_rings(on_sqlite: Place) -> None:
    ears = await Ears(on_sqlite.store).open()
    welcome = job(queue="default", key="k", on_conflict=OnConflict.REJECT)
    connection = sqlite3.connect(on_sqlite.url.removeprefix("sqlite:///"), isolation_level=None)
    submit_in(connection, [welcome])
    assert not connection.in_transaction
    await ears.until("default")
    assert [claim.id for claim in await on_sqlite.claim()] == [welcome.id]
    connection.execute("begin")
    submit_in(connection, [job()])
    connection.execute("rollback")
    assert await on_sqlite.claim() == []
    connection.close()


async def test_a_submit_that_fails_on_sqlite_leaves_the_transaction_as_it_was(on_sqlite: Place) -> None:
    async with on_sqlite.program(on_sqlite.url) as program:
        await program.note("kept")
        with pytest.raises(sqlite3.Error):
            # The table is strict: the first job may be stored by then, the second can't be.
            await program.submit(job(), job(retain="long"))
        await program.commit()
    assert on_sqlite.notes() == ["kept"]
    assert await on_sqlite.claim() == []


# What can't be used says what can.


async def test_missing_tables_on_postgresql_are_told(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as blocked, pytest.raises(SchemaError, match="headway migrate"):
        submit_in(blocked, [job()])
    connection = await asyncpg.connect(postgres_url)
    with pytest.raises(SchemaError, match=r"headway migrate.*postgresql://"):
        await asubmit_in(connection, [job()])
    await connection.close()


def test_missing_tables_in_sqlite_are_told() -> None:
    connection = sqlite3.connect(":memory:")
    with pytest.raises(SchemaError, match=r"headway migrate.*sqlite:///"):
        submit_in(connection, [job()])
    assert not connection.in_transaction
    connection.close()


@pytest.mark.parametrize("kind", ["asyncpg", "psycopg async", "SQLAlchemy asyncpg", "SQLAlchemy session asyncpg"])
async def test_an_async_connection_in_a_blocking_submit_names_asubmit(migrated: str, kind: str) -> None:
    async with ON_POSTGRES[kind](migrated) as program:
        with pytest.raises(ConfigurationError, match="await asubmit"):
            submit_in(program.connection, [job()])
        await program.rollback()


async def test_what_is_no_connection_is_refused_with_what_works(migrated: str) -> None:
    with pytest.raises(ConfigurationError, match=r"builtins\.str: use an asyncpg connection, a psycopg 3"):
        submit_in("postgresql://here", [job()])
    with sync_engine(migrated) as engine, pytest.raises(ConfigurationError, match="take one from it"):
        submit_in(engine, [job()])
    async with asyncpg.create_pool(migrated, min_size=1) as pool:
        with pytest.raises(ConfigurationError, match="take one from it"):
            await asubmit_in(pool, [job()])


def test_another_driver_under_sqlalchemy_is_refused_with_those_that_work() -> None:
    class OtherDriver:
        """Stands for psycopg2 and the like: SQLAlchemy over a driver that Headway doesn't speak."""

        def __init__(self) -> None:
            self._inner = sqlite3.connect(":memory:")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    engine = sqlalchemy.create_engine("sqlite://", creator=OtherDriver)
    with engine.connect() as connection, pytest.raises(ConfigurationError, match=r"OtherDriver: use an asyncpg"):
        submit_in(connection, [job()])
    engine.dispose()
