"""What a fire does when the job of an earlier one has not ended, and what a window of de-duplication does."""

from __future__ import annotations

import pytest

from headway.model.states import State
from headway.model.submission import Dedupe
from tests.contract.firing import MINUTE, Firing
from tests.contract.house import House


@pytest.fixture
def firing(house: House) -> Firing:
    return Firing(house)


async def test_with_allow_jobs_may_overlap(firing: Firing) -> None:
    await firing.create(overlap="allow")
    await firing.pass_by(3 * MINUTE, MINUTE)
    assert [job.state for job in await firing.jobs()] == [State.SCHEDULED] * 3


async def test_with_skip_a_time_is_skipped_while_an_earlier_job_has_not_ended(firing: Firing) -> None:
    schedule_id = await firing.create(overlap="skip")
    await firing.pass_by(3 * MINUTE, MINUTE)
    [claim] = await firing.house.claim(10)
    await firing.pass_by(2 * MINUTE, MINUTE)
    await firing.house.complete(claim)
    await firing.pass_by(2 * MINUTE, MINUTE)
    assert await firing.told(schedule_id) == [
        (60, 60, 1, "job"),
        (120, 300, 4, "overlap"),
        (360, 360, 1, "job"),
        (420, 420, 1, "overlap"),
    ]
    assert (await firing.lines(schedule_id))[1].detail == f"job {claim.id} had not ended"


async def test_with_wait_jobs_stand_in_line(firing: Firing) -> None:
    await firing.create(overlap="wait")
    await firing.pass_by(3 * MINUTE, MINUTE)
    first, second, third = await firing.jobs()
    assert [job.state for job in (first, second, third)] == [State.SCHEDULED, State.BLOCKED, State.BLOCKED]
    for job in (first, second, third):
        [claim] = await firing.house.claim(10)
        assert claim.id == job.id
        await firing.house.complete(claim)


async def test_with_replace_a_waiting_job_is_cancelled_for_the_new_one(firing: Firing) -> None:
    schedule_id = await firing.create(overlap="replace")
    await firing.pass_by(2 * MINUTE, MINUTE)
    assert [job.state for job in await firing.jobs()] == [State.CANCELLED, State.SCHEDULED]
    assert [told[3] for told in await firing.told(schedule_id)] == ["job", "job"]


async def test_with_replace_a_running_job_is_asked_to_end_and_the_new_one_waits(firing: Firing) -> None:
    await firing.create(overlap="replace")
    await firing.pass_by(MINUTE, MINUTE)
    claim = await firing.house.claim_one()
    await firing.pass_by(MINUTE, MINUTE)
    assert [job.state for job in await firing.jobs()] == [State.CANCELLING, State.BLOCKED]
    await firing.house.give_up(claim)
    assert [job.state for job in await firing.jobs()] == [State.CANCELLED, State.SCHEDULED]


@pytest.mark.parametrize(("overlap", "made"), [("allow", 5), ("skip", 1), ("wait", 5), ("replace", 5)])
async def test_many_missed_times_overlap_each_other_too(firing: Firing, overlap: str, made: int) -> None:
    schedule_id = await firing.create(overlap=overlap, misfire="run_all")
    firing.house.clock.advance(300)
    fired = await firing.tick()
    assert (fired.jobs, fired.skipped) == (made, 5 - made)
    lines = await firing.lines(schedule_id)
    assert (sum(line.count for line in lines), len(lines)) == (5, 2 if made == 1 else 5)
    alive = [job for job in await firing.jobs() if not job.state.terminal]
    assert len(alive) == (1 if overlap == "replace" else made)


async def test_a_run_by_hand_stands_in_the_way_of_the_timetable(firing: Firing) -> None:
    schedule_id = await firing.create(overlap="skip")
    await firing.run(schedule_id)
    firing.house.clock.advance(60)
    fired = await firing.tick()
    assert (fired.jobs, fired.skipped) == (0, 1)


# De-duplication.


async def test_a_job_that_has_not_ended_is_told_as_overlap_when_its_window_is_over(firing: Firing) -> None:
    schedule_id = await firing.create(overlap="skip", template={"dedupe": Dedupe("daily", 90.0)})
    await firing.pass_by(3 * MINUTE, MINUTE)
    assert await firing.told(schedule_id) == [
        (60, 60, 1, "job"),
        (120, 120, 1, "duplicate"),
        (180, 180, 1, "overlap"),
    ]


async def test_a_window_of_the_template_holds_for_fired_jobs(firing: Firing) -> None:
    schedule_id = await firing.create(template={"dedupe": Dedupe("daily", 150.0)})
    await firing.pass_by(4 * MINUTE, MINUTE)
    assert await firing.told(schedule_id) == [
        (60, 60, 1, "job"),
        (120, 180, 2, "duplicate"),
        (240, 240, 1, "job"),
    ]
