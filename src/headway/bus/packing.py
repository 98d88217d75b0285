"""Messages packed for a bus that carries less than 8,000 bytes at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from headway.bus.contract import Doorbell
from headway.observe.logs import get_logger

LONGEST = 7_900
"""Bytes in one notification."""
IDS_THAT_FIT = 150
"""Of a doorbell, beside the longest name of a queue."""

log = get_logger("headway.bus")


def packed(items: Iterable[object]) -> Iterator[str]:
    """These as JSON lists, each short enough for one notification."""
    texts: list[str] = []
    size = 0
    for item in items:
        text = msgspec.json.encode(item)
        if len(text) > LONGEST:
            log.warning("bus.too_long", size=len(text), limit=LONGEST)
            continue
        if texts and size + len(text) + 1 > LONGEST:
            yield f"[{','.join(texts)}]"
            texts, size = [], 0
        texts.append(text.decode())
        size += len(text) + 1
    if texts:
        yield f"[{','.join(texts)}]"


def that_fit(doorbells: Iterable[Doorbell]) -> Iterator[Doorbell]:
    """The same doorbells, those with many ids as several."""
    for doorbell in doorbells:
        for start in range(0, max(len(doorbell.ids), 1), IDS_THAT_FIT):
            yield Doorbell(doorbell.queue, doorbell.ids[start : start + IDS_THAT_FIT])
