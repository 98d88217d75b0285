"""How users say when a schedule fires, in the library and in bodies: a cron expression, an interval, a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import msgspec

from headway.model.errors import InvalidSchedule
from headway.model.moments import KNOWN, definite
from headway.model.timetable import Fold, Gap, Intervals, Note, Once, Timetable, cron_times
from headway.model.zones import zone

SHORTEST = 0.1
LONGEST = 100 * 366 * 86_400.0
FORM = """a cron expression like "0 6 * * MON-FRI", {"every": 300} or {"at": "2030-01-31T06:00:00+01:00"}"""


class Cron(msgspec.Struct, frozen=True, tag="cron"):
    """By wall clock. `gap` and `fold` None: what the expression's hour field says (`model/timetable.py`)."""

    expression: str
    timezone: str = "UTC"
    gap: Gap | None = None
    fold: Fold | None = None

    def __post_init__(self) -> None:
        for field, value, allowed in (("gap", self.gap, get_args(Gap)), ("fold", self.fold, get_args(Fold))):
            if value is not None and value not in allowed:
                raise InvalidSchedule(f"{field} must be {' or '.join(allowed)}, not {value!r}", field=field)
        self.timetable()

    def timetable(self, anchor: datetime | None = None) -> Timetable:
        return cron_times(self.expression, self.timezone, self.gap, self.fold)


class Every(msgspec.Struct, frozen=True, tag="every"):
    """Every so many seconds from an anchor on; the zone only says how times are shown."""

    seconds: float
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        zone(self.timezone)
        if not SHORTEST <= self.seconds <= LONGEST:
            raise _wrong_interval(self.seconds)

    def timetable(self, anchor: datetime) -> Timetable:
        return Intervals(anchor, timedelta(seconds=self.seconds))


class At(msgspec.Struct, frozen=True, tag="at"):
    """Once; the zone only says how the time is shown."""

    at: datetime
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        zone(self.timezone)
        aware(self.at, "schedule.at")

    def timetable(self, anchor: datetime | None = None) -> Timetable:
        return Once(self.at)


When = Cron | Every | At


class Fire(msgspec.Struct, frozen=True):
    """A coming fire, for people: the instant, what the clocks of the zone show then, and whether they jump there."""

    at: datetime
    local: str
    note: Note | None = None


def cron(expression: str, *, tz: str = "UTC", gap: Gap | None = None, fold: Fold | None = None) -> Cron:
    """`cron("0 6 * * MON-FRI", tz="Europe/Berlin")`."""
    return Cron(expression, tz, gap, fold)


def every(seconds: float | timedelta) -> Every:
    """`every(300)` or `every(timedelta(minutes=5))`, counted from the schedule's start, or else from its creation."""
    number = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise _wrong_interval(seconds)
    return Every(float(number))


def at(moment: datetime) -> At:
    """`at(datetime(2030, 1, 31, 6, tzinfo=UTC))`."""
    return At(aware(moment, "schedule.at"))


def parse(schedule: object, timezone: str = "UTC", gap: Gap | None = None, fold: Fold | None = None) -> When:
    """What these fields of a body mean; instead of them, a record says it all itself. Raises InvalidSchedule."""
    if isinstance(schedule, When):
        return schedule
    if isinstance(schedule, str):
        return Cron(schedule, timezone, gap, fold)
    for field, value in (("gap", gap), ("fold", fold)):
        if value is not None:
            raise InvalidSchedule(f"{field} goes with a cron expression only: leave it out", field=field)
    match schedule:
        case {"every": seconds, **rest} if not rest:
            return Every(every(seconds).seconds, timezone)
        case {"at": moment, **rest} if not rest:
            return At(aware(moment, "schedule.at"), timezone)
        case _:
            raise InvalidSchedule(f"schedule must be {FORM}, not {schedule!r}", field="schedule")


def form(when: When) -> str | dict[str, Any]:
    """What `parse` understands as the same."""
    match when:
        case Cron():
            return when.expression
        case Every():
            return {"every": when.seconds}
        case At():
            return {"at": when.at}


def preview(when: When, anchor: datetime, after: datetime) -> Iterator[Fire]:
    """The coming fires, one after another."""
    table, clock = when.timetable(anchor), zone(when.timezone)
    fire = table.after(after)
    while fire:
        yield Fire(fire, fire.astimezone(clock).isoformat(), table.note(fire))
        fire = table.after(fire)


def aware(moment: object, field: str) -> datetime:
    """A time that means one instant, in UTC. Raises InvalidSchedule."""
    try:
        read = msgspec.convert(moment, datetime)
    except msgspec.ValidationError as error:
        raise _wrong_time(moment, field) from error
    if not definite(read):
        raise _wrong_time(moment, field)
    return read.astimezone(UTC)


def _wrong_time(moment: object, field: str) -> InvalidSchedule:
    return InvalidSchedule(
        f"{field} must be a time with its offset from UTC, e.g. 2030-01-31T06:00:00+01:00, "
        f"{KNOWN}, not {str(moment)[:100]!r}",
        field=field,
    )


def _wrong_interval(seconds: object) -> InvalidSchedule:
    return InvalidSchedule(
        f'every must be seconds, from {SHORTEST} to a hundred years, e.g. {{"every": 300}}, not {seconds!r}',
        field="schedule.every",
    )
