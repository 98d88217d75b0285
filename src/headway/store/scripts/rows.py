"""Small shapes that several scripts share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from headway.store.statements import Row


def ids(job_ids: Iterable[UUID]) -> list[tuple[UUID]]:
    """Ids as the rows of a batch."""
    return [(job_id,) for job_id in job_ids]


def attempt_row(row: Row, finished_at: datetime | None = None) -> tuple[object, ...]:
    """The last attempt that a job's row carries, as a row for `archive_attempts`."""
    return (
        row["id"],
        row["attempt"],
        row["outcome"],
        row["error"],
        row["claimed_at"],
        row["started_at"],
        finished_at,
        row["worker_id"],
    )


def later(queue: str) -> str:
    """What is rung for a queue whose next job is due after a while: look when, don't claim. No queue can have it."""
    return f"\x02{queue}"
