"""A cron expression on the local clock: which wall-clock times match, forwards, backwards and counted.

cronsim reads the fields and knows the days; its own iteration is not used. What matches is a set of days times a set
of times of day, so the next match, the one before and the number of matches between two times are found by rank,
without walking from match to match: the matches of a month cost as much as those of a minute.

A local time is a number here: seconds from 1970-01-01 00:00 on the wall, whatever the zone.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import date, datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError

from headway.model.errors import InvalidSchedule

DAY = 86_400
EPOCH_DAY = date(1970, 1, 1).toordinal()
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FORM = "minute hour day month weekday, e.g. '0 6 * * MON-FRI', with six fields seconds first, e.g. '*/10 * * * * *'"
LONGEST_TEXT = 1000
_ANY_TIME = datetime(2000, 1, 1)  # noqa: DTZ001 - cronsim wants a naive start, although only its fields are read
_WEEKDAY_CYCLE = range(2000, 2028)
"""Years in which 29 February falls on each weekday: what matches no day of them never matches."""


class Days:
    """The days that the day, month and weekday fields let through, a bit for each day of a month."""

    def __init__(self, day: str, month: str, weekday: str) -> None:
        # Apart, because together cronsim calls a 31st of February a wrong day instead of saying that it never comes.
        self._rule = CronSim(f"0 0 {day} * {weekday}", _ANY_TIME)
        self._months = CronSim(f"0 0 * {month} *", _ANY_TIME).months
        self._known: dict[tuple[int, int], int] = {}

    def __contains__(self, day: int) -> bool:
        on = date.fromordinal(day + EPOCH_DAY)
        return bool(self._month(on.year, on.month) >> on.day & 1)

    def ever(self) -> bool:
        return any(self._month(year, month) for year in _WEEKDAY_CYCLE for month in sorted(self._months))

    def on_or_after(self, day: int) -> int:
        on = date.fromordinal(day + EPOCH_DAY)
        later = self._month(on.year, on.month) >> on.day << on.day
        while not later:
            on = date(on.year + on.month // 12, on.month % 12 + 1, 1)
            later = self._month(on.year, on.month)
        return _number(on, (later & -later).bit_length() - 1)

    def on_or_before(self, day: int) -> int:
        on = date.fromordinal(day + EPOCH_DAY)
        earlier = self._month(on.year, on.month) & ((2 << on.day) - 1)
        while not earlier:
            on = date(on.year - (on.month == 1), (on.month - 2) % 12 + 1, 1)
            earlier = self._month(on.year, on.month)
        return _number(on, earlier.bit_length() - 1)

    def count(self, start: int, stop: int) -> int:
        """How many days from `start` up to, not including, `stop` match."""
        total = 0
        on, end = date.fromordinal(start + EPOCH_DAY), date.fromordinal(stop + EPOCH_DAY)
        while (on.year, on.month) < (end.year, end.month):
            total += (self._month(on.year, on.month) >> on.day).bit_count()
            on = date(on.year + on.month // 12, on.month % 12 + 1, 1)
        below_end = self._month(on.year, on.month) & ((1 << end.day) - 1)
        return total + (below_end >> on.day).bit_count()

    def _month(self, year: int, month: int) -> int:
        known = self._known.get((year, month))
        if known is None:
            known = self._known[year, month] = self._matching(year, month)
        return known

    def _matching(self, year: int, month: int) -> int:
        if month not in self._months:
            return 0
        first = date(year, month, 1).toordinal()
        after = date(year + month // 12, month % 12 + 1, 1).toordinal()
        return sum(2 << at - first for at in range(first, after) if self._rule.match_day(date.fromordinal(at)))


class Pattern:
    """A parsed cron expression. `every_hour` says that its hour field is `*`, literally: `*/1` names hours."""

    def __init__(self, text: str) -> None:
        second, minute, hour, day, month, weekday = _fields(text)
        try:
            times = CronSim(f"{second} {minute} {hour} * * *", _ANY_TIME)
            self._days = _days(day, month, weekday)
        except CronSimError as error:
            part = str(error).removeprefix("Bad ")
            raise InvalidSchedule(
                f"schedule: the {part} of {text!r} is wrong; write {FORM}", field="schedule"
            ) from error
        if not self._days.ever():
            raise InvalidSchedule(
                f"schedule: {text!r} never fires, because no month {month!r} has a day {day!r}; "
                "for the last day of a month write L, e.g. '0 6 L * *'",
                field="schedule",
            )
        self.every_hour = hour == "*"
        self._hours, self._minutes, self._seconds = (
            bytes(sorted(values)) for values in (times.hours, times.minutes, times.seconds)
        )
        self._per_hour = len(self._minutes) * len(self._seconds)
        self._per_day = len(self._hours) * self._per_hour

    def at_or_after(self, local: int) -> int:
        day, second = divmod(local, DAY)
        rank = self._rank(second)
        if rank < self._per_day and day in self._days:
            return day * DAY + self._time(rank)
        return self._days.on_or_after(day + 1) * DAY + self._time(0)

    def at_or_before(self, local: int) -> int:
        day, second = divmod(local + 1, DAY)
        rank = self._rank(second)
        if rank and day in self._days:
            return day * DAY + self._time(rank - 1)
        return self._days.on_or_before(day - 1) * DAY + self._time(self._per_day - 1)

    def count(self, start: int, stop: int) -> int:
        """How many local times from `start` up to, not including, `stop` match."""
        if stop <= start:
            return 0
        days = self._days.count(start // DAY, stop // DAY)
        return days * self._per_day + self._earlier_that_day(stop) - self._earlier_that_day(start)

    def _earlier_that_day(self, local: int) -> int:
        day, second = divmod(local, DAY)
        return self._rank(second) if day in self._days else 0

    def _rank(self, second: int) -> int:
        """How many matching times of day lie before this one."""
        hour, rest = divmod(second, 3600)
        place = bisect_left(self._hours, hour)
        rank = place * self._per_hour
        if hour not in self._hours:
            return rank
        minute, second = divmod(rest, 60)
        place = bisect_left(self._minutes, minute)
        rank += place * len(self._seconds)
        return rank + bisect_left(self._seconds, second) if minute in self._minutes else rank

    def _time(self, rank: int) -> int:
        """The matching time of day that has `rank` others before it."""
        hour, rest = divmod(rank, self._per_hour)
        minute, second = divmod(rest, len(self._seconds))
        return self._hours[hour] * 3600 + self._minutes[minute] * 60 + self._seconds[second]


def _fields(text: str) -> list[str]:
    """The six fields, seconds first."""
    fields = ALIASES.get(text.strip().lower(), text).split() if len(text) <= LONGEST_TEXT else []
    if len(fields) == 5:
        return ["0", *fields]
    if len(fields) == 6:
        return fields
    shown = text if len(text) <= 100 else f"{text[:100]}…"
    known = ", ".join(ALIASES)
    raise InvalidSchedule(
        f"schedule: {shown!r} is no cron expression; write {FORM}, or one of {known}", field="schedule"
    )


@lru_cache(maxsize=4096)
def _days(day: str, month: str, weekday: str) -> Days:
    """Shared, because most expressions differ in their times and few in their days."""
    return Days(day, month, weekday)


def _number(on: date, day: int) -> int:
    return on.replace(day=day).toordinal() - EPOCH_DAY
