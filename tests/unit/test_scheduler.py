"""The scheduler's loop, with time in the test's hands: when it looks, what wakes it, what it survives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headway.clock import FakeClock
from headway.model.errors import KeyBusy, StoreUnavailable
from headway.scheduler import Scheduler
from headway.store.scripts.fire import Fired, NotFired
from headway.store.sql import SqlStore
from headway.store.sqlite import InlineRunner, sqlite_store
from tests.contract.firing import DAY, HOUR, Firing, minutes
from tests.contract.house import House

LONG = 10_000.0
"""A poll that never comes."""


class Watched:
    """A store whose ticks are counted, and fail when told to."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self.ticks = 0
        self.fails: Callable[[int], Exception | None] = lambda limit: None
        self.aside: list[float] = []
        """For how long schedules were put aside."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def fire(self, *, previous: Any, limit: int) -> Fired:
        self.ticks += 1
        error = self.fails(limit)
        if error is not None:
            raise error
        return await self._store.fire(previous=previous, limit=limit)

    async def put_aside(self, schedule_id: UUID, seconds: float) -> Any:
        self.aside.append(seconds)
        return await self._store.put_aside(schedule_id, seconds)


class Stage:
    """A scheduler at work, on a store in memory."""

    def __init__(self, house: House, **options: Any) -> None:
        self.house = house
        self.clock = house.clock
        self.firing = Firing(house)
        self.store = Watched(house.store)
        self.scheduler = Scheduler(house.clock, **options)
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.task = asyncio.create_task(self.scheduler.run(self.store))  # type: ignore[arg-type]
        await self.settle()

    async def settle(self) -> None:
        """The store answers at once: a few turns of the loop, and the scheduler sleeps again."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Time passes, as fine as the scheduler looks at it."""
        while seconds > 0:
            step = min(seconds, max(self.clock.next_timer or seconds, 0.001))
            self.clock.advance(step)
            seconds -= step
            await self.settle()

    async def fired(self) -> list[float]:
        return await self.firing.nominal()


@asynccontextmanager
async def stage_of(**options: Any) -> AsyncIterator[Stage]:
    clock = FakeClock()
    store = sqlite_store(":memory:", clock=clock, runner=InlineRunner())
    await store.open()

    async def no_other() -> SqlStore:
        raise AssertionError("a store in memory has no second process")

    stage = Stage(House(store, clock, no_other), **options)
    yield stage
    if stage.task is not None:
        stage.scheduler.stop()
        await asyncio.wait_for(stage.task, 5)
    await store.close()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with stage_of(poll=LONG) as made:
        yield made


async def test_it_sleeps_until_the_next_schedule_is_due(stage: Stage) -> None:
    await stage.firing.create()
    await stage.start()
    before = stage.store.ticks
    await stage.advance(59.9)
    assert (stage.store.ticks - before, await stage.fired()) == (0, [])
    await stage.advance(0.1)
    assert await stage.fired() == minutes(1)
    await stage.advance(180)
    assert await stage.fired() == minutes(1, 2, 3, 4)
    assert stage.store.ticks - before <= 8


async def test_a_ring_wakes_it_when_a_schedule_is_made_or_changed(stage: Stage) -> None:
    await stage.start()
    schedule_id = await stage.firing.create(schedule="0 0 * * *")
    await stage.firing.create(name="soon", schedule={"every": 5})
    await stage.advance(5)
    assert len(await stage.fired()) == 1
    await stage.house.store.pause_schedule((await stage.firing.named("soon")).schedule.id, by=None, reason=None)
    await stage.firing.change(schedule_id, schedule={"every": 7})
    await stage.advance(14)
    assert len(await stage.fired()) == 3


async def test_without_a_ring_it_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage_of(poll=1.0) as stage:
        monkeypatch.setattr(stage.scheduler, "_heard", lambda channel: None)
        await stage.start()
        await stage.firing.create(schedule={"every": 5})
        await stage.advance(5.1)
        assert len(await stage.fired()) == 1


async def test_it_fires_in_batches_until_nothing_is_left() -> None:
    async with stage_of(poll=LONG, limit=10) as stage:
        for number in range(35):
            await stage.firing.create(name=f"s{number}")
        await stage.start()
        before = stage.store.ticks
        await stage.advance(60)
        assert len(await stage.fired()) == 35
        assert stage.store.ticks - before <= 6


