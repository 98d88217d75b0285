"""How a submission is stored: in which state, as which row, with which first line of its history, ringing for whom."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headway.model.job import encode
from headway.model.states import State
from headway.model.submission import Submission
from headway.store.scripts.rows import later

CREATED = "created"
"""The `wait_reason` of a job that waits for its SCHEDULE message; the sweep goes by it."""


class Placed(msgspec.Struct, frozen=True):
    """A submission with the state in which it is stored."""

    job: Submission
    state: State
    wait_reason: str | None = None


def placed_of(job: Submission, waits_for: str | None = None) -> Placed:
    """Where a submission begins that waits for this reason, or for none."""
    if job.hold:
        return Placed(job, State.CREATING, waits_for)
    if job.staged:
        return Placed(job, State.CREATING, CREATED)
    return Placed(job, State.BLOCKED if waits_for else State.SCHEDULED, waits_for)


def row_of(place: Placed) -> tuple[object, ...]:
    """In the order of the columns of `insert_jobs`."""
    job = place.job
    return (
        job.id,
        job.kind,
        job.name,
        job.conflict_key,
        job.queue,
        -job.priority,
        place.state,
        1 if place.state is State.SCHEDULED else 2,
        job.run_at,
        job.delay,
        job.expires_at,
        job.expires_in,
        job.timeout,
        encode(job.retry) if job.retry else None,
        job.payload,
        job.hold,
        job.on_conflict,
        job.on_parent_failure,
        job.dedupe is not None,
        place.wait_reason,
        msgspec.json.encode(job.tags).decode() if job.tags else None,
        msgspec.json.encode(job.metadata).decode() if job.metadata is not None else None,
        job.created_by,
        job.correlation_id,
        job.traceparent,
        job.code_version,
        job.retain,
        job.schedule_id,
        job.nominal_at,
        job.digest(),
    )


def first_line(place: Placed) -> tuple[object, ...]:
    """The first line of a job's history."""
    detail = None if place.wait_reason == CREATED else place.wait_reason
    return (place.job.id, place.state.value, place.job.created_by, detail)


def ring_of(job: Submission) -> str:
    """Whom to wake for it."""
    return job.queue if due_now(job) else later(job.queue)


def due_now(job: Submission, now: datetime | None = None) -> bool:
    """Due at acceptance, as far as the submission tells, and the clock if it is given: only such jobs take part in
    dedupe. A schedule fires when the nominal time has come."""
    passed = job.run_at is None or job.run_at == job.nominal_at or (now is not None and job.run_at <= now)
    return passed and not job.delay and not job.hold
