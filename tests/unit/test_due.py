"""What becomes of the times of a schedule at a tick: on time, late, paused, and when the clock is set."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.model.due import Due, SkipReason, Standing, Tick, due
from headway.model.schedule import Misfire, Schedule, from_body
from headway.model.timetable import CronTimes, Intervals

ID = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86_400))
MONTH = 30 * DAY


def schedule(**changes: Any) -> Schedule:
    body: dict[str, Any] = {"name": "n", "schedule": "* * * * *", "job": {"callback_url": "https://example.com"}}
    return from_body(body | changes, id=ID, created_at=NOON - 2 * MONTH)


def tick(now: datetime, previous: datetime | None = None) -> Tick:
    return Tick(now=now, previous=previous)


def nominal(result: Due) -> list[datetime]:
    return [fire.nominal for fire in result.fires]


# On time.


@pytest.mark.parametrize("misfire", Misfire)
def test_a_time_that_has_come_fires_whatever_the_policy(misfire: Misfire) -> None:
    result = due(schedule(misfire=misfire), Standing(next_at=NOON), tick(NOON + 0.3 * SECOND))
    assert nominal(result) == [NOON]
    assert result.skipped is None
    assert result.standing == Standing(next_at=NOON + MINUTE, last_at=NOON)


def test_a_time_fires_at_its_very_instant_and_not_before() -> None:
    assert nominal(due(schedule(), Standing(next_at=NOON), tick(NOON))) == [NOON]
    early = due(schedule(), Standing(next_at=NOON), tick(NOON - 0.001 * SECOND))
    assert early == Due(standing=Standing(next_at=NOON))


def test_jitter_moves_the_run_and_not_the_nominal_time() -> None:
    made = schedule(jitter=30)
    [fire] = due(made, Standing(next_at=NOON), tick(NOON)).fires
    assert (fire.nominal, fire.run_at) == (NOON, made.run_at(NOON))
    assert fire.run_at > NOON


@pytest.mark.parametrize("misfire", Misfire)
def test_several_times_between_two_close_ticks_are_not_missed(misfire: Misfire) -> None:
    made = schedule(schedule={"every": 0.5}, misfire=misfire, start=NOON)
    result = due(made, Standing(next_at=NOON), tick(NOON + SECOND, previous=NOON - 0.1 * SECOND))
    assert nominal(result) == [NOON, NOON + 0.5 * SECOND, NOON + SECOND]
    assert result.skipped is None


def test_times_that_a_recent_tick_left_undecided_are_late_all_the_same() -> None:
    result = due(schedule(), Standing(next_at=NOON - HOUR), tick(NOON + SECOND, previous=NOON))
    assert nominal(result) == [NOON]


# Late.


def test_run_once_fires_the_latest_for_all() -> None:
    result = due(schedule(), Standing(next_at=NOON - 5 * MINUTE), tick(NOON + SECOND))
    assert nominal(result) == [NOON]
    assert result.skipped is not None
    assert (result.skipped.first, result.skipped.last) == (NOON - 5 * MINUTE, NOON - MINUTE)
    assert (result.skipped.count, result.skipped.reason) == (5, SkipReason.COALESCED)


def test_run_once_fires_however_late_it_is() -> None:
    daily = schedule(schedule="0 12 * * *")
    result = due(daily, Standing(next_at=NOON), tick(NOON + 23 * HOUR))
    assert nominal(result) == [NOON]
    assert result.standing.next_at == NOON + DAY


def test_skip_leaves_out_what_is_late_by_more_than_a_minute() -> None:
    daily = schedule(schedule="0 12 * * *", misfire="skip")
    assert nominal(due(daily, Standing(next_at=NOON), tick(NOON + MINUTE))) == [NOON]
    result = due(daily, Standing(next_at=NOON), tick(NOON + MINUTE + 0.001 * SECOND))
    assert nominal(result) == []
    assert result.skipped is not None
    assert (result.skipped.first, result.skipped.last, result.skipped.count) == (NOON, NOON, 1)
    assert result.skipped.reason is SkipReason.MISSED
    assert result.standing == Standing(next_at=NOON + DAY, last_at=NOON)


def test_skip_fires_the_latest_when_it_is_on_time() -> None:
    result = due(schedule(misfire="skip"), Standing(next_at=NOON - HOUR), tick(NOON + 3 * SECOND))
    assert nominal(result) == [NOON]
    assert result.skipped is not None
    assert (result.skipped.count, result.skipped.reason) == (60, SkipReason.MISSED)


def test_run_all_fires_all() -> None:
    result = due(schedule(misfire="run_all"), Standing(next_at=NOON - 5 * MINUTE), tick(NOON))
    assert nominal(result) == [NOON - n * MINUTE for n in range(5, -1, -1)]
    assert result.skipped is None


def test_run_all_keeps_to_its_limit_and_takes_the_latest() -> None:
    made = schedule(misfire="run_all", misfire_limit=3)
    result = due(made, Standing(next_at=NOON - 5 * MINUTE), tick(NOON))
    assert nominal(result) == [NOON - 2 * MINUTE, NOON - MINUTE, NOON]
    assert result.skipped is not None
    assert (result.skipped.first, result.skipped.last) == (NOON - 5 * MINUTE, NOON - 3 * MINUTE)
    assert (result.skipped.count, result.skipped.reason) == (3, SkipReason.LIMIT)


def test_while_paused_times_are_skipped_and_say_so() -> None:
    result = due(schedule(paused=True), Standing(next_at=NOON - HOUR), tick(NOON))
    assert nominal(result) == []
    assert result.skipped is not None
    assert (result.skipped.count, result.skipped.reason) == (61, SkipReason.PAUSED)
    assert result.standing == Standing(next_at=NOON + MINUTE, last_at=NOON)


def test_nothing_beyond_the_end_is_due_or_skipped() -> None:
    made = schedule(end=NOON - 2 * MINUTE)
    result = due(made, Standing(next_at=NOON - 4 * MINUTE), tick(NOON))
    assert nominal(result) == [NOON - 2 * MINUTE]
    assert result.skipped is not None
    assert result.skipped.count == 2
    assert result.standing == Standing(next_at=None, last_at=NOON - 2 * MINUTE)
    assert due(made, result.standing, tick(NOON + DAY)) == Due(standing=result.standing)


def test_an_end_moved_to_earlier_leaves_nothing_due() -> None:
    for form in ("* * * * *", {"every": 60}):
        made = schedule(schedule=form, end=NOON - HOUR)
        assert due(made, Standing(next_at=NOON), tick(NOON)) == Due(standing=Standing(next_at=None))


def test_a_start_moved_to_later_is_waited_for() -> None:
    made = schedule(start=NOON + HOUR)
    assert due(made, Standing(next_at=NOON), tick(NOON)) == Due(standing=Standing(next_at=NOON + HOUR))


def test_a_single_time_fires_once() -> None:
    made = schedule(schedule={"at": NOON})
    result = due(made, Standing(next_at=NOON), tick(NOON + HOUR))
    assert nominal(result) == [NOON]
    assert result.standing == Standing(next_at=None, last_at=NOON)


def test_a_next_time_that_the_timetable_no_longer_has_does_not_fire() -> None:
    hourly = schedule(schedule="30 * * * *")
    result = due(hourly, Standing(next_at=NOON), tick(NOON + MINUTE))
    assert result == Due(standing=Standing(next_at=NOON + 30 * MINUTE))


# A month without ticks costs no more than an hour without.


class Steps:
    """Counts the questions that a timetable is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        for table in (CronTimes, Intervals):
            for name in ("after", "last", "count"):
                monkeypatch.setattr(table, name, self._counted(getattr(table, name)))

    def _counted(self, method: Any) -> Any:
        def counting(*args: Any) -> Any:
            self.taken += 1
            return method(*args)

        return counting


