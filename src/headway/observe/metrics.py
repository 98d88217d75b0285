"""Numbers about this process: counters, histograms and gauges, kept as plain values until somebody asks for them.

Nothing is counted unless it is `switched_on` (which those who serve a page do): a process without a page pays one look
at a flag. Counting is meant for batches: `jobs_finished.add(("call", "mail", "succeeded"), 200)`.

Labels are bounded: of the names that users choose (queues, kinds) each process tells `NAMES` apart and calls further
ones `other`. `observe/page.py` makes the page of it, `observe/series.py` is the list of all series.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import add
from pathlib import Path

import msgspec

NAMES = 100
"""Values of one label that are told apart."""
OTHER = "other"
SOCKET = "_HEADWAY_METRICS_SOCKET"
"""The variable that tells a worker process of several where to answer its parent."""
CHOSEN = frozenset({"queue", "kind"})
"""Labels whose values users choose."""

Labels = tuple[str, ...]
Read = Callable[[], Iterable[tuple[Labels, float]]]
"""What a gauge is asked: the values as they are now."""
Together = Callable[[float, float], float]
"""What two values under the same labels are as one."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One metric with all its values, as it travels from process to process and onto the page.

    The values of a histogram are the counts of its buckets (the last one has no bound), then the sum.
    """

    name: str
    kind: str
    help: str
    labels: Labels = ()
    bounds: tuple[float, ...] = ()
    values: list[tuple[Labels, list[float]]] = []


class _Switch:
    on = 0


_switch = _Switch()


@contextmanager
def switched_on() -> Iterator[None]:
    """Count while this lasts."""
    _switch.on += 1
    try:
        yield
    finally:
        _switch.on -= 1


def counting() -> bool:
    """Whether anybody wants to know: asked by those who would have to gather something first."""
    return _switch.on > 0


class Instrument:
    """What all kinds have in common: a name, labels, and values under a lock, for they come from several threads."""

    kind = ""

    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:  # noqa: A002 - Prometheus's own word
        self.name = name
        self.help = help
        self.labels = labels
        self._lock = threading.Lock()
        self._chosen = [place for place, label in enumerate(labels) if label in CHOSEN]

    def series(self) -> Series:
        return Series(name=self.name, kind=self.kind, help=self.help, labels=self.labels, values=self._values())

    def _values(self) -> list[tuple[Labels, list[float]]]:
        raise NotImplementedError

    def _bounded(self, labels: Labels) -> Labels:
        """The labels under which to count: a name that came too late is `other`."""
        if all(_known(self.labels[place], labels[place]) for place in self._chosen):
            return labels
        return tuple(
            value if place not in self._chosen or _known(self.labels[place], value) else OTHER
            for place, value in enumerate(labels)
        )


class Counter(Instrument):
    """Only goes up."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Labels = ()) -> None:  # noqa: A002 - Prometheus's own word
        super().__init__(name, help, labels)
        self._counts: dict[Labels, float] = {} if labels else {(): 0.0}
        self._reads: list[Read] = []

    def add(self, labels: Labels = (), number: float = 1) -> None:
        if not _switch.on:
            return
        with self._lock:
            if labels not in self._counts:
                labels = self._bounded(labels)
                self._counts.setdefault(labels, 0.0)
            self._counts[labels] += number

    def watch(self, read: Read) -> Callable[[], None]:
        """From now on, count what somebody else counts; what is returned ends it, and leaves what was counted."""
        before = dict(read())

        def grown() -> list[tuple[Labels, float]]:
            return [(labels, value - before.get(labels, 0.0)) for labels, value in read()]

        with self._lock:
            self._reads.append(grown)

        def end() -> None:
            with self._lock:
                self._reads.remove(grown)
            for labels, number in grown():
                self.add(labels, number)

        return end

    def _values(self) -> list[tuple[Labels, list[float]]]:
        with self._lock:
            counts, reads = list(self._counts.items()), list(self._reads)
        return _joined((labels, [value]) for labels, value in chain(counts, *(read() for read in reads)))