async def test_it_begins_with_what_was_missed(stage: Stage) -> None:
    await stage.firing.create(misfire="run_all")
    stage.clock.advance(185)
    await stage.start()
    assert await stage.fired() == minutes(1, 2, 3)


async def test_times_that_come_while_it_is_late_are_not_missed(stage: Stage) -> None:
    await stage.firing.create(schedule={"every": 1})
    await stage.start()
    await stage.advance(3)
    stage.clock.advance(4)
    await stage.settle()
    assert len(await stage.fired()) == 7


@pytest.mark.parametrize("back", [HOUR, 30 * DAY])
async def test_it_notices_that_the_clock_was_set_back(back: timedelta) -> None:
    async with stage_of(poll=1.0) as stage:
        await stage.firing.create()
        await stage.start()
        await stage.advance(120)
        stage.clock.step_wall(back.total_seconds())
        await stage.advance(120)
        stage.clock.step_wall(-back.total_seconds())
        before = len(await stage.fired())
        await stage.advance(300)
        assert len(await stage.fired()) - before == 5, "it goes on at once, and not when the wrong time has come"
        jobs = await stage.firing.jobs()
        assert len({job.nominal_at for job in jobs}) == len(jobs)


async def test_a_clock_that_was_set_back_while_no_scheduler_ran_is_seen_at_the_start(stage: Stage) -> None:
    await stage.firing.create()
    stage.clock.step_wall(DAY.total_seconds())
    await stage.firing.tick()
    stage.clock.step_wall(-DAY.total_seconds())
    await stage.start()
    await stage.advance(120)
    assert [at for at in await stage.fired() if at < 3600] == minutes(1, 2)


async def test_small_delays_are_not_taken_for_a_clock_set_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    realigned: list[object] = []
    real = stage.house.store.realign

    async def realign(after_id: Any, limit: int = 500) -> Any:
        realigned.append(after_id)
        return await real(after_id, limit)

    monkeypatch.setattr(stage.house.store, "realign", realign)
    await stage.firing.create(schedule={"every": 2})
    await stage.start()
    for step in (-0.4, 0.3, -0.9, 5.0):
        stage.clock.step_wall(step)
        await stage.advance(10)
    assert realigned == [None], "once, at the start"


async def test_it_waits_for_a_store_that_can_not_be_reached_and_goes_on(stage: Stage) -> None:
    await stage.firing.create(schedule={"every": 10})
    await stage.start()
    stage.store.fails = lambda limit: StoreUnavailable("away")
    await stage.advance(60)
    assert 5 <= stage.store.ticks <= 30, "with longer and longer waits"
    assert await stage.fired() == []
    stage.store.fails = lambda limit: None
    await stage.advance(10)
    assert await stage.fired() == [60.0, 70.0]


async def test_a_store_that_is_away_from_the_start_is_waited_for_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> Any:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(stage.house.store, "listen", away)
        patched.setattr(stage.house.store, "realign", away)
        await stage.start()
        await stage.advance(2)
    await stage.firing.create(schedule={"every": 10})
    await stage.advance(10)
    assert len(await stage.fired()) == 1


@pytest.mark.parametrize(("error", "aside"), [(ValueError("of no use"), 60), (KeyBusy("in other hands"), 1)])
async def test_one_that_can_not_be_fired_is_put_aside_and_the_others_fire(
    stage: Stage, error: Exception, aside: int
) -> None:
    for number in range(25):
        await stage.firing.create(name=f"s{number}", schedule=f"{1 if number == 7 else 2} 0 * * *", misfire="run_all")
    # The first of those that are due spoils every batch that it is part of.
    due = [(await stage.firing.named(f"s{number}")).id for number in (7, *range(7), *range(8, 25))]
    stage.store.fails = lambda limit: None if stage.store.aside else NotFired(due[:limit], error)
    stage.clock.advance(120)
    await stage.start()
    assert stage.store.aside == [aside]
    assert await stage.fired() == minutes(*[2] * 24)
    await stage.advance(aside)
    assert await stage.fired() == minutes(1, *[2] * 24)


async def test_stopped_it_ends_with_the_tick_under_way(stage: Stage) -> None:
    await stage.firing.create()
    await stage.start()
    assert stage.task is not None
    stage.scheduler.stop()
    await stage.settle()
    assert stage.task.done()
    assert stage.task.exception() is None
