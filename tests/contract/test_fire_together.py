"""Schedules fired by several processes, and what stands in the way of one must not stand in the way of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
import pytest

from headway.scheduler import Scheduler
from headway.store.scripts.fire import NotFired
from tests.contract.firing import MINUTE, SECOND, Firing, minutes
from tests.contract.house import House
from tests.contract.test_schedules import spoil

ROUNDS = 12
DUE = "select 1 from headway.schedule for update"
ONE = "select 1 from headway.schedule where name = $1"
KEY = "select pg_advisory_xact_lock(hashtextextended($1, 0))"
JOBS = "select 1 from headway.job for update"


@pytest.fixture
def firing(house: House) -> Firing:
    return Firing(house)


@pytest.fixture
async def outsider(migrated_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of somebody else."""
    connection = await asyncpg.connect(migrated_url)
    yield connection
    await connection.close()


@asynccontextmanager
async def transaction(connection: asyncpg.Connection, statement: str, *values: str) -> AsyncIterator[None]:
    """Somebody else is at something."""
    async with connection.transaction():
        await connection.fetch(statement, *values)
        yield


# Many schedulers.


async def test_several_schedulers_make_each_occurrence_once(shared: House) -> None:
    crew = [Firing(shared), Firing(await shared.second()), Firing(await shared.second())]
    keys = [await crew[0].create(name=f"s{n}", overlap="allow" if n % 2 else "skip") for n in range(40)]
    done = 0
    for _ in range(ROUNDS):
        shared.clock.advance(60)
        fired = await asyncio.gather(*(each.tick(limit=7) for each in crew))
        done += sum(each.jobs + each.skipped for each in fired)
        # Who finds everything in other hands leaves it to them, as a scheduler that asks again would not.
        done += sum([each.jobs + each.skipped for each in [await one.tick() for one in crew]])
    assert done == 40 * ROUNDS
    for schedule_id in keys:
        lines = await crew[0].lines(schedule_id)
        assert sum(line.count for line in lines) == ROUNDS
        assert len({line.nominal_at for line in lines}) == len(lines)
    made = await crew[0].jobs()
    assert len({(job.schedule_id, job.nominal_at) for job in made}) == len(made) == 20 * ROUNDS + 20


async def test_a_schedule_in_other_hands_is_left_to_them_and_is_not_forgotten(
    on_postgres: House, outsider: asyncpg.Connection
) -> None:
    firing = Firing(on_postgres)
    await firing.create(misfire="run_all")
    on_postgres.clock.advance(60)
    async with transaction(outsider, DUE):
        fired = await firing.house.store.fire()
        assert (fired.schedules, fired.jobs, fired.wait) == (0, 0, 0.0)
        assert fired.clear_until == firing.now
    on_postgres.clock.advance(2)
    assert (await firing.tick()).jobs == 1


# What stands in the way.


async def test_a_schedule_whose_key_is_in_other_hands_stays_due_and_holds_up_nobody(
    on_postgres: House, outsider: asyncpg.Connection
) -> None:
    firing = Firing(on_postgres)
    await firing.create(name="busy", overlap="skip", template={"key": "x"})
    await firing.create(name="free", overlap="skip", template={"key": "y"})
    on_postgres.clock.advance(60)
    async with transaction(outsider, KEY, "headway:key x"):
        fired = await firing.house.store.fire()
        assert (fired.schedules, fired.jobs, fired.wait) == (1, 1, 0.0)
        assert [job.key for job in await firing.jobs()] == ["y"]
        assert (await firing.tick()).jobs == 0
    on_postgres.clock.advance(3)
    assert (await firing.tick()).jobs == 1
    assert await firing.nominal() == minutes(1, 1)


async def test_many_schedules_whose_keys_are_in_other_hands_hold_up_nobody_behind_them(
    on_postgres: House, outsider: asyncpg.Connection
) -> None:
    firing = Firing(on_postgres)
    for number in range(4):
        await firing.create(name=f"busy {number}", schedule="1 * * * *", overlap="skip", template={"key": "x"})
    await firing.create(name="free", schedule="2 * * * *", overlap="skip", template={"key": "y"})
    on_postgres.clock.advance(130)
    async with transaction(outsider, KEY, "headway:key x"):
        scheduler = Scheduler(on_postgres.clock, limit=2)
        for _ in range(3):
            await scheduler.tick(on_postgres.store)
        assert [job.key for job in await firing.jobs()] == ["y"]
    on_postgres.clock.advance(1)
    await scheduler.tick(on_postgres.store)
    assert [job.key for job in await firing.jobs()] == ["x", "y"]