@pytest.mark.parametrize("form", ["* * * * * *", {"every": 1}])
@pytest.mark.parametrize(("misfire", "fired"), [("skip", 1), ("run_once", 1), ("run_all", 100)])
def test_a_month_of_missed_seconds_is_counted_and_not_walked(
    form: Any, misfire: str, fired: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = schedule(schedule=form, misfire=misfire, timezone="Europe/Berlin")
    steps = Steps(monkeypatch)
    result = due(made, Standing(next_at=NOON - MONTH), tick(NOON))
    assert nominal(result) == [NOON - n * SECOND for n in range(fired - 1, -1, -1)]
    assert result.skipped is not None
    assert result.skipped.count + fired == 30 * 86_400 + 1
    assert (result.skipped.first, result.skipped.last) == (NOON - MONTH, NOON - fired * SECOND)
    assert steps.taken <= 2 * fired + 20


@pytest.mark.parametrize("away", [timedelta(0), MONTH])
def test_a_thousand_due_schedules_take_a_fraction_of_a_second(away: timedelta) -> None:
    made = [schedule(schedule=f"{n % 60} {n // 60} * * *", timezone="Europe/Berlin") for n in range(1000)]
    next_at = [one.after(NOON - away - DAY) for one in made]
    began = time.process_time()
    for one, at in zip(made, next_at, strict=True):
        due(one, Standing(next_at=at), tick(NOON))
    # About 30 ms; the rest is for machines that are slow and busy.
    assert time.process_time() - began < 2


# Clocks that are set. A ledger keeps what fired, as a store does.


class Ledger:
    """A schedule, ticked by a clock that may be set, with what became of its times."""

    def __init__(self, made: Schedule, now: datetime) -> None:
        self.schedule = made
        self.now = now
        self.previous: datetime | None = None
        self.standing = Standing(next_at=made.after(now))
        self.fired: list[datetime] = []
        self.skipped = 0

    def tick(self) -> list[datetime]:
        result = due(self.schedule, self.standing, tick(self.now, self.previous), self._recorded())
        self.standing, self.previous = result.standing, self.now
        self.fired += nominal(result)
        self.skipped += result.skipped.count if result.skipped else 0
        return nominal(result)

    def run(self, minutes: int) -> list[datetime]:
        """Tick each second; what fired meanwhile."""
        before = len(self.fired)
        for _ in range(60 * minutes):
            self.now += SECOND
            self.tick()
        return self.fired[before:]

    def _recorded(self) -> set[datetime]:
        first, last = self.standing.next_at, self.standing.last_at
        if first is None or last is None or last < first:
            return set()
        return {at for at in self.fired if first <= at <= self.now}


@pytest.mark.parametrize("misfire", Misfire)
@pytest.mark.parametrize("form", ["* * * * *", {"every": 60}])
def test_a_clock_set_back_by_an_hour_fires_nothing_twice(form: Any, misfire: Misfire) -> None:
    ledger = Ledger(schedule(schedule=form, misfire=misfire), NOON + SECOND)
    assert len(ledger.run(90)) == 90
    ledger.now -= HOUR
    assert ledger.run(60) == []
    assert len(ledger.run(10)) == 10
    assert len(set(ledger.fired)) == len(ledger.fired) == 100
    assert ledger.skipped == 0


@pytest.mark.parametrize(("misfire", "at_once"), [("skip", 1), ("run_once", 1), ("run_all", 60)])
def test_a_clock_set_ahead_by_an_hour_goes_by_the_policy(misfire: str, at_once: int) -> None:
    ledger = Ledger(schedule(misfire=misfire), NOON + SECOND)
    ledger.run(3)
    ledger.now += HOUR
    assert len(ledger.tick()) == at_once
    assert len(ledger.run(5)) == 5
    assert len(set(ledger.fired)) == len(ledger.fired)
    assert ledger.skipped + len(ledger.fired) == 68


@pytest.mark.parametrize("misfire", Misfire)
@pytest.mark.parametrize("form", ["* * * * *", {"every": 60}, "*/2 0-23 * * *"])
def test_a_clock_that_was_a_month_ahead_stalls_nothing_when_it_is_set_right(form: Any, misfire: Misfire) -> None:
    ledger = Ledger(schedule(schedule=form, misfire=misfire), NOON + SECOND)
    usual = len(ledger.run(10))
    ledger.now += MONTH + 90 * SECOND
    ledger.tick()
    ledger.now -= MONTH + 90 * SECOND
    assert len(ledger.run(10)) == usual
    assert len(set(ledger.fired)) == len(ledger.fired)


def test_a_single_time_that_fired_stays_so_when_the_clock_is_set_back() -> None:
    ledger = Ledger(schedule(schedule={"at": NOON}), NOON - HOUR)
    assert ledger.run(61) == [NOON]
    ledger.now -= HOUR
    assert ledger.run(120) == []


def test_what_fired_is_not_counted_among_the_skipped() -> None:
    standing = Standing(next_at=NOON - 4 * MINUTE, last_at=NOON + HOUR)
    result = due(schedule(), standing, tick(NOON), {NOON - 3 * MINUTE, NOON})
    assert nominal(result) == []
    assert result.skipped is not None
    assert result.skipped.count == 3
    assert result.standing == Standing(next_at=NOON + MINUTE, last_at=NOON + HOUR)


@given(st.integers(0, 2**32), st.sampled_from(list(Misfire)))
def test_however_the_clock_is_set_nothing_fires_twice_or_early_and_nothing_stalls(seed: int, misfire: Misfire) -> None:
    chance = random.Random(seed)
    ledger = Ledger(schedule(misfire=misfire, misfire_limit=5), NOON + SECOND)
    for _ in range(30):
        ledger.now += chance.choice([SECOND, 20 * SECOND, MINUTE, 5 * MINUTE, HOUR, -HOUR, -MINUTE, MONTH, -MONTH])
        assert all(at <= ledger.now for at in ledger.tick())
        next_at = ledger.standing.next_at
        assert next_at is not None
        assert timedelta(0) < next_at - ledger.now <= MINUTE
    assert len(set(ledger.fired)) == len(ledger.fired)
