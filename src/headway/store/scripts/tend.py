"""What keeps the store in order: lost jobs rescued, expired ones cancelled, forgotten ones found, old ones removed."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from uuid import UUID

import msgspec

from headway.model.alerts import Cause
from headway.model.job import OUTLIVING, SUSPECT_LOSSES, UNPROVEN_LOSSES, ErrorInfo, encode
from headway.model.limits import Retention
from headway.model.states import Outcome, State
from headway.store.scripts import alerts, gates, settle
from headway.store.scripts.news import change_of, changes_of, tell
from headway.store.scripts.rows import attempt_row, ids
from headway.store.scripts.walk import NO_ID
from headway.store.statements import Row, Script, many, one

DUTIES = "duties"
"""In whose name the log tells of it."""
STRAY_AFTER = 5.0
"""Seconds for which a SCHEDULE may be on its way."""
IN_OTHER_HANDS = 1.0
"""Seconds after which a job whose row somebody else has locked is looked for again."""

_LOST = ErrorInfo(
    "WorkerLost", "the worker stopped renewing its lease while it held this job: it crashed, was killed, or froze"
)


class Rescued(msgspec.Struct, frozen=True):
    """A job taken back from a lapsed lease."""

    job_id: UUID
    state: State
    outcome: Outcome
    worker_id: UUID
    queue: str
    kind: str


class Due(msgspec.Struct, frozen=True):
    """Which of the frequent duties have something to do."""

    lapsed: bool
    expired: bool
    closed: bool
    stray: bool


class Step(msgspec.Struct, frozen=True):
    """One step of the walk through old jobs: how many went, and where to go on (None: the walk is over)."""

    removed: int
    after_id: UUID | None


def look() -> Script[Due]:
    """One cheap question for all frequent duties."""
    [row] = yield one("look", grace=STRAY_AFTER)
    return Due(bool(row["lapsed"]), bool(row["expired"]), bool(row["closed"]), bool(row["stray"]))


def rescue(limit: int) -> Script[list[Rescued]]:
    """Take the jobs of lapsed leases back, by id. Decided by the lease alone, never by how long a job has run. None: no
    lapsed lease is left, but for those that somebody else is just at."""
    rows: list[Row] = []
    while not rows and (leases := (yield one("lapsed_leases", limit=limit))):
        rows = yield from _take_back(leases)
    if rows:
        yield from _go_on(rows)
    return [
        Rescued(row["id"], State(row["state"]), Outcome(row["outcome"]), row["worker_id"], row["queue"], row["kind"])
        for row in rows
    ]


def _take_back(leases: Sequence[Row]) -> Script[list[Row]]:
    """The jobs that were held under these leases, whose time is over with that. A lease under which a job is held
    still, because its row is in other hands, lapses once more a moment later."""
    held = sorted((job_id, row["id"]) for row in leases for job_id in row["jobs"])
    found = yield many(
        "rescue_jobs",
        held,
        suspect=SUSPECT_LOSSES,
        unproven=UNPROVEN_LOSSES,
        outliving=OUTLIVING,
        error=encode(_LOST),
    )
    kept = {row["id"] for row in (yield many("postpone_leases", held, wait=IN_OTHER_HANDS))}
    yield many("drop_leases", ids([row["id"] for row in leases if row["id"] not in kept]))
    return sorted(found, key=itemgetter("id"))  # RETURNING promises no order


def _go_on(rows: Sequence[Row]) -> Script[None]:
    """What follows from a rescue, for the jobs and for those that wait for them."""
    changed = [row for row in rows if row["state"] != State.CANCELLING]
    yield from tell([change_of(row, _held_before(row)) for row in changed], DUTIES)
    again = [row for row in rows if not State(row["state"]).terminal]
    if again:
        yield many("archive_attempts", [attempt_row(row) for row in again])
        yield from gates.leave([row["id"] for row in again if row["tied"]])
        yield one("wake", wake=sorted({row["queue"] for row in again}))
    yield from alerts.note_failed([row["id"] for row in rows if row["state"] == State.FAILED])
    over = [row["id"] for row in rows if row["tied"] and State(row["state"]).terminal]
    if over:
        yield from settle.settle(over)


def _held_before(row: Row) -> State:
    """A lease that lapses ends a job only if that was asked for, or if it is poison."""
    return State.CANCELLING if row["state"] == State.CANCELLED else State.RUNNING


def expire(limit: int) -> Script[list[UUID]]:
    """Cancel jobs that did not begin before their time was over; the first to expire comes first."""
    late = {row["id"]: State(row["state"]) for row in (yield one("expired_jobs", limit=limit))}
    if not late:
        return []
    error = encode(ErrorInfo("Expired", "the job had not begun when its time was over"))
    ended = yield many("cancel_waiting", [(job_id, Outcome.EXPIRED.value, error) for job_id in late])
    yield from tell(changes_of(ended, late), DUTIES)
    tied = [row["id"] for row in ended if row["tied"]]
    if tied:
        yield from settle.settle(tied)
    gone = {row["id"] for row in ended}
    return [job_id for job_id in late if job_id in gone]


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


def take_up(grace: float, limit: int) -> Script[list[UUID]]:
    """Let jobs go on that a message created, and whose SCHEDULE has not come."""
    found = [row["id"] for row in (yield one("stray_jobs", grace=grace, limit=limit))]
    if not found:
        return []
    moved = {row["id"]: row for row in (yield many("schedule_jobs", [(job_id, None) for job_id in found]))}
    strays = [job_id for job_id in found if job_id in moved]
    yield many("add_history", [(key, moved[key]["state"], None, "found by the sweep") for key in strays])
    yield one("wake", wake=sorted({row["queue"] for row in moved.values()}))
    yield from tell(changes_of([moved[key] for key in strays], State.CREATING), DUTIES)
    return strays


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
    gone = (yield many("delete_jobs", ids(past))) if past else []
    yield one("expired_dedupes", limit=limit)
    more = len(rows) == limit and rows[-1]["old"]
    return Step(len(gone), rows[-1]["id"] if more else None)


def bury(age: float) -> Script[Sequence[str]]:
    """Forget workers that have not been seen for long; returns their names."""
    gone = yield one("dead_workers", age=age)
    yield from alerts.note([(Cause.WORKER_LOST.value, str(row["id"]), 0, row["name"], None, None) for row in gone])
    return sorted(row["name"] for row in gone)


def take_duty(name: str, holder: UUID, ttl: float) -> Script[bool]:
    """Whether this process is the one to do the duty for the next `ttl` seconds."""
    return bool((yield one("take_duty", name=name, holder=holder, ttl=ttl)))