async def test_a_schedule_that_can_not_be_read_holds_up_nobody(firing: Firing) -> None:
    broken = await firing.create(name="broken")
    await firing.create(name="fine")
    await spoil(firing, broken)
    firing.house.clock.advance(60)
    fired = await firing.tick()
    assert (fired.jobs, fired.wait) == (1, 60.0)
    assert await firing.pass_by(3 * MINUTE, 10 * SECOND) == 3
    assert await firing.names() == ["broken", "fine"]


async def test_a_batch_of_nothing_but_unreadable_schedules_is_left_alone_for_a_while(firing: Firing) -> None:
    for number in range(2):
        await spoil(firing, await firing.create(name=f"broken {number}"))
    await firing.create(name="fine", schedule="2 * * * *")
    firing.house.clock.advance(120)
    await firing.house.store.fire(limit=2)
    fired = await firing.house.store.fire(limit=2)
    assert (fired.jobs, fired.wait) == (1, 60.0)


async def test_a_schedule_put_aside_fires_later(firing: Firing) -> None:
    first = await firing.create(name="first", schedule="1 * * * *")
    await firing.create(name="second", schedule="2 * * * *")
    assert not await firing.house.store.put_aside(first, 60)
    firing.house.clock.advance(120)
    assert await firing.house.store.put_aside(first, 60)
    assert (await firing.tick()).jobs == 1
    assert await firing.nominal() == minutes(2)
    firing.house.clock.advance(60)
    assert (await firing.tick()).jobs == 1
    assert await firing.nominal() == minutes(1, 2)


async def test_a_job_that_can_not_be_stored_is_told_in_the_ledger(firing: Firing) -> None:
    schedule_id = await firing.create(template={"after": (UUID(int=5),)})
    firing.house.clock.advance(60)
    fired = await firing.tick()
    assert (fired.jobs, fired.skipped) == (0, 1)
    [line] = await firing.lines(schedule_id)
    assert line.reason == "error"
    assert "there is no such job" in str(line.detail)


# What a scheduler makes of it: the one waits, all others fire.


async def test_a_schedule_that_the_database_refuses_is_put_aside_and_the_others_fire(on_postgres: House) -> None:
    firing = Firing(on_postgres)
    for number in range(30):
        text = "no text: \x00" if number == 11 else None
        await firing.create(name=f"s{number:02}", template={"correlation_id": text})
    on_postgres.clock.advance(60)
    scheduler = Scheduler(on_postgres.clock)
    await scheduler.tick(on_postgres.store)
    assert (scheduler.jobs, len(await firing.jobs())) == (29, 29)
    assert (await firing.get((await firing.named("s11")).id)).next_at == firing.now
    on_postgres.clock.advance(60)
    await scheduler.tick(on_postgres.store)
    assert scheduler.jobs == 2 * 29


async def test_the_one_that_failed_is_put_aside_and_no_other_in_its_place(
    on_postgres: House, outsider: asyncpg.Connection
) -> None:
    firing, store = Firing(on_postgres), on_postgres.store
    spoilt = await firing.create(name="spoilt", schedule="1 * * * *", template={"correlation_id": "no text: \x00"})
    await firing.create(name="innocent", schedule="2 * * * *")
    on_postgres.clock.advance(120)
    with pytest.raises(NotFired) as failed:
        await store.fire(limit=1)
    assert failed.value.tried == [spoilt]
    async with transaction(outsider, f"{ONE} for update", "spoilt"):
        assert not await store.put_aside(spoilt, 60), "another scheduler is at it"
        assert (await firing.tick()).jobs == 1
    assert await firing.nominal() == minutes(2)
    assert await store.put_aside(spoilt, 60)


async def test_a_schedule_whose_job_is_locked_by_somebody_is_put_aside_and_the_others_fire(
    on_postgres: House, outsider: asyncpg.Connection
) -> None:
    firing = Firing(on_postgres)
    for number in range(12):
        await firing.create(name=f"s{number}", overlap="wait" if number == 5 else "allow", misfire="run_all")
    on_postgres.clock.advance(60)
    scheduler = Scheduler(on_postgres.clock)
    await scheduler.tick(on_postgres.store)
    assert scheduler.jobs == 12
    async with transaction(outsider, JOBS):
        on_postgres.clock.advance(60)
        await scheduler.tick(on_postgres.store)
        assert scheduler.jobs == 12 + 11
    on_postgres.clock.advance(1)
    await scheduler.tick(on_postgres.store)
    assert scheduler.jobs == 24