class Histogram(Instrument):
    """How often a value fell between which bounds."""

    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Labels = (), *, bounds: Sequence[float]) -> None:  # noqa: A002 - as above
        super().__init__(name, help, labels)
        self.bounds = tuple(bounds)
        self._buckets: dict[Labels, list[float]] = {} if labels else {(): self._empty()}

    def observe(self, values: Iterable[float], labels: Labels = ()) -> None:
        """Count all of these."""
        if not _switch.on:
            return
        bounds = self.bounds
        with self._lock:
            buckets = self._buckets.get(labels)
            if buckets is None:
                buckets = self._buckets.setdefault(self._bounded(labels), self._empty())
            total = 0.0
            for value in values:
                buckets[bisect_left(bounds, value)] += 1
                total += value
            buckets[-1] += total

    def count(self, counts: Sequence[int], total: float, labels: Labels = ()) -> None:
        """The same of values that are sorted into these very bounds already."""
        if not _switch.on:
            return
        with self._lock:
            buckets = self._buckets.get(labels)
            if buckets is None:
                buckets = self._buckets.setdefault(self._bounded(labels), self._empty())
            for place, number in enumerate(counts):
                buckets[place] += number
            buckets[-1] += total

    def series(self) -> Series:
        return msgspec.structs.replace(super().series(), bounds=self.bounds)

    def _empty(self) -> list[float]:
        return [0.0] * (len(self.bounds) + 2)

    def _values(self) -> list[tuple[Labels, list[float]]]:
        with self._lock:
            return [(labels, list(buckets)) for labels, buckets in self._buckets.items()]


class Gauge(Instrument):
    """Something as it is now, read when the page is asked for. Several may report under the same labels: those of one
    process come `together` (added, if nothing else is said), those of several processes are added."""

    kind = "gauge"

    def __init__(self, name: str, help: str, labels: Labels = (), *, together: Together = add) -> None:  # noqa: A002 - Prometheus's own word
        super().__init__(name, help, labels)
        self._together = together
        self._reads: list[Read] = []

    def watch(self, read: Read) -> Callable[[], None]:
        """Ask this from now on; what is returned ends it."""
        with self._lock:
            self._reads.append(read)

        def end() -> None:
            with self._lock:
                self._reads.remove(read)

        return end

    def at(self, values: Iterable[tuple[Labels, float]]) -> Series:
        """The series with these values, for those who tell of the whole store."""
        return msgspec.structs.replace(super().series(), values=_joined(self._fold(values), self._together))

    def _values(self) -> list[tuple[Labels, list[float]]]:
        with self._lock:
            reads = list(self._reads)
        return _joined(self._fold(pair for read in reads for pair in read()), self._together)

    def _fold(self, values: Iterable[tuple[Labels, float]]) -> Iterable[tuple[Labels, list[float]]]:
        return ((self._bounded(labels), [value]) for labels, value in values)


def merged(pages: Sequence[Sequence[Series]]) -> list[Series]:
    """The pages of several processes as one: what has the same name and labels is summed up."""
    found: dict[str, Series] = {}
    for series in (series for page in pages for series in page):
        known = found.get(series.name)
        found[series.name] = series if known is None else _both(known, series)
    return list(found.values())


def _both(one: Series, other: Series) -> Series:
    return msgspec.structs.replace(one, values=_joined([*one.values, *other.values]))


def _joined(values: Iterable[tuple[Labels, list[float]]], together: Together = add) -> list[tuple[Labels, list[float]]]:
    joined: dict[Labels, list[float]] = {}
    for labels, numbers in values:
        before = joined.get(labels)
        joined[labels] = list(numbers) if before is None else list(map(together, before, numbers))
    return list(joined.items())


_names: dict[str, set[str]] = {label: set() for label in CHOSEN}


def _known(label: str, value: str) -> bool:
    """Whether this value is one of those told apart, now if there is room."""
    known = _names[label]
    if value not in known and len(known) < NAMES:
        known.add(value)
    return value in known


def process_name() -> str:
    """Which of several processes of one command this is."""
    return Path(os.environ.get(SOCKET, "0")).name.partition(".")[0]


def instruments(namespace: Mapping[str, object]) -> list[Instrument]:
    """All instruments among these names."""
    return [found for found in namespace.values() if isinstance(found, Instrument)]
