"""A job stored in the user's own transaction exists if, and only if, that transaction commits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from uuid_utils.compat import uuid7

from headway.model.errors import Conflict, IdTaken, InvalidJob, KeyBusy
from headway.model.job import Finish
from headway.model.states import State
from headway.model.submission import Dedupe, OnConflict
from headway.store.postgres import postgres_store
from tests.flow.programs import (
    NOTES,
    ON_POSTGRES,
    ON_SQLITE,
    Ears,
    Place,
    accepted,
    job,
    postgres_place,
    sqlite_place,
)
from tests.servers import Postgres


@pytest.fixture(scope="module")
def database(postgres: Postgres) -> Iterator[str]:
    """A migrated database on PostgreSQL with the program's table."""
    url = postgres.create_database()

    async def migrate() -> None:
        store = postgres_store(url)
        await store.migrate()
        await store.close()

    asyncio.run(migrate())
    with psycopg.connect(url) as connection:
        connection.execute(NOTES)
    yield url
    postgres.drop_database(url)


@pytest.fixture
def url(database: str) -> str:
    """The database, emptied: much quicker than a new one for each of hundreds of tests."""
    with psycopg.connect(database) as connection:
        for table in ("job", "lease", "history", "edge", "parent", "dedupe", "result"):
            connection.execute(f"delete from headway.{table}".encode())
        connection.execute("delete from note")
    return database


@pytest.fixture(params=[*ON_POSTGRES, *ON_SQLITE])
def kind(request: pytest.FixtureRequest) -> str:
    """Every kind of connection."""
    # Asked for here, because an async fixture can't ask for one that runs a loop of its own.
    if request.param in ON_POSTGRES:
        request.getfixturevalue("url")
    kind: str = request.param
    return kind


