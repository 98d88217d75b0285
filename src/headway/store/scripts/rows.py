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


def hush(queue: str, worker_id: UUID) -> str:
    """What is rung when a worker has taken the last due jobs of a queue. No queue can have it."""
    return f"{HUSH}{worker_id}{queue}"


def hushed(channel: str) -> tuple[str, str]:
    """By which worker, and of which queue, that tells."""
    start = len(HUSH) + _UUID_LENGTH
    return channel[len(HUSH) : start], channel[start:]


HUSH = "\x05"
_UUID_LENGTH = 36
