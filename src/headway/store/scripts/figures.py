"""The history of queues: lines of figures, gathered as they get older."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from headway.model.history import COARSE, FINE, KEPT, MINUTE, Figures, Row, gathered
from headway.store.scripts.overview import store_time
from headway.store.statements import Row as Found
from headway.store.statements import Script, many, one

SETTLED = timedelta(minutes=2)
"""After so long all processes have written down a minute."""
AT_ONCE = 5000

_decode = msgspec.json.Decoder(Figures).decode


def add(line_id: UUID, rows: Sequence[Row]) -> Script[None]:
    """Lines of one process, known by their id: a repeat adds nothing."""
    yield many("add_figures", [_line(line_id, row, MINUTE) for row in rows])


def gather(line_id: UUID) -> Script[None]:
    """One line for each queue and minute, where several processes wrote one; longer steps for what is long over."""
    now = yield from store_time()
    several = yield one("scattered_figures", until_at=now - SETTLED, limit=AT_ONCE)
    yield from _replace(line_id, several, MINUTE)
    old = yield one("fine_figures", until_at=now - FINE, limit=AT_ONCE)
    yield from _replace(line_id, old, COARSE)
    yield one("drop_old_figures", until_at=now - KEPT)


def look(since: datetime, queue: str | None) -> Script[list[Row]]:
    """All lines since then."""
    return [_row(found) for found in (yield one("figures", since=since, queue=queue))]


def _replace(line_id: UUID, found: Sequence[Found], step: timedelta) -> Script[None]:
    if found:
        yield many("drop_figures", [(row["from_at"], row["queue"], row["id"]) for row in found])
        yield many("add_figures", [_line(line_id, row, step) for row in gathered([_row(row) for row in found], step)])


def _row(found: Found) -> Row:
    return Row(found["from_at"], found["queue"], _decode(found["numbers"]))


def _line(line_id: UUID, row: Row, step: timedelta) -> tuple[object, ...]:
    numbers = msgspec.json.encode(row.figures).decode()
    return (row.at, row.queue, line_id, int(step.total_seconds()), numbers)
