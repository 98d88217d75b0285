"""Doorbells packed for a bus that carries less than 8,000 bytes at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headway.bus.contract import Doorbell

IDS_THAT_FIT = 150
"""Of a doorbell, beside the longest name of a queue."""


def that_fit(doorbells: Iterable[Doorbell]) -> Iterator[Doorbell]:
    """The same doorbells, those with many ids as several."""
    for doorbell in doorbells:
        for start in range(0, max(len(doorbell.ids), 1), IDS_THAT_FIT):
            yield Doorbell(doorbell.queue, doorbell.ids[start : start + IDS_THAT_FIT])
