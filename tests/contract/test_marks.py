"""Where a claim on PostgreSQL begins: behind what was claimed before, by whomever; its remains may lie there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncpg
import pytest

from headway.store.postgres import postgres_store
from headway.store.postgres.driver import PostgresDriver
from headway.store.scripts import work
from headway.store.scripts.rows import hush
from headway.store.scripts.work import OTHERS_WALK, Claimed, Want
from headway.store.sql import Lane
from headway.store.statements import Row, Script, Statement, many, one
from tests.contract.conftest import faulty
from tests.contract.house import House, ids
from tests.contract.test_limits import submit_many

T = TypeVar("T")
SLOW = """
    create function headway.dawdle() returns trigger language plpgsql
        as 'begin perform pg_sleep(0.05); return new; end';
    create trigger dawdle before update on headway.job for each row execute function headway.dawdle();
"""
"""Each job that is claimed takes 50 ms."""


@pytest.fixture
async def other(on_postgres: House) -> House:
    """Another process at the same store."""
    return await on_postgres.second()


async def read_by(house: House, script: Script[T]) -> tuple[T, int]:
    """What a script returns, and how many entries of the index of due jobs it has read."""
    driver = house.store._driver
    assert isinstance(driver, PostgresDriver)
    seen = "select pg_stat_get_xact_tuples_returned('headway.job_ready'::regclass)"
    driver._statements["seen"] = Statement("seen", seen, (), ())

    def counted() -> Script[tuple[T, int]]:
        [before] = yield one("seen")
        result = yield from script
        [after] = yield one("seen")
        return result, after[0] - before[0]

    return await driver.run(counted, Lane.CLAIM)


async def read_by_a_claim(house: House, limit: int) -> tuple[Claimed, int]:
    return await read_by(
        house,
        work.claim(Want(worker_id=house.worker.id, queue="default", limit=limit, lease_id=house.new_id(), ttl=30)),
    )


def peek() -> Script[list[Row]]:
    return (yield many("peek", [("default",)]))


@asynccontextmanager
async def looking_from_the_start(url: str) -> AsyncIterator[None]:
    """Meanwhile a claim of somebody else is at it, of the queue `default`."""
    claim = await asyncpg.connect(url)
    try:
        async with claim.transaction():
            assert await claim.fetchval("select pg_try_advisory_xact_lock(hashtextextended('headway:default', 1))")
            yield
    finally:
        await claim.close()


async def test_a_claim_goes_on_where_that_of_another_worker_ended(
    on_postgres: House, other: House, migrated_url: str
) -> None:
    """While somebody's snapshot is older than the claims, their remains can't be cleared away."""
    jobs = await submit_many(on_postgres, 2020)
    backup = await asyncpg.connect(migrated_url)
    await backup.execute("begin isolation level repeatable read; select 1 from headway.job limit 1")
    for _ in range(4):
        assert len((await on_postgres.ask(500)).claims) == 500
    claimed, read = await read_by_a_claim(other, 10)
    assert ids(claimed.claims) == jobs[2000:2010]
    assert read < 100
    due, read = await read_by(other, peek())
    assert due[0]["delay"] <= 0
    assert read < 100, "to know that a job is due, none from before that place is needed"
    on_postgres.clock.advance(0.31)
    claimed, read = await read_by_a_claim(other, 10)
    assert ids(claimed.claims) == jobs[2010:2020]
    assert read > 2000, "it has looked from the start, or the above tells nothing"
    await backup.close()


async def test_one_claim_at_a_time_looks_from_the_start(on_postgres: House, other: House, migrated_url: str) -> None:
    """Where that takes long, all others would find that the last look was too long ago, and look as well."""
    jobs = await submit_many(on_postgres, 30)
    await on_postgres.ask(5)
    urgent = [await on_postgres.submit(priority=1), await on_postgres.submit(priority=1)]
    on_postgres.clock.advance(0.31)
    async with looking_from_the_start(migrated_url):
        assert ids((await other.ask(5)).claims) == jobs[5:10]
        short = await other.ask(25)
        assert (ids(short.claims), short.retry_in) == (jobs[10:], 0.0)
        none = await other.ask(25)
        assert (none.claims, none.retry_in) == ([], OTHERS_WALK)
    assert ids((await other.ask(5)).claims) == urgent


async def test_who_is_stuck_looking_from_the_start_keeps_nobody_from_it_for_long(
    on_postgres: House, other: House, migrated_url: str
) -> None:
    jobs = await submit_many(on_postgres, 30)
    await on_postgres.ask(5)
    urgent = await on_postgres.submit(priority=1)
    on_postgres.clock.advance(14.9)
    async with looking_from_the_start(migrated_url):
        assert ids((await other.ask(5)).claims) == jobs[5:10]
        on_postgres.clock.advance(0.2)
        assert ids((await other.ask(5)).claims) == [urgent, *jobs[10:14]]


async def test_the_latest_look_counts_also_where_an_earlier_one_counts_as_made_later(
    on_postgres: House, other: House
) -> None:
    """As it does if it took long, or the clock was set back a little."""
    await submit_many(on_postgres, 30)
    await on_postgres.ask(5)
    on_postgres.clock.step_wall(-0.5)
    assert (await other.ask(30)).retry_in == 0.0
    await submit_many(on_postgres, 10)
    urgent = await submit_many(on_postgres, 6, priority=1)
    assert ids((await other.ask(5)).claims) == urgent[:5]
    assert ids((await on_postgres.ask(5)).claims)[0] == urgent[5]


async def test_a_long_look_from_the_start_is_not_soon_followed_by_the_next(
    on_postgres: House, migrated_url: str
) -> None:
    # By the server's own clock: how long something takes is not in the hands of an injected one.
    store = faulty(postgres_store(migrated_url))
    await store.submit([on_postgres.job() for _ in range(10)])
    admin = await asyncpg.connect(migrated_url)
    await admin.execute(SLOW)
    claimed = await store.claim(
        Want(worker_id=on_postgres.worker.id, queue="default", limit=5, lease_id=on_postgres.new_id(), ttl=30)
    )
    assert len(claimed.claims) == 5
    [(took, rest)] = await admin.fetch(
        "select extract(epoch from clock_timestamp() - claimed_at), extract(epoch from scanned_at - clock_timestamp())"
        " from headway.job join headway.lease on lease.id = job.lease_id limit 1"
    )
    assert took > 0.25
    assert rest > 0.25
    await admin.close()
    await store.close()


async def test_a_job_put_before_that_place_is_found_in_time(on_postgres: House, other: House) -> None:
    jobs = await submit_many(on_postgres, 30)
    await on_postgres.ask(5)
    urgent = await on_postgres.submit(priority=1)
    assert ids((await other.ask(5)).claims) == jobs[5:10]
    on_postgres.clock.advance(0.14)
    assert ids((await other.ask(5)).claims) == jobs[10:15], "going on from there does not make the place a new one"
    on_postgres.clock.advance(0.17)
    assert ids((await other.ask(5)).claims) == [urgent, *jobs[15:19]]


async def test_a_claim_that_finds_too_few_behind_that_place_looks_again_from_the_start(
    on_postgres: House, other: House
) -> None:
    jobs = await submit_many(on_postgres, 7)
    await on_postgres.ask(5)
    urgent = await on_postgres.submit(priority=1)
    short = await other.ask(5)
    assert (ids(short.claims), short.retry_in) == (jobs[5:], 0.0)
    again = await other.ask(5)
    assert (ids(again.claims), again.retry_in) == ([urgent], None)


async def test_a_claim_that_finds_nothing_behind_that_place_looks_again_from_the_start(
    on_postgres: House, other: House
) -> None:
    await submit_many(on_postgres, 5)
    await on_postgres.ask(5)
    urgent = await on_postgres.submit(priority=1)
    assert ((await other.ask(5)).claims, (await on_postgres.ask(5)).retry_in) == ([], 0.0)
    assert ids((await other.ask(5)).claims) == [urgent]


async def test_who_takes_the_last_jobs_behind_that_place_tells_the_others(on_postgres: House, other: House) -> None:
    heard: list[str] = []
    await submit_many(on_postgres, 7)
    await on_postgres.ask(5)
    stop = await on_postgres.store.listen(heard.append)
    heard.clear()
    want = Want(worker_id=other.worker.id, queue="default", limit=5, lease_id=other.new_id(), ttl=30, hush=True)
    claimed = await other.store.claim(want)
    assert (len(claimed.claims), claimed.retry_in) == (2, 0.0)
    # By the connection that listens: what was rung before comes before its answer.
    await on_postgres.store.peek(["default"])
    assert heard == [hush("default", other.worker.id)]
    stop()


async def test_a_place_is_forgotten_when_the_clock_is_set_back(on_postgres: House, other: House) -> None:
    await submit_many(on_postgres, 30)
    await on_postgres.ask(5)
    on_postgres.clock.step_wall(-3600)
    urgent = await on_postgres.submit(priority=1)
    assert (await other.ask(1)).claims[0].id == urgent


async def test_every_queue_has_its_own_place(on_postgres: House, other: House) -> None:
    await submit_many(on_postgres, 10)
    elsewhere = await submit_many(on_postgres, 10, queue="mail", priority=1)
    await on_postgres.ask(5)
    assert ids((await other.ask(5, queue="mail")).claims) == elsewhere[:5]


async def test_a_claim_that_took_all_leaves_no_place(on_postgres: House, other: House) -> None:
    await submit_many(on_postgres, 3)
    assert (await on_postgres.ask(5)).retry_in is None
    urgent = await on_postgres.submit(priority=1)
    assert ids((await other.ask(5)).claims) == [urgent]
