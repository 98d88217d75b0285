"""Messages packed into lists that fit: a notification of PostgreSQL carries less than 8,000 bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from headway.observe.logs import get_logger

LONGEST = 7_900
"""Bytes in one message."""

log = get_logger("headway.bus")


def packed(items: Iterable[object]) -> Iterator[str]:
    """These as JSON lists, each short enough for one message."""
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
