"""What is due of a schedule at a tick: which nominal times become jobs, which are skipped, and when to look again.

Nothing here walks from one missed time to the next: missed times are counted by the timetable, and no more than
`misfire_limit` fires are looked at one by one, from the last backwards. A tick after a month without ticks costs about
as much as one on time.

Clocks are set back and forth. A nominal time is an instant, so a clock that is set back passes instants again that
have had their turn: `recorded` says which of them fired, and they don't fire again. One that had been ahead by mistake
leaves schedules with `last_at` and `next_at` in the future; they don't wait until it is reached, but go on from now.
Nothing is due of them, so a tick that finds itself earlier than the one before has to ask for those whose `last_at` is
still to come.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from headway.model.schedule import MOMENT, Misfire, Schedule
from headway.model.timetable import Timetable

GRACE = timedelta(seconds=60)
"""A fire that is not later than this counts as on time."""
WATCHED = timedelta(seconds=5)
"""Between two ticks not further apart than this nothing is missed, even if several times of a schedule lie there."""


class SkipReason(StrEnum):
    """Why nominal times became no job."""

    MISSED = "missed"
    COALESCED = "coalesced"
    LIMIT = "limit"
    PAUSED = "paused"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a schedule stands, as the store keeps it."""

    next_at: datetime | None
    """The first nominal time that nothing has been decided about; None: there is none."""
    last_at: datetime | None = None
    """The latest that fired or was skipped."""


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """A look at the schedules, and when the look before was; None: not known."""

    now: datetime
    previous: datetime | None = None


class Occurrence(msgspec.Struct, frozen=True):
    """A nominal time that fires, and when its job is to run."""

    nominal: datetime
    run_at: datetime


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive nominal times that don't fire, from the first to the last."""

    first: datetime
    last: datetime
    count: int
    reason: SkipReason


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What a tick makes of a schedule."""

    standing: Standing
    fires: tuple[Occurrence, ...] = ()
    skipped: Skipped | None = None


def due(schedule: Schedule, standing: Standing, tick: Tick, recorded: Set[datetime] = frozenset()) -> Due:
    """What is due by now.

    `recorded` are the nominal times from `next_at` to now that have fired before: there are none unless `last_at` is
    `next_at` or later, so only then need anyone look for them.
    """
    next_at = schedule.after(tick.now)
    if standing.next_at is None or standing.next_at > tick.now:
        return Due(standing=Standing(next_at=next_at, last_at=standing.last_at))
    stretch = _stretch(schedule, standing.next_at, tick.now)
    wanted, reason = _wanted(schedule, stretch, tick)
    chosen = stretch.latest(wanted)
    return Due(
        standing=Standing(next_at=next_at, last_at=_later(standing.last_at, stretch)),
        fires=tuple(Occurrence(at, schedule.run_at(at)) for at in chosen if at not in recorded),
        skipped=_skipped(stretch, chosen, recorded, reason),
    )


class _Stretch(msgspec.Struct, frozen=True):
    """The nominal times later than `after`, up to `until`; `last` is the last of them."""

    table: Timetable
    after: datetime
    until: datetime
    last: datetime | None

    @property
    def single(self) -> bool:
        """There is one, the very first that there could be: nothing need be counted. The usual case."""
        return self.last is not None and self.last - self.after == MOMENT

    def latest(self, wanted: int) -> list[datetime]:
        """The last ones, in order of time."""
        found: list[datetime] = []
        at = self.last
        while at and len(found) < wanted:
            found.append(at)
            at = None if self.single else self.table.last(self.after, at - MOMENT)
        return found[::-1]


def _stretch(schedule: Schedule, first: datetime, now: datetime) -> _Stretch:
    """What lies between the first undecided time and now, within the schedule's start and end."""
    opening = first if schedule.start is None else max(first, schedule.start)
    until = now if schedule.end is None else min(now, schedule.end)
    table, after = schedule.when.timetable(schedule.anchor), opening - MOMENT
    return _Stretch(table, after, until, table.last(after, until))


def _wanted(schedule: Schedule, stretch: _Stretch, tick: Tick) -> tuple[int, SkipReason]:
    """How many of the latest times are to fire, and why the others don't."""
    if schedule.paused:
        return 0, SkipReason.PAUSED
    if _watched(stretch, tick):
        return schedule.misfire_limit, SkipReason.LIMIT
    match schedule.misfire:
        case Misfire.RUN_ALL:
            return schedule.misfire_limit, SkipReason.LIMIT
        case Misfire.RUN_ONCE:
            return 1, SkipReason.COALESCED
        case Misfire.SKIP:
            on_time = stretch.last is not None and stretch.last >= tick.now - GRACE
            return int(on_time), SkipReason.MISSED


def _watched(stretch: _Stretch, tick: Tick) -> bool:
    return tick.previous is not None and tick.previous <= stretch.after + MOMENT and tick.now - tick.previous <= WATCHED


def _skipped(stretch: _Stretch, chosen: list[datetime], recorded: Set[datetime], reason: SkipReason) -> Skipped | None:
    """The times before the chosen ones. Recorded ones may lie among them, but don't count."""
    if chosen and stretch.single:
        return None
    until = chosen[0] - MOMENT if chosen else stretch.until
    count = stretch.table.count(stretch.after, until) - sum(at <= until for at in recorded)
    if count <= 0:
        return None
    first, last = stretch.table.after(stretch.after), stretch.table.last(stretch.after, until)
    assert first is not None
    assert last is not None
    return Skipped(first=first, last=last, count=count, reason=reason)


def _later(before: datetime | None, stretch: _Stretch) -> datetime | None:
    return max(filter(None, (before, stretch.last)), default=None)
