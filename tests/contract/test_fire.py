"""Schedules fired: each nominal time becomes a job once, or the ledger says why it did not."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from headway.duties.tending import Tending
from headway.model.limits import Retention
from headway.store.scripts.fire import occurrence_id
from tests.contract.firing import DAY, HOUR, MINUTE, SECOND, Firing, minutes
from tests.contract.house import House


@pytest.fixture
def firing(house: House) -> Firing:
    return Firing(house)


# Each nominal time.


async def test_each_nominal_time_becomes_one_job(firing: Firing) -> None:
    schedule_id = await firing.create()
    assert await firing.pass_by(10 * MINUTE, 7 * SECOND) == 9
    assert await firing.nominal() == minutes(*range(1, 10))
    assert await firing.told(schedule_id) == [(at, at, 1, "job") for at in minutes(*range(1, 10))]


async def test_a_fired_job_carries_all_that_the_template_says(firing: Firing) -> None:
    template = {"queue": "reports", "priority": 7, "tags": ("x",), "timeout": 9.0, "payload": '{"a":1}', "retain": 60.0}
    schedule_id = await firing.create(template=template)
    nominal = firing.now + MINUTE
    firing.house.clock.advance(61.5)
    await firing.tick()
    [job] = await firing.jobs()
    assert (job.id, job.schedule_id, job.nominal_at) == (occurrence_id(schedule_id, nominal), schedule_id, nominal)
    assert (job.run_at, job.desired_at, job.created_at) == (nominal, nominal, firing.now)
    assert (job.queue, job.priority, job.tags, job.timeout, job.payload) == ("reports", 7, ("x",), 9.0, '{"a":1}')
    assert (job.name, job.key, job.created_by) == ("report", f"schedule:{schedule_id}", "schedule:report")
    [line] = await firing.lines(schedule_id)
    assert (line.job_id, line.nominal_at, line.reason, line.detail) == (job.id, nominal, None, None)
    [claim] = await firing.house.claim(queue="reports")
    assert claim.id == job.id


async def test_the_key_of_a_template_is_kept(firing: Firing) -> None:
    await firing.create(template={"key": "customer 7"})
    firing.house.clock.advance(60)
    await firing.tick()
    assert [job.key for job in await firing.jobs()] == ["customer 7"]


async def test_nothing_fires_before_its_time(firing: Firing) -> None:
    await firing.create()
    firing.house.clock.advance(59.999)
    fired = await firing.tick()
    assert (fired.jobs, fired.at) == (0, firing.now)
    assert fired.wait == pytest.approx(0.001, abs=1e-6)
    firing.house.clock.advance(fired.wait or 0)
    assert (await firing.tick()).jobs == 1


async def test_the_wait_is_that_for_the_next_schedule(firing: Firing) -> None:
    assert (await firing.tick()).wait is None
    await firing.create(name="daily", schedule="0 6 * * *")
    await firing.create(name="hourly", schedule="5 * * * *")
    await firing.create(name="paused", paused=True)
    assert (await firing.tick()).wait == 300.0


async def test_a_tick_takes_those_first_that_are_due_longest_and_tells_that_some_are_left(firing: Firing) -> None:
    for number in range(5):
        await firing.create(name=f"s{number}", schedule=f"{5 - number} * * * *")
    firing.house.clock.advance(400)
    fired = await firing.house.store.fire(limit=2)
    assert (fired.schedules, fired.jobs, fired.wait) == (2, 2, -220.0)
    assert await firing.nominal() == minutes(1, 2)
    assert fired.clear_until == firing.now - 220 * SECOND
    assert (await firing.tick(limit=2)).jobs == 3
    assert await firing.nominal() == minutes(1, 2, 3, 4, 5)


async def test_a_tick_after_another_fires_nothing_again(firing: Firing) -> None:
    await firing.create()
    firing.house.clock.advance(60)
    assert (await firing.tick()).jobs == 1
    for _ in range(3):
        assert (await firing.house.store.fire(previous=None)).jobs == 0


async def test_fired_jobs_ring_for_the_workers_of_their_queue(firing: Firing) -> None:
    await firing.create(template={"queue": "reports"})
    heard: list[str] = []
    stop = await firing.house.store.listen(heard.append)
    firing.house.clock.advance(60)
    await firing.tick()
    async with asyncio.timeout(10):
        while "reports" not in heard:
            await asyncio.sleep(0.01)
    stop()


# Late.


@pytest.mark.parametrize(
    ("misfire", "told"),
    [
        ("run_once", [(60, 540, 9, "coalesced"), (600, 600, 1, "job")]),
        ("skip", [(60, 540, 9, "missed"), (600, 600, 1, "job")]),
        ("run_all", [(at, at, 1, "job") for at in minutes(*range(1, 11))]),
    ],
)
async def test_what_was_missed_goes_by_the_policy(
    firing: Firing, misfire: str, told: list[tuple[float, float, int, str]]
) -> None:
    schedule_id = await firing.create(misfire=misfire)
    firing.house.clock.advance(605)
    fired = await firing.tick()
    assert (fired.jobs, fired.skipped) == (sum(w == "job" for *_, w in told), sum(n for *_, n, w in told if w != "job"))
    assert await firing.told(schedule_id) == told


async def test_the_ledger_says_that_no_scheduler_ran(firing: Firing) -> None:
    schedule_id = await firing.create()
    firing.house.clock.advance(605)
    await firing.tick()
    [skipped, _] = await firing.lines(schedule_id)
    assert skipped.detail is not None
    assert "no scheduler ran in time" in skipped.detail


async def test_what_is_late_by_more_than_a_minute_is_skipped_where_that_is_the_policy(firing: Firing) -> None:
    schedule_id = await firing.create(misfire="skip", schedule="0 * * * *")
    firing.house.clock.advance(3600 + 61)
    assert (await firing.tick()).jobs == 0
    assert await firing.told(schedule_id) == [(3600, 3600, 1, "missed")]


async def test_run_all_keeps_to_its_limit(firing: Firing) -> None:
    schedule_id = await firing.create(misfire="run_all", misfire_limit=3)
    firing.house.clock.advance(605)
    assert (await firing.tick()).jobs == 3
    assert (await firing.told(schedule_id))[0] == (60, 420, 7, "limit")
    assert await firing.nominal() == minutes(8, 9, 10)


async def test_a_tick_that_makes_very_many_jobs_leaves_the_rest_to_the_next(
    firing: Firing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.store.scripts.fire.JOBS_AT_ONCE", 15)
    for number in range(5):
        await firing.create(name=f"s{number}", misfire="run_all")
    firing.house.clock.advance(600)
    fired = await firing.house.store.fire()
    assert (fired.schedules, fired.jobs, fired.clear) == (2, 20, False)
    assert (await firing.tick()).jobs == 30


async def test_a_scheduler_that_looks_all_the_time_misses_nothing(firing: Firing) -> None:
    await firing.create(schedule={"every": 0.5})
    assert await firing.pass_by(10 * SECOND, 2 * SECOND) == 20 - 3  # before its first tick it did not look
    assert (await firing.tick()).skipped == 0


# When jobs run.


async def test_jitter_moves_the_run_and_not_the_nominal_time(firing: Firing) -> None:
    keys = [await firing.create(name=f"s{n}", jitter=30.0) for n in range(20)]
    firing.house.clock.advance(60)
    await firing.tick()
    jobs = await firing.jobs()
    assert {job.nominal_at for job in jobs} == {firing.now}
    delays = [(job.run_at - firing.now).total_seconds() for job in jobs]
    assert all(0 <= delay <= 30 for delay in delays)
    assert max(delays) - min(delays) > 5
    assert {job.schedule_id for job in jobs} == set(keys)


# From start to end.


async def test_nothing_fires_before_the_start_or_after_the_end(firing: Firing) -> None:
    start = firing.now + 5 * MINUTE
    schedule_id = await firing.create(start=start, end=start + 2 * MINUTE)
    await firing.pass_by(10 * MINUTE, 10 * SECOND)
    assert await firing.nominal() == minutes(5, 6, 7)
    ended = await firing.get(schedule_id)
    assert (ended.next_at, ended.last_at) == (None, start + 2 * MINUTE)
    fired = await firing.tick()
    assert (fired.jobs, fired.wait) == (0, None)


async def test_a_single_time_fires_once_and_can_not_fire_again(firing: Firing) -> None:
    schedule_id = await firing.create(schedule={"at": firing.now + HOUR})
    firing.house.clock.advance(3 * 3600)
    assert (await firing.tick()).jobs == 1
    firing.house.clock.advance(86_400)
    assert (await firing.tick()).jobs == 0
    assert (await firing.get(schedule_id)).next_at is None


# The ledger.


async def test_the_ledger_is_read_page_by_page(firing: Firing) -> None:
    schedule_id = await firing.create()
    await firing.pass_by(5 * MINUTE, MINUTE)
    page = await firing.house.store.occurrences(schedule_id, limit=2)
    assert [firing.since_start(line.nominal_at) for line in page] == minutes(5, 4)
    page = await firing.house.store.occurrences(schedule_id, before=page[-1].nominal_at, limit=2)
    assert [firing.since_start(line.nominal_at) for line in page] == minutes(3, 2)


async def test_the_ledger_is_counted_by_day_and_fate(firing: Firing) -> None:
    schedule_id = await firing.create(schedule="0 */6 * * *", misfire="run_all", overlap="allow")
    other = await firing.create(name="other", schedule="0 */6 * * *")
    firing.house.clock.advance(3 * 86_400)
    await firing.tick()
    lines = await firing.lines(schedule_id)
    assert len(lines) == 12
    days = await firing.house.store.calendar(schedule_id)
    told = {line.nominal_at.date(): 0 for line in lines}
    for line in lines:
        told[line.nominal_at.date()] += 1
    assert {day.nominal_at.date(): day.count for day in days} == told
    assert [day.nominal_at for day in days] == sorted((day.nominal_at for day in days), reverse=True)
    assert {day.job_id for day in days} <= {line.job_id for line in lines}
    [fired, *skipped] = await firing.house.store.calendar(other)
    assert (fired.count, fired.reason, {line.reason for line in skipped}) == (1, None, {"coalesced"})
    assert sum(line.count for line in skipped) == 11


async def test_a_skip_goes_on_where_the_last_line_is_one_for_the_same_reason(firing: Firing) -> None:
    schedule_id = await firing.create(overlap="skip")
    await firing.pass_by(3 * MINUTE, MINUTE)
    firing.house.clock.advance(300)
    await firing.tick()
    assert await firing.told(schedule_id) == [
        (60, 60, 1, "job"),
        (120, 180, 2, "overlap"),
        (240, 420, 4, "coalesced"),
        (480, 480, 1, "overlap"),
    ]


async def test_old_lines_of_the_ledger_are_removed_and_young_ones_stay(firing: Firing) -> None:
    schedule_id = await firing.create(schedule="0 0 * * *")
    await firing.pass_by(10 * DAY, DAY)
    assert await firing.house.store.prune_ledger(4.5 * 86_400, limit=3) == 3
    assert await firing.house.store.prune_ledger(4.5 * 86_400, limit=3) == 2
    assert await firing.house.store.prune_ledger(4.5 * 86_400, limit=3) == 0
    assert [told[0] for told in await firing.told(schedule_id)] == [day * 86_400 for day in range(6, 11)]


async def test_whoever_prunes_prunes_the_ledger_too(firing: Firing) -> None:
    schedule_id = await firing.create(schedule="0 0 * * *", misfire="run_all")
    await firing.pass_by(3 * DAY, DAY)
    tending = Tending(
        firing.house.new_id(),
        firing.house.clock,
        retention=Retention(),
        ended=lambda: 0,
        on_rescued=lambda jobs: None,
    )
    firing.house.clock.advance(88.5 * 86_400)
    await tending.prune(firing.house.store)
    assert [told[0] / 86_400 for told in await firing.told(schedule_id)] == [2, 3]


async def test_a_month_without_a_scheduler_is_a_line_or_two_for_each(firing: Firing) -> None:
    keys = [await firing.create(name=f"s{n}", misfire=("run_once", "skip")[n % 2]) for n in range(100)]
    firing.house.clock.advance(timedelta(days=30).total_seconds())
    fired = await firing.tick()
    assert (fired.jobs, fired.skipped) == (100, 100 * (30 * 24 * 60 - 1))
    assert [len(await firing.lines(schedule_id)) for schedule_id in keys] == [2] * 100


def test_an_occurrence_has_the_same_id_for_whoever_makes_it() -> None:
    at = datetime(2030, 1, 31, 6, tzinfo=UTC)
    made = occurrence_id(UUID(int=7), at)
    assert made == occurrence_id(UUID(int=7), at)
    assert made != occurrence_id(UUID(int=8), at)
    assert made != occurrence_id(UUID(int=7), at + timedelta(seconds=0.1))
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert made.int >> 80 == at.timestamp() * 1000
