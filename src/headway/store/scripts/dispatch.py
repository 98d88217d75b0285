"""What a dispatcher rings for: due jobs that nobody has claimed, and when the next one will be due."""

from __future__ import annotations

from uuid import UUID

import msgspec

from headway.store.statements import Script, one


class Outstanding(msgspec.Struct, frozen=True):
    """Due jobs by queue, the most urgent first, up to a number of each; and seconds until the next one is due."""

    due: dict[str, list[UUID]]
    next_in: float | None


def outstanding(limit: int) -> Script[Outstanding]:
    due: dict[str, list[UUID]] = {}
    for row in (yield one("due_jobs", limit=limit)):
        due.setdefault(row["queue"], []).append(row["id"])
    [upcoming] = yield one("next_due_job")
    return Outstanding(due, upcoming["delay"])
