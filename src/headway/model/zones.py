"""What a zone's wall clocks show, as stretches of time in which they go on evenly.

An instant is a number here: seconds from 1970-01-01 00:00 UTC; a local time is what the wall shows, counted alike.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from headway.model.errors import InvalidSchedule

FIRST_YEAR, LAST_YEAR = 1970, 2999
"""Nothing is planned before or beyond them."""
HORIZON = 50
"""Years in which anything that ever happens happens: 29 February falls on a given weekday every 40 years or sooner."""
_DAY = 86_400
_LEAD = 2 * _DAY
"""No zone ever put its clocks back by more than a day."""
_OF_THIS_MACHINE = frozenset({"localtime", "Factory"})


class Span(NamedTuple):
    """Instants from `start` up to `end` in which the wall shows the instant + `offset`.

    `shown` is the local time up to which the wall had gone before `start`. Before start + offset: clocks went forward
    and the local times in between never were (a gap). Behind it: clocks went back and the local times up to `shown`
    come again (an overlap).
    """

    start: int
    end: int
    offset: int
    shown: int


def zone(name: str) -> ZoneInfo:
    """The zone of that IANA name. Raises InvalidSchedule, naming those that look alike."""
    if name not in _names():
        alike = " or ".join(repr(known) for known in _alike(name))
        raise InvalidSchedule(
            f"timezone: there is no zone {name[:100]!r}; "
            + (f"did you mean {alike}?" if alike else "write an IANA name such as 'Europe/Berlin' or 'UTC'"),
            field="timezone",
        )
    return ZoneInfo(name)


def spans_from(name: str, instant: int) -> Iterator[Span]:
    """The span that holds the instant and those that follow, up to the horizon."""
    first = _year(instant)
    for year in range(first, min(first + HORIZON, LAST_YEAR) + 1):
        for span in spans(name, year):
            if span.end > instant:
                yield span


def spans_back(name: str, instant: int, after: int) -> Iterator[Span]:
    """The span that holds the instant and those before it, as far back as `after`."""
    for year in range(_year(instant), _year(after) - 1, -1):
        for span in reversed(spans(name, year)):
            if after < span.end and span.start <= instant:
                yield span


@lru_cache(maxsize=8192)
def spans(name: str, year: int) -> tuple[Span, ...]:
    """A year of UTC, cut where the zone's offset changes.

    The clocks are read once a day, which finds every change as long as none is undone within the day.
    """
    clock = ZoneInfo(name)
    opening = _start(year)
    edges = [opening - _LEAD, *_changes(clock, opening - _LEAD, _start(year + 1)), _start(year + 1)]
    shown = edges[0] + _offset(clock, edges[0])
    found = []
    for start, end in pairwise(edges):
        offset = _offset(clock, start)
        if start < opening < end:
            found.append(Span(opening, end, offset, max(shown, opening + offset)))
        elif start >= opening:
            found.append(Span(start, end, offset, shown))
        shown = end + offset
    return tuple(found)


def _changes(clock: ZoneInfo, start: int, end: int) -> Iterator[int]:
    before = _offset(clock, start)
    for day in range(start + _DAY, end + 1, _DAY):
        after = _offset(clock, day)
        if after != before and (change := _first_with(clock, after, day - _DAY, day)) < end:
            yield change
        before = after


def _first_with(clock: ZoneInfo, offset: int, before: int, after: int) -> int:
    """The instant between the two at which the clock takes on the offset."""
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if _offset(clock, middle) == offset else (middle, after)
    return after


def _offset(clock: ZoneInfo, instant: int) -> int:
    shift = datetime.fromtimestamp(instant, clock).utcoffset()
    assert shift is not None
    return int(shift.total_seconds())


def _year(instant: int) -> int:
    return datetime.fromtimestamp(instant, UTC).year


def _start(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones()) - _OF_THIS_MACHINE


def _alike(name: str) -> list[str]:
    """Up to three names that look like this one, whole or by their city."""
    known = {key.lower(): full for full in sorted(_names()) for key in (full.rpartition("/")[2], full)}
    asked = name[:100].lower().replace(" ", "_")
    return list(dict.fromkeys(known[key] for key in difflib.get_close_matches(asked, known)))
