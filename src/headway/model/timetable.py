"""The nominal times of a schedule as instants: by a cron pattern on a zone's clocks, at an interval, or once.

A cron pattern speaks of wall clocks, and those jump. Which instants it means when they do:

- Its hour field is `*` (literally; `*/2`, `*/1` and `0-23` name hours): every real instant whose local time matches.
  Local times that a gap skips never were; those that an overlap repeats count twice.
- Otherwise each local time once. In an overlap the first; those that a gap skips together become one run at its end.

`gap` ("after", "skip") and `fold` ("first", "both") overrule the one and the other.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal, Protocol

from headway.model.cron import Pattern
from headway.model.zones import FIRST_YEAR, LAST_YEAR, Span, spans_back, spans_from, zone

Gap = Literal["after", "skip"]
Fold = Literal["first", "both"]
Note = Literal["gap", "overlap"]

_EPOCH = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_CLOSE = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC)


class Timetable(Protocol):
    """Instants in, instants out, all aware; those that come out are in UTC.

    What a question costs grows with the years it spans, not with the fires in them.
    """

    def after(self, instant: datetime) -> datetime | None:
        """The first fire later than the instant; None: there is none."""

    def last(self, after: datetime, until: datetime) -> datetime | None:
        """The last fire later than `after` and not later than `until`."""

    def count(self, after: datetime, until: datetime) -> int:
        """How many fires are later than `after` and not later than `until`."""

    def note(self, fire: datetime) -> Note | None:
        """Whether this fire stands for local times that a gap skipped, or its own local time comes twice."""


class Once:
    """One instant."""

    def __init__(self, instant: datetime) -> None:
        self._instant = instant.astimezone(UTC)

    def after(self, instant: datetime) -> datetime | None:
        return self._instant if self._instant > instant else None

    def last(self, after: datetime, until: datetime) -> datetime | None:
        return self._instant if after < self._instant <= until else None

    def count(self, after: datetime, until: datetime) -> int:
        return int(after < self._instant <= until)

    def note(self, fire: datetime) -> None:
        return None


class Intervals:
    """anchor + k · step, for k from 0: however late a run is, the next ones keep their times."""

    def __init__(self, anchor: datetime, step: timedelta) -> None:
        self._anchor = anchor.astimezone(UTC)
        self._step = step

    def after(self, instant: datetime) -> datetime | None:
        if instant >= _CLOSE:
            return None
        fire = self._anchor + self._up_to(instant) * self._step
        return fire if fire < _CLOSE else None

    def last(self, after: datetime, until: datetime) -> datetime | None:
        return self._anchor + (self._up_to(until) - 1) * self._step if self.count(after, until) else None

    def count(self, after: datetime, until: datetime) -> int:
        return max(0, self._up_to(until) - self._up_to(after))

    def note(self, fire: datetime) -> None:
        return None

    def _up_to(self, instant: datetime) -> int:
        """How many fires there are up to the instant, with it."""
        return max(0, (instant - self._anchor) // self._step + 1)


_remembered = lru_cache(maxsize=4096)
"""Many schedules have the same wording, and a tick asks each of them the same."""


class CronTimes:
    """A cron pattern on the clocks of a zone: in each span of even time its matches, shifted by the span's offset."""

    def __init__(self, pattern: Pattern, timezone: str, gap: Gap, fold: Fold) -> None:
        self._pattern = pattern
        self._zone = timezone
        self._runs_after_gap = gap == "after"
        self._runs_twice = fold == "both"

    @_remembered
    def after(self, instant: datetime) -> datetime | None:
        since = _seconds(instant)
        for span in spans_from(self._zone, since):
            if span.start > since and self._closes_gap(span):
                return _instant(span.start)
            local = self._pattern.at_or_after(self._opening(span, since))
            if local < span.end + span.offset:
                return _instant(local - span.offset)
        return None

    @_remembered
    def last(self, after: datetime, until: datetime) -> datetime | None:
        since, upto = _seconds(after), _seconds(until)
        for span in spans_back(self._zone, upto, since):
            local = self._pattern.at_or_before(min(span.end - 1, upto) + span.offset)
            if local >= self._opening(span, since):
                return _instant(local - span.offset)
            if span.start > since and self._closes_gap(span):
                return _instant(span.start)
        return None

    @_remembered
    def count(self, after: datetime, until: datetime) -> int:
        since, upto = _seconds(after), _seconds(until)
        return sum(self._count(span, since, upto) for span in spans_back(self._zone, upto, since))

    def note(self, fire: datetime) -> Note | None:
        at = _seconds(fire)
        span = next(spans_from(self._zone, at))
        if span.start == at and self._closes_gap(span):
            return "gap"
        here = fire.astimezone(zone(self._zone))
        return "overlap" if here.utcoffset() != here.replace(fold=1 - here.fold).utcoffset() else None

    def _count(self, span: Span, since: int, upto: int) -> int:
        opening = self._opening(span, since)
        own = self._pattern.count(opening, min(span.end, upto + 1) + span.offset)
        if since < span.start and self._closes_gap(span):
            # A match at the very end of the gap is the same run.
            return own + (self._pattern.at_or_after(opening) != span.start + span.offset)
        return own

    def _opening(self, span: Span, since: int) -> int:
        """The local time from which on matches in this span count."""
        opening = max(span.start, since + 1) + span.offset
        return opening if self._runs_twice else max(opening, span.shown)

    def _closes_gap(self, span: Span) -> bool:
        """Whether there is a run at the start of the span that stands for local times skipped there."""
        opening = span.start + span.offset
        return self._runs_after_gap and span.shown < opening and self._pattern.at_or_after(span.shown) < opening


@lru_cache(maxsize=16_384)
def cron_times(expression: str, timezone: str, gap: Gap | None, fold: Fold | None) -> CronTimes:
    """Parsed once for each wording. Raises InvalidSchedule."""
    zone(timezone)
    pattern = Pattern(expression)
    return CronTimes(
        pattern,
        timezone,
        gap or ("skip" if pattern.every_hour else "after"),
        fold or ("both" if pattern.every_hour else "first"),
    )


def _seconds(instant: datetime) -> int:
    """Nothing fires between two seconds, and nothing before 1970."""
    return max(0, (instant - _EPOCH) // _SECOND)


def _instant(seconds: int) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)