@pytest.fixture
async def place(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> AsyncIterator[Place]:
    """The database that the kind of connection is for."""
    if kind in ON_POSTGRES:
        async with postgres_place(request.getfixturevalue("url"), ON_POSTGRES[kind]) as place:
            yield place
    else:
        async with sqlite_place(tmp_path, ON_SQLITE[kind]) as place:
            yield place


@pytest.fixture(params=ON_POSTGRES)
async def pg_place(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Place]:
    async with postgres_place(url, ON_POSTGRES[request.param]) as place:
        yield place


async def test_a_job_is_there_and_claimable_once_the_transaction_commits(place: Place) -> None:
    welcome = job(priority=7, tags=("a", 'quo"te\\'), metadata={"of": "müller"}, timeout=1.5)
    async with place.program(place.url) as program:
        [answer] = await program.submit(welcome)
        assert accepted(answer).job_id == welcome.id
        assert accepted(answer).state is State.SCHEDULED
        await program.commit()
    record = await place.there(welcome.id)
    assert (record.priority, record.tags, record.metadata, record.timeout) == (
        7,
        ("a", 'quo"te\\'),
        {"of": "müller"},
        1.5,
    )
    assert record.created_at == accepted(answer).created_at
    [claim] = await place.claim()
    assert claim.id == welcome.id
    assert json.loads(claim.payload) == {"kwargs": {"a": 1}}


async def test_nothing_is_left_of_a_job_whose_transaction_is_rolled_back(place: Place) -> None:
    welcome = job()
    async with place.program(place.url) as program:
        await program.submit(welcome)
        await program.rollback()
    assert await place.get(welcome.id) is None
    assert await place.claim() == []


async def test_a_job_is_invisible_before_the_commit(place: Place) -> None:
    welcome = job()
    async with place.program(place.url) as program:
        await program.submit(welcome)
        assert await place.get(welcome.id) is None
        if place.program in ON_POSTGRES.values() and place.url.startswith("postgresql"):
            # On SQLite a claim is a write, and waits for the program's transaction.
            assert await place.claim() == []
        await program.commit()
    assert [claim.id for claim in await place.claim()] == [welcome.id]


async def test_the_programs_own_rows_and_the_job_commit_together(place: Place) -> None:
    kept, dropped = job(), job()
    async with place.program(place.url) as program:
        await program.note("before")
        await program.submit(kept)
        await program.note("behind")
        assert place.notes() == []
        await program.commit()
    async with place.program(place.url) as program:
        await program.note("never")
        await program.submit(dropped)
        await program.rollback()
    assert place.notes() == ["before", "behind"]
    assert await place.get(kept.id) is not None
    assert await place.get(dropped.id) is None


async def test_a_job_for_later_keeps_its_time(place: Place) -> None:
    later = datetime(2040, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    at_time, delayed = job(run_at=later), job(delay=3600.0)
    async with place.program(place.url) as program:
        answers = await program.submit(at_time, delayed)
        await program.commit()
    assert accepted(answers[0]).run_at == later
    assert (await place.there(at_time.id)).run_at == later
    assert accepted(answers[1]).run_at - accepted(answers[1]).created_at == timedelta(hours=1)
    assert await place.claim() == []


async def test_a_repeated_id_is_the_same_job_and_with_another_content_taken(place: Place) -> None:
    welcome = job()
    async with place.program(place.url) as program:
        await program.submit(welcome)
        await program.commit()
    async with place.program(place.url) as program:
        [again] = await program.submit(welcome)
        [taken] = await program.submit(job(id=welcome.id, name="other"))
        await program.rollback()
    assert accepted(again).job_id == welcome.id
    assert isinstance(taken, IdTaken)
    assert await place.get(welcome.id) is not None


async def test_a_rejected_conflict_is_an_answer_and_the_transaction_goes_on(place: Place) -> None:
    first = job(key="invoice 7")
    second = job(key="invoice 7", on_conflict=OnConflict.REJECT)
    free = job(key="invoice 8", on_conflict=OnConflict.REJECT)
    await place.store.submit([first])
    async with place.program(place.url) as program:
        refused, stored = await program.submit(second, free)
        await program.note("still here")
        await program.commit()
    assert isinstance(refused, Conflict)
    assert refused.conflicting_job_id == first.id
    assert accepted(stored).job_id == free.id
    assert place.notes() == ["still here"]
    assert await place.get(second.id) is None
    assert await place.get(free.id) is not None


async def test_deduplicated_jobs_get_the_earlier_one(place: Place) -> None:
    first, second, third = (job(dedupe=Dedupe("once", 60)) for _ in range(3))
    await place.store.submit([first])
    async with place.program(place.url) as program:
        answers = await program.submit(second, third)
        await program.commit()
    assert [(accepted(answer).job_id, accepted(answer).deduplicated) for answer in answers] == [(first.id, True)] * 2
    assert await place.get(second.id) is None


async def test_a_window_taken_in_a_rolled_back_transaction_is_free_again(place: Place) -> None:
    first, second = (job(dedupe=Dedupe("once", 60)) for _ in range(2))
    async with place.program(place.url) as program:
        await program.submit(first)
        await program.rollback()
    [answer] = await place.store.submit([second])
    assert accepted(answer).job_id == second.id
    assert not accepted(answer).deduplicated


async def test_a_job_waits_for_the_job_it_comes_after(place: Place) -> None:
    parent = job("parent")
    child, orphan = job("child", after=(parent.id,)), job("orphan", after=(uuid7(),))
    await place.store.submit([parent])
    async with place.program(place.url) as program:
        waiting, refused = await program.submit(child, orphan)
        await program.commit()
    assert accepted(waiting).state is State.BLOCKED
    assert isinstance(refused, InvalidJob)
    [claim] = await place.claim()
    assert claim.id == parent.id
    await place.store.finish([Finish.succeeded(claim, 0.1, None)])
    assert (await place.there(child.id)).state is State.SCHEDULED


async def test_a_job_after_one_that_has_ended_is_free_at_once(place: Place) -> None:
    parent = job("parent")
    await place.store.submit([parent])
    [claim] = await place.claim()
    await place.store.finish([Finish.succeeded(claim, 0.1, None)])
    async with place.program(place.url) as program:
        [answer] = await program.submit(job("child", after=(parent.id,)))
        await program.commit()
    assert accepted(answer).state is State.SCHEDULED


async def test_a_replaced_job_is_cancelled_only_by_the_commit(place: Place) -> None:
    old = job(key="sync")
    await place.store.submit([old])
    async with place.program(place.url) as program:
        await program.submit(job(key="sync", on_conflict=OnConflict.REPLACE))
        await program.rollback()
    assert (await place.there(old.id)).state is State.SCHEDULED
    new = job(key="sync", on_conflict=OnConflict.REPLACE)
    async with place.program(place.url) as program:
        await program.submit(new)
        await program.commit()
    assert (await place.there(old.id)).state is State.CANCELLED
    assert [claim.id for claim in await place.claim()] == [new.id]


async def test_a_job_that_lines_up_waits_for_the_one_before_it(place: Place) -> None:
    first = job(key="sync")
    await place.store.submit([first])
    second, third = (job(key="sync", on_conflict=OnConflict.WAIT) for _ in range(2))
    async with place.program(place.url) as program:
        answers = await program.submit(second, third)
        await program.commit()
    assert [accepted(answer).state for answer in answers] == [State.BLOCKED] * 2
    assert [claim.id for claim in await place.claim()] == [first.id]


async def test_a_batch_of_hundreds_is_answered_in_order(place: Place) -> None:
    batch = [job(f"job {number}") for number in range(300)]
    async with place.program(place.url) as program:
        answers = await program.submit(*batch)
        await program.commit()
    assert [accepted(answer).job_id for answer in answers] == [one.id for one in batch]
    assert len(await place.claim(500)) == 300


async def test_no_jobs_are_no_work(place: Place) -> None:
    async with place.program(place.url) as program:
        assert await program.submit() == []
        await program.rollback()


async def test_listeners_are_woken_by_the_commit_and_not_before(pg_place: Place) -> None:
    ears = await Ears(pg_place.store).open()
    async with pg_place.program(pg_place.url) as program:
        await program.submit(job(queue="bell"))
        with psycopg.connect(pg_place.url) as other:
            other.execute("select pg_notify('headway_wake', 'marker')")
        assert await ears.until("marker") == ["marker"]
        await program.commit()
        assert await ears.until("bell") == ["marker", "bell"]


async def test_without_notify_nobody_is_woken(pg_place: Place) -> None:
    ears = await Ears(pg_place.store).open()
    quiet, keyed = job(queue="bell"), job(queue="bell", key="k", on_conflict=OnConflict.REJECT)
    async with pg_place.program(pg_place.url) as program:
        await program.submit(quiet, notify=False)
        await program.submit(keyed, notify=False)
        await program.commit()
    with psycopg.connect(pg_place.url) as other:
        other.execute("select pg_notify('headway_wake', 'marker')")
    assert await ears.until("marker") == ["marker"]
    assert await pg_place.get(quiet.id) is not None


async def test_a_key_that_another_transaction_holds_is_answered_at_once(pg_place: Place) -> None:
    mine, theirs = (job(key="invoice", on_conflict=OnConflict.REJECT) for _ in range(2))
    other = job(key="another", on_conflict=OnConflict.REJECT)
    async with pg_place.program(pg_place.url) as first, pg_place.program(pg_place.url) as second:
        await first.submit(mine)
        async with asyncio.timeout(20):
            busy, stored = await second.submit(theirs, other)
        assert isinstance(busy, KeyBusy)
        assert accepted(stored).job_id == other.id
        await first.commit()
        [conflict] = await second.submit(theirs)
        assert isinstance(conflict, Conflict)
        await second.commit()
