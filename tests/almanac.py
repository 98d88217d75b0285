"""When cron expressions fire, found out by watching the clock: every minute is looked at, nothing is worked out.

Slow and plain on purpose, and without any code of the product's or its libraries, so that the two can be compared.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
MONTHS = {name.upper(): number for number, name in enumerate(calendar.month_abbr) if name}
WEEKDAYS = {name: number for number, name in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])}
ZONES = sorted(available_timezones() - {"localtime", "Factory"})

EXPRESSIONS = [
    # Every hour: real instants.
    "* * * * *",
    "*/15 * * * *",
    "0 * * * *",
    "30 * * * *",
    "7,37,59 * * * *",
    "5-50/9 * * * 1-5",
    "30 * 29 * *",
    "*/20 * * 3,4,10,11 SUN",
    "0,30 * L * *",
    "15 * * * SUN#1",
    "0 * * * 7L",
    "10 10 * * * *",
    "*/20 */30 * * * *",
    "0 59 * * * *",
    "* * * * * *",
    # Hours named: each local time once.
    "0 0 * * *",
    "30 0 * * *",
    "0 1 * * *",
    "30 1 * * *",
    "59 1 * * 0",
    "0 2 * * *",
    "15 2 * * *",
    "30 2 * * *",
    "*/15 2 * * *",
    "* 2 * * *",
    "0 3 * * *",
    "0 2,3 * * *",
    "*/10 1-3 * * *",
    "0 */2 * * *",
    "30 */1 * * *",
    "45 0-23 * * *",
    "0 6 * * MON-FRI",
    "0 12 1,15 * *",
    "30 23 L * *",
    "0 4 LW * *",
    "30 2 * * SUN#2",
    "30 1 * * 7L",
    "30 2 13 * FRI",
    "0 0 29 2 *",
    "30 30 2 * * *",
    "*/30 15 1,2 * * *",
    "0 0 0 * 3,10,11 SUN",
]


class Expression:
    """The minutes, and the seconds in them, that an expression lets through."""

    def __init__(self, text: str) -> None:
        *seconds, minute, hour, self._day, month, self._weekday = text.upper().split()
        self.text = text
        self.every_hour = hour == "*"
        self.seconds = sorted(values(seconds[0], 0, 59)) if seconds else [0]
        hours, minutes = values(hour, 0, 23), values(minute, 0, 59)
        self.times = {(hour, minute) for hour in hours for minute in minutes}
        self._months = values(month, 1, 12, MONTHS)
        self.on = lru_cache(maxsize=None)(self._on)

    def matches(self, local: datetime) -> bool:
        return (local.hour, local.minute) in self.times and self.on(local.date())

    def _on(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        by_day = any(_is_day(term, day) for term in self._day.split(","))
        by_weekday = any(_is_weekday(term, day) for term in self._weekday.split(","))
        if self._day.startswith("*") or self._weekday.startswith("*"):
            return by_day and by_weekday
        return by_day or by_weekday


def values(field: str, low: int, high: int, names: dict[str, int] | None = None) -> set[int]:
    """The numbers that a list of ranges with steps names."""
    found: set[int] = set()
    for term in field.split(","):
        span, _, step = term.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        start = _number(first, names)
        stop = _number(last, names) if last else high if step else start
        found.update(range(start, stop + 1, int(step or 1)))
    return found


def _number(text: str, names: dict[str, int] | None) -> int:
    return names[text] if names and text in names else int(text)


def _is_day(term: str, day: date) -> bool:
    last = calendar.monthrange(day.year, day.month)[1]
    if term == "L":
        return day.day == last
    if term == "LW":
        return day == max(d for d in (day.replace(day=n) for n in range(1, last + 1)) if d.weekday() < 5)
    return day.day in values(term, 1, 31)


def _is_weekday(term: str, day: date) -> bool:
    number = day.isoweekday() % 7
    name, nth, which = term.partition("#")
    if nth:
        return number == values(name, 0, 7, WEEKDAYS).pop() % 7 and (day.day - 1) // 7 + 1 == int(which)
    if term.endswith("L"):
        return number == int(term[:-1]) % 7 and (day + timedelta(days=7)).month != day.month
    return number in {value % 7 for value in values(term, 0, 7, WEEKDAYS)}


def watch(
    expression: Expression, minutes: list[tuple[datetime, datetime]], gap: str | None, fold: str | None
) -> Iterator[datetime]:
    """The instants that fire while the clock is watched; `minutes` are (instant, what the wall shows)."""
    gap = gap or ("skip" if expression.every_hour else "after")
    fold = fold or ("both" if expression.every_hour else "first")
    seen: set[datetime] = set()
    expected = minutes[0][1]
    for instant, local in minutes:
        skipped = {expected + n * MINUTE for n in range((local - expected) // MINUTE)} - seen
        caught_up = gap == "after" and any(expression.matches(time) for time in skipped)
        fires = expression.matches(local) and (fold == "both" or local not in seen)
        if caught_up and not (fires and expression.seconds[0] == 0):
            yield instant
        if fires:
            yield from (instant + timedelta(seconds=second) for second in expression.seconds)
        seen.add(local)
        expected = local + MINUTE


def wall(zone: str, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Each minute from `start` up to, not including, `end`, and what the wall shows then."""
    clock = ZoneInfo(zone)
    instants = (start + n * MINUTE for n in range((end - start) // MINUTE))
    return [(instant, instant.astimezone(clock).replace(tzinfo=None, fold=0)) for instant in instants]


def jumps(zone: str, start: datetime, end: datetime) -> dict[datetime, tuple[timedelta, timedelta]]:
    """The minutes at which the wall jumps, and its offset before and after, from looking at it every hour."""
    clock = ZoneInfo(zone)
    found: dict[datetime, tuple[timedelta, timedelta]] = {}
    before = _offset(clock, start)
    for hour in (start + n * HOUR for n in range((end - start) // HOUR + 1)):
        after = _offset(clock, hour)
        if after != before:
            minute = next(m for n in range(59, -1, -1) if _offset(clock, m := hour - n * MINUTE) == after)
            found[minute] = (before, after)
        before = after
    return found


def _offset(clock: ZoneInfo, instant: datetime) -> timedelta:
    offset = instant.astimezone(clock).utcoffset()
    assert offset is not None
    return offset


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)
