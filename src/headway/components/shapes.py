"""The one shape in which a job is shown, and an error: by REST, in messages and by the command line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID

import msgspec

from headway.model.errors import HeadwayError
from headway.model.job import ErrorInfo, JobRecord, Progress
from headway.model.states import Outcome, State, label
from headway.model.submission import Accepted, Submission
from headway.store.scripts.placing import CREATED

API = "/api/v1"


class _Told(msgspec.Struct, frozen=True):
    """What is shown as the `JobRecord` has it. Lists and batches are made of hundreds, and so many fields are put in by
    their order twenty times as fast as by their names."""

    id: UUID
    kind: str
    name: str
    key: str
    queue: str
    priority: int
    state: State
    label: str
    outcome: Outcome | None
    desired_at: datetime
    run_at: datetime
    created_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    attempt: int
    failures: int
    losses: int
    timeout: float | None
    progress: Progress | None
    tags: tuple[str, ...]
    metadata: dict[str, Any] | None
    error: ErrorInfo | None
    schedule_id: UUID | None
    nominal_at: datetime | None
    worker: str | None
    after: tuple[UUID, ...]
    wait_reason: str | None
    hold: bool
    created_by: str | None
    correlation_id: str | None
    traceparent: str | None
    """The span in which it was submitted."""


class JobShape(_Told, frozen=True, kw_only=True):
    """A job as others see it. Times are RFC 3339 in UTC, durations seconds. What it does (its payload) is not shown:
    that may be long, and not everybody's business."""

    max_attempts: int
    result_url: str | None
    output_url: str | None
    output_location: str | None
    """Where its output lies if not in the store; told where the job stands alone, not in lists."""
    warnings: tuple[str, ...]
    script_sha256: str | msgspec.UnsetType = msgspec.UNSET
    """Only of a script, where the job stands alone."""
    script_size: int | msgspec.UnsetType = msgspec.UNSET
    deduplicated: bool | msgspec.UnsetType = msgspec.UNSET
    """Only in the answer to a submission for which this earlier job stands."""


class ErrorShape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong: `type` is for programs, `message` for people, `field` is what to mend."""

    type: str
    message: str
    field: str | None = None
    conflicting_job_id: UUID | None = None


def job_shape(job: JobRecord, *, warnings: Sequence[str] = (), deduplicated: bool = False) -> JobShape:
    """The job as it is shown."""
    return JobShape(
        *_told(job),
        max_attempts=job.retry.max_attempts if job.retry else 1,
        result_url=f"{API}/jobs/{job.id}/result" if job.state is State.COMPLETED else None,
        output_url=f"{API}/jobs/{job.id}/output" if job.attempt else None,
        output_location=None,
        warnings=tuple(warnings),
        deduplicated=deduplicated or msgspec.UNSET,
    )


_told = attrgetter(*_Told.__struct_fields__)


def error_shape(error: HeadwayError) -> ErrorShape:
    """The error as it is told."""
    return ErrorShape(
        type=error.code,
        message=str(error),
        field=getattr(error, "field", None),
        conflicting_job_id=getattr(error, "conflicting_job_id", None),
    )


def record_of(job: Submission, accepted: Accepted) -> JobRecord:
    """The record of a job just accepted, without asking the store again."""
    return JobRecord(
        id=job.id,
        kind=job.kind,
        name=job.name,
        key=job.conflict_key,
        queue=job.queue,
        priority=job.priority,
        state=accepted.state,
        label=label(accepted.state, due=accepted.run_at <= accepted.created_at, failures=0, wait_reason=None),
        payload=job.payload,
        desired_at=accepted.run_at,
        run_at=accepted.run_at,
        created_at=accepted.created_at,
        expires_at=_expiry(job, accepted),
        timeout=job.timeout,
        retry=job.retry,
        wait_reason=CREATED if job.staged and accepted.state is State.CREATING else None,
        hold=job.hold,
        on_parent_failure=job.on_parent_failure,
        tags=job.tags,
        metadata=job.metadata,
        created_by=job.created_by,
        correlation_id=job.correlation_id,
        traceparent=job.traceparent,
        code_version=job.code_version,
        after=job.after,
        schedule_id=job.schedule_id,
        nominal_at=job.nominal_at,
    )


def _expiry(job: Submission, accepted: Accepted) -> datetime | None:
    if job.expires_at is not None or job.expires_in is None:
        return job.expires_at
    return accepted.created_at + timedelta(seconds=job.expires_in)
