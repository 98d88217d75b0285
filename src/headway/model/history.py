"""What a queue did in a minute, or in a longer time: how much ended and how, how long it took, what waited. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
"""Seconds between which durations are counted; the metrics have the same."""
MINUTE = timedelta(minutes=1)
COARSE = timedelta(minutes=15)
"""To so much minutes are gathered that nobody looks at one by one any more."""


class Spread(msgspec.Struct, omit_defaults=True):
    """Durations: how many lie between which bounds, and their sum."""

    counts: list[int] = []
    total: float = 0.0

    @classmethod
    def of(cls, durations: Iterable[float]) -> Spread:
        # Sorted first: a look per bound instead of one per duration, of which there are hundreds in a batch.
        ordered = sorted(durations)
        counts, below = [0] * (len(BOUNDS) + 1), 0
        for place, bound in enumerate(BOUNDS):
            if below == len(ordered):
                break
            until = bisect_right(ordered, bound, below)
            counts[place], below = until - below, until
        counts[-1] = len(ordered) - below
        return cls(counts, sum(ordered))

    @property
    def number(self) -> int:
        return sum(self.counts)

    def add(self, other: Spread) -> None:
        if not other.counts:
            return
        pairs = zip(self.counts or [0] * len(other.counts), other.counts, strict=True)
        self.counts = [one + another for one, another in pairs]
        self.total += other.total

    def quantile(self, share: float) -> float | None:
        """The duration that this share of all stayed below, as near as the bounds tell; None without any."""
        left = share * self.number
        for place, count in enumerate(self.counts):
            if count and left <= count:
                low = BOUNDS[place - 1] if place else 0.0
                high = BOUNDS[place] if place < len(BOUNDS) else 2 * BOUNDS[-1]
                return low + (high - low) * left / count
            left -= count
        return None


class Figures(msgspec.Struct, omit_defaults=True):
    """One queue over some time. The backlog is what was seen, at most, when somebody looked; None if nobody did."""

    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    retried: int = 0
    wait: Spread = msgspec.field(default_factory=Spread)
    """From when a job was due until it was claimed."""
    run: Spread = msgspec.field(default_factory=Spread)
    due: int | None = None
    running: int | None = None
    oldest_due: float | None = None

    def add(self, other: Figures) -> None:
        self.completed += other.completed
        self.failed += other.failed
        self.cancelled += other.cancelled
        self.retried += other.retried
        self.wait.add(other.wait)
        self.run.add(other.run)
        self.due = _most(self.due, other.due)
        self.running = _most(self.running, other.running)
        self.oldest_due = _most(self.oldest_due, other.oldest_due)


def _most(one: float | None, other: float | None) -> Any:
    return other if one is None else one if other is None else max(one, other)


class Row(msgspec.Struct, frozen=True):
    """Figures as they are kept: of one queue, from `at` on."""

    at: datetime
    queue: str
    figures: Figures


class Period(msgspec.Struct, frozen=True):
    """How far to look back, and in what steps."""

    length: timedelta
    step: timedelta


PERIODS = {
    "hour": Period(timedelta(hours=1), MINUTE),
    "day": Period(timedelta(days=1), COARSE),
    "week": Period(timedelta(weeks=1), timedelta(hours=2)),
}
KEPT = timedelta(days=8)
"""How long figures are kept."""
FINE = timedelta(hours=26)
"""For how long they are kept by the minute."""


def floor(at: datetime, step: timedelta) -> datetime:
    """The last time before it at which such a step begins."""
    since = at - _EPOCH
    return at - since % step


def gathered(rows: Sequence[Row], step: timedelta) -> list[Row]:
    """The same figures in longer steps, by queue and time."""
    sums: dict[tuple[str, datetime], Figures] = {}
    for row in rows:
        sums.setdefault((row.queue, floor(row.at, step)), Figures()).add(row.figures)
    return [Row(at, queue, figures) for (queue, at), figures in sorted(sums.items())]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
