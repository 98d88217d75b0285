"""What a dispatcher rings for: due jobs that nobody has claimed, and when the next one will be due."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from headway.store.statements import Script, one


class Outstanding(msgspec.Struct, frozen=True):
    """Due jobs by queue, the most urgent first, up to a number of each; and seconds until the next one is due."""

    due: dict[str, list[UUID]]
    next_in: float | None


def outstanding(limit: int, without: Sequence[str]) -> Script[Outstanding]:
    """`without`: queues whose due jobs nobody wants to hear of."""
    due: dict[str, list[UUID]] = {}
    next_in: float | None = None
    for row in (yield one("outstanding_jobs", limit=limit, without=without)):
        if row["id"] is None:
            next_in = row["delay"]
        else:
            due.setdefault(row["queue"], []).append(row["id"])
    return Outstanding(due, next_in)
