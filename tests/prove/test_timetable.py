"""SEMANTICS §6: 42 cron expressions by all IANA zones by 10 years, against watching the clock.

A timetable knows a zone only by its spans. So first the spans of every zone are compared with its clock, hour by hour.
Zones whose clocks have shown the same all those ten years then stand for each other: for each such clock every jump is
watched minute by minute from a day before to a day after, and between the jumps, where clocks go evenly, what fires is
counted day by day.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from headway.model.timetable import Timetable
from headway.model.when import cron
from headway.model.zones import spans
from tests.almanac import EXPRESSIONS, HOUR, MINUTE, ZONES, Expression, jumps, wall, watch, year
from tests.unit.test_timetable import fires, fires_back

pytestmark = pytest.mark.prove

FIRST, LAST = 2020, 2029
START, END = year(FIRST), year(LAST + 1)
NEAR, FAR = 3 * HOUR, 26 * HOUR
SPARSE = 300
"""Expressions with more fires a day are watched near a jump only."""
DENSE = 5000
"""More fires than this are counted minute by minute."""
TICK = timedelta(microseconds=1)


class Jump(msgspec.Struct, frozen=True):
    """A wall clock being set."""

    at: datetime
    before: timedelta
    after: timedelta


Clock = tuple[timedelta, tuple[Jump, ...]]
"""What a wall clock shows in those ten years: its first offset from UTC, and its jumps."""


@cache
def clocks() -> dict[Clock, list[str]]:
    """The clocks of the world, and the zones in which they hang."""
    found: dict[Clock, list[str]] = defaultdict(list)
    for zone in ZONES:
        jumped = tuple(Jump(at, *offsets) for at, offsets in jumps(zone, START, END).items())
        [(instant, local)] = wall(zone, START, START + MINUTE)
        found[local - instant.replace(tzinfo=None), jumped].append(zone)
    return dict(found)


def test_the_spans_of_every_zone_are_what_its_clock_shows() -> None:
    for (offset, jumped), zones in clocks().items():
        expected = [(int(START.timestamp()), int(offset.total_seconds()))]
        expected += [(int(jump.at.timestamp()), int(jump.after.total_seconds())) for jump in jumped]
        for zone in zones:
            assert changes(zone) == expected, zone
    report(f"{len(ZONES)} zones, {len(clocks())} clocks, {sum(len(jumped) for _, jumped in clocks())} jumps")


def changes(zone: str) -> list[tuple[int, int]]:
    """When each offset begins, by the spans."""
    found: list[tuple[int, int]] = []
    for span in (span for number in range(FIRST, LAST + 1) for span in spans(zone, number)):
        if not found or found[-1][1] != span.offset:
            found.append((span.start, span.offset))
    return found


@pytest.mark.parametrize(("gap", "fold"), [(None, None), ("after", "both"), ("skip", "first")])
def test_around_every_jump_we_fire_when_a_watcher_of_the_clock_would(gap: Any, fold: Any) -> None:
    began, compared = time.perf_counter(), 0
    for (_, jumped), [zone, *_] in clocks().items():
        for jump in jumped:
            compared += around(jump.at, zone, gap, fold)
    assert compared
    report(f"gap={gap} fold={fold}: {compared:,} fires compared in {time.perf_counter() - began:.0f} s")


def around(jump: datetime, zone: str, gap: Any, fold: Any) -> int:
    minutes = {reach: wall(zone, jump - reach, jump + reach) for reach in (NEAR, FAR)}
    compared = 0
    for text in EXPRESSIONS:
        expression = parsed(text)
        reach = FAR if per_day(expression) <= SPARSE else NEAR
        expected = list(watch(expression, minutes[reach], gap, fold))
        table = cron(text, tz=zone, gap=gap, fold=fold).timetable()
        compare(table, expected, jump - reach - TICK, jump + reach - TICK, f"{text} in {zone} around {jump}")
        compared += len(expected)
    return compared


def compare(table: Timetable, expected: list[datetime], after: datetime, until: datetime, what: str) -> None:
    """One by one, and backwards; where there are too many, minute by minute."""
    assert table.count(after, until) == len(expected), what
    if len(expected) > DENSE:
        per_minute = Counter((fire - after) // MINUTE for fire in expected)
        for n in range((until - after) // MINUTE):
            assert table.count(after + n * MINUTE, after + (n + 1) * MINUTE) == per_minute[n], what
    else:
        assert fires(table, after, until) == expected, what
        assert fires_back(table, after, until) == expected, what


def test_between_jumps_we_fire_as_often_as_the_local_days_say() -> None:
    began, compared = time.perf_counter(), 0
    for (offset, jumped), [zone, *_] in clocks().items():
        edges = [Jump(START, offset, offset), *jumped, Jump(END, offset, offset)]
        for one, other in pairwise(edges):
            start, end = one.at + FAR, other.at - FAR
            for text in EXPRESSIONS if start < end else []:
                expected = plain_count(parsed(text), start + one.after, end + one.after)
                table = cron(text, tz=zone).timetable()
                assert table.count(start - TICK, end - TICK) == expected, f"{text} in {zone}, {start} to {end}"
                compared += expected
    report(f"{compared:,} fires counted in {time.perf_counter() - began:.0f} s")


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_where_clocks_go_evenly_we_fire_when_the_expression_matches(text: str) -> None:
    expression = parsed(text)
    end = START + timedelta(days=30 if per_day(expression) > DENSE else 400)
    expected = list(watch(expression, wall("UTC", START, end), None, None))
    compare(cron(text).timetable(), expected, START - TICK, end - TICK, text)


@cache
def parsed(text: str) -> Expression:
    return Expression(text)


def per_day(expression: Expression) -> int:
    return len(expression.times) * len(expression.seconds)


def plain_count(expression: Expression, start: datetime, end: datetime) -> int:
    """Fires from `start` up to `end` as the wall shows them, by looking at each day."""
    days = [start.date() + timedelta(days=n) for n in range((end.date() - start.date()).days + 1)]
    whole = sum(len(expression.times) for day in days[1:-1] if expression.on(day))
    midnights = (datetime.combine(day, datetime.min.time(), start.tzinfo) for day in (days[0], days[-1]))
    edges = [midnight + n * MINUTE for midnight in midnights for n in range(24 * 60)]
    rest = sum(start <= minute < end and expression.matches(minute) for minute in edges)
    return (whole + rest) * len(expression.seconds)


def report(line: str) -> None:
    print(f"\n  {line}", end="")
