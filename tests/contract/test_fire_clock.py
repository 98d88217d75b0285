"""Clocks that are set while schedules fire: nothing fires twice, nothing stalls, and the ledger stays true."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from headway.model.schedule import Misfire
from tests.contract.firing import DAY, HOUR, MINUTE, SECOND, Firing, minutes
from tests.contract.house import House

MONTH = 30 * DAY


@pytest.fixture
def firing(house: House) -> Firing:
    return Firing(house)


async def set_clock(firing: Firing, by: timedelta) -> None:
    """As somebody with root sets it; a scheduler notices and brings the schedules back to the present."""
    firing.house.clock.step_wall(by.total_seconds())
    if by < timedelta(0):
        await firing.realign()
        firing.previous = None


async def each_once(firing: Firing, schedule_id: UUID) -> None:
    """Every job has its own nominal time and its own line, and no line says otherwise."""
    jobs, lines = await firing.jobs(), await firing.lines(schedule_id)
    nominal = [job.nominal_at for job in jobs]
    assert len(set(nominal)) == len(nominal)
    assert {line.nominal_at for line in lines if line.job_id} == set(nominal)
    told = sorted((line.nominal_at, line.until_at) for line in lines)
    for (_, end), (start, _) in pairwise(told):
        assert end < start, "no time stands in two lines"


@pytest.mark.parametrize("misfire", Misfire)
@pytest.mark.parametrize("form", ["* * * * *", {"every": 60}])
async def test_an_hour_back_fires_nothing_twice_and_stalls_nothing(
    firing: Firing, form: object, misfire: Misfire
) -> None:
    schedule_id = await firing.create(schedule=form, misfire=misfire)
    assert await firing.pass_by(90 * MINUTE, 20 * SECOND) == 90
    await set_clock(firing, -HOUR)
    assert await firing.pass_by(HOUR, 20 * SECOND) == 0
    assert await firing.pass_by(5 * MINUTE, 20 * SECOND) == 5
    await each_once(firing, schedule_id)
    assert await firing.nominal() == minutes(*range(1, 96))


async def test_a_schedule_that_did_not_fire_in_the_repeated_hour_fires_in_it(firing: Firing) -> None:
    await firing.create(name="old")
    await firing.pass_by(90 * MINUTE, MINUTE)
    await set_clock(firing, -HOUR)
    await firing.create(name="new", schedule="*/10 * * * *")
    assert await firing.pass_by(30 * MINUTE, MINUTE) == 3


@pytest.mark.parametrize(("misfire", "at_once"), [("skip", 1), ("run_once", 1), ("run_all", 60)])
async def test_an_hour_ahead_goes_by_the_policy(firing: Firing, misfire: str, at_once: int) -> None:
    schedule_id = await firing.create(misfire=misfire)
    await firing.pass_by(3 * MINUTE, 20 * SECOND)
    await set_clock(firing, HOUR)
    fired = await firing.tick()
    assert (fired.jobs, fired.skipped) == (at_once, 60 - at_once)
    assert await firing.pass_by(5 * MINUTE, 20 * SECOND) == 5
    await each_once(firing, schedule_id)


@pytest.mark.parametrize("misfire", Misfire)
@pytest.mark.parametrize("form", ["* * * * *", {"every": 60}, "*/2 0-23 * * *"])
async def test_a_month_ahead_and_back_stalls_nothing_and_fires_nothing_twice(
    firing: Firing, form: object, misfire: Misfire
) -> None:
    schedule_id = await firing.create(schedule=form, misfire=misfire)
    usual = await firing.pass_by(10 * MINUTE, 20 * SECOND)
    await set_clock(firing, MONTH)
    assert (await firing.tick()).jobs >= 1
    await firing.pass_by(3 * MINUTE, MINUTE)
    await set_clock(firing, -MONTH)
    assert await firing.pass_by(10 * MINUTE, 20 * SECOND) == usual
    await each_once(firing, schedule_id)
    lines = [line for line in await firing.lines(schedule_id) if line.reason]
    assert all(line.until_at <= firing.now for line in lines), "what is still to come was not skipped"


async def test_a_range_of_skips_that_reaches_beyond_the_new_present_is_cut_there(firing: Firing) -> None:
    schedule_id = await firing.create()
    await firing.pass_by(MINUTE, MINUTE)
    firing.house.clock.advance(10 * 60)
    await set_clock(firing, MONTH)
    await firing.tick()
    assert await firing.told(schedule_id) == [
        (60, 60, 1, "job"),
        (120, 660 + 2_592_000 - 60, 43_209, "coalesced"),
        (660 + 2_592_000, 660 + 2_592_000, 1, "job"),
    ]
    await set_clock(firing, -MONTH)
    assert (await firing.told(schedule_id))[:2] == [(60, 60, 1, "job"), (120, 660, 10, "coalesced")]
    assert await firing.pass_by(2 * MINUTE, MINUTE) == 2
    await each_once(firing, schedule_id)


async def test_without_a_look_ahead_a_schedule_would_stall(firing: Firing) -> None:
    """What `realign` is for."""
    await firing.create()
    await set_clock(firing, MONTH)
    await firing.tick()
    firing.house.clock.step_wall(-MONTH.total_seconds())
    assert await firing.pass_by(5 * MINUTE, MINUTE) == 0
    await firing.realign()
    assert await firing.pass_by(5 * MINUTE, MINUTE) == 5


async def test_all_schedules_that_stand_ahead_are_brought_back_step_by_step(firing: Firing) -> None:
    for number in range(10):
        await firing.create(name=f"s{number}")
    await firing.create(name="paused", paused=True)
    await set_clock(firing, MONTH)
    assert (await firing.tick()).jobs == 10
    firing.house.clock.step_wall(-MONTH.total_seconds())
    await firing.realign(limit=3)
    assert await firing.pass_by(MINUTE, MINUTE) == 10


async def test_a_schedule_that_ended_only_by_the_wrong_clock_goes_on(firing: Firing) -> None:
    schedule_id = await firing.create(end=firing.now + DAY)
    single = await firing.create(name="single", schedule={"at": firing.now + HOUR})
    await firing.pass_by(2 * MINUTE, MINUTE)
    await set_clock(firing, MONTH)
    await firing.tick()
    assert (await firing.get(schedule_id)).next_at is None
    await set_clock(firing, -MONTH)
    assert await firing.pass_by(3 * MINUTE, MINUTE) == 3
    assert await firing.pass_by(2 * HOUR, 10 * MINUTE) == 12, "the single time had its turn"
    assert len(await firing.lines(single)) == 1


async def test_a_paused_schedule_is_left_paused_by_all_this(firing: Firing) -> None:
    schedule_id = await firing.create()
    await set_clock(firing, MONTH)
    await firing.tick()
    await firing.house.store.pause_schedule(schedule_id, by=None, reason=None)
    await set_clock(firing, -MONTH)
    assert await firing.pass_by(3 * MINUTE, MINUTE) == 0
    await firing.house.store.resume_schedule(schedule_id, by=None)
    assert await firing.pass_by(3 * MINUTE, MINUTE) == 3


async def test_a_clock_that_was_never_wrong_needs_nothing(firing: Firing) -> None:
    schedule_id = await firing.create()
    await firing.pass_by(3 * MINUTE, MINUTE)
    before = await firing.get(schedule_id)
    assert await firing.house.store.realign(None) is None
    assert await firing.get(schedule_id) == before
