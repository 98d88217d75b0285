"""What keeps the store in order: lost jobs rescued, expired ones cancelled, forgotten ones found, old ones removed."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from headway.model.job import SUSPECT_LOSSES, UNPROVEN_LOSSES, ErrorInfo, encode
from headway.model.limits import Retention
from headway.model.states import Outcome, State
from headway.store.scripts import gates, settle
from headway.store.scripts.rows import attempt_row, ids
from headway.store.scripts.watermark import NO_ID
from headway.store.statements import Script, many, one

STRAY_AFTER = 5.0
"""Seconds for which a SCHEDULE may be on its way."""

_LOST = ErrorInfo(
    "WorkerLost", "the worker stopped renewing its lease while it held this job: it crashed, was killed, or froze"
)


class Rescued(msgspec.Struct, frozen=True):
    """A job taken back from a lapsed lease."""

    job_id: UUID
    state: State
    outcome: Outcome
    worker_id: UUID


class Due(msgspec.Struct, frozen=True):
    """Which of the frequent duties have something to do."""

    lapsed: bool
    expired: bool
    closed: bool
    stray: bool


class Stray(msgspec.Struct, frozen=True):
    """A job whose SCHEDULE got lost, and the state in which it goes on."""

    job_id: UUID
    state: State
    correlation_id: str | None


class Step(msgspec.Struct, frozen=True):
    """One step of the walk through old jobs: how many went, and where to go on (None: the walk is over)."""

    removed: int
    after_id: UUID | None


def look() -> Script[Due]:
    """One cheap question for all frequent duties."""
    [row] = yield one("look", grace=STRAY_AFTER)
    return Due(bool(row["lapsed"]), bool(row["expired"]), bool(row["closed"]), bool(row["stray"]))


def rescue(limit: int) -> Script[list[Rescued]]:
    """Take the jobs of lapsed leases back. Decided by the lease alone, never by how long a job has run."""
    leases = yield one("lapsed_leases", limit=limit)
    held = sorted((job_id, row["id"]) for row in leases for job_id in row["jobs"])
    if not held:
        return []
    rows = yield many("rescue_jobs", held, suspect=SUSPECT_LOSSES, unproven=UNPROVEN_LOSSES, error=encode(_LOST))
    again = [row for row in rows if row["state"] == State.SCHEDULED]
    if again:
        yield many("archive_attempts", [attempt_row(row) for row in again])
        yield from gates.leave([row["id"] for row in again if row["tied"]])
        yield one("wake", wake=sorted({row["queue"] for row in again}))
    over = [row["id"] for row in rows if row["tied"] and row["state"] != State.SCHEDULED]
    if over:
        yield from settle.settle(over)
    return [Rescued(row["id"], State(row["state"]), Outcome(row["outcome"]), row["worker_id"]) for row in rows]


def expire(limit: int) -> Script[list[UUID]]:
    """Cancel jobs that did not begin before their time was over."""
    late = [row["id"] for row in (yield one("expired_jobs", limit=limit))]
    if not late:
        return []
    error = encode(ErrorInfo("Expired", "the job had not begun when its time was over"))
    ended = yield many("cancel_waiting", [(job_id, Outcome.EXPIRED.value, error) for job_id in late])
    tied = [row["id"] for row in ended if row["tied"]]
    if tied:
        yield from settle.settle(tied)
    return [row["id"] for row in ended]


def sweep(grace: float, limit: int) -> Script[int]:
    """The net under promotion: whatever waits for nothing goes on. Returns how much it had to mend (0: all is well)."""
    mended = 0
    orphans = [row["parent_id"] for row in (yield one("orphan_parents", limit=limit))]
    if orphans:
        mended += len(orphans)
        cascade = yield from settle.release_children(orphans)
        yield from settle.settle(cascade)
    blocked = [row["id"] for row in (yield one("forgotten_jobs", grace=grace, limit=limit))]
    if blocked:
        mended += yield from settle.promote(blocked)
    mended += len((yield from take_up(grace, limit)))
    stale = [row["gate"] for row in (yield one("stale_slots"))]
    yield from gates.promote({gate: stale.count(gate) for gate in stale})
    return mended + len(stale)


def take_up(grace: float, limit: int) -> Script[list[Stray]]:
    """Let jobs go on that a message created, and whose SCHEDULE has not come."""
    found = {row["id"]: row["correlation_id"] for row in (yield one("stray_jobs", grace=grace, limit=limit))}
    if not found:
        return []
    moved = yield many("schedule_jobs", [(job_id, None) for job_id in found])
    yield many("add_history", [(row["id"], row["state"], None, "found by the sweep") for row in moved])
    yield one("wake", wake=sorted({row["queue"] for row in moved}))
    return [Stray(row["id"], State(row["state"]), found[row["id"]]) for row in moved]


def prune(retention: Retention, after_id: UUID | None, limit: int) -> Script[Step]:
    """Remove ended jobs whose time is over, a bounded number of rows at a step, oldest first."""
    [shortest] = yield one("shortest_retention")
    horizon = min(retention.completed, retention.failed, *([shortest[0]] if shortest[0] is not None else []))
    rows = yield one(
        "old_jobs",
        after_id=after_id or NO_ID,
        limit=limit,
        completed=retention.completed,
        failed=retention.failed,
        horizon=horizon,
    )
    past = [row["id"] for row in rows if row["past"]]
    if past:
        yield many("delete_jobs", ids(past))
    yield one("expired_dedupes", limit=limit)
    more = len(rows) == limit and rows[-1]["old"]
    return Step(len(past), rows[-1]["id"] if more else None)


def bury(age: float) -> Script[Sequence[str]]:
    """Forget workers that have not been seen for long; returns their names."""
    return [row["name"] for row in (yield one("dead_workers", age=age))]


def take_duty(name: str, holder: UUID, ttl: float) -> Script[bool]:
    """Whether this process is the one to do the duty for the next `ttl` seconds."""
    return bool((yield one("take_duty", name=name, holder=holder, ttl=ttl)))
