"""A job as data: what is stored, what a worker holds, how it ends. What is submitted: `submission`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from headway.model.result import JSON, About
from headway.model.retry import Failure, Retry
from headway.model.states import Outcome, State
from headway.model.submission import OnParentFailure

CHUNK = 64 * 1024
SUSPECT_LOSSES = 2
"""Lost this often, a job is run alone in a fresh child process to find out whether it kills its worker."""
UNPROVEN_LOSSES = 6
"""Lost this often without a surviving witness, after longer and longer waits, a job counts as poison all the same."""


class ErrorInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an attempt ended as it did, for people."""

    type: str
    message: str
    traceback: str | None = None
    details: dict[str, Any] | None = None
    """What else is known of the failure, such as the response of a server: status, headers, body, timings."""


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a running job says it is."""

    done: float
    total: float | None = None
    text: str | None = None


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the store tells about one job, as of one moment. What has a default is so until an attempt begins."""

    id: UUID
    kind: str
    name: str
    key: str
    queue: str
    priority: int
    state: State
    label: str
    outcome: Outcome | None = None
    payload: str
    desired_at: datetime
    run_at: datetime
    created_at: datetime
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None
    attempt: int = 0
    failures: int = 0
    losses: int = 0
    token: int = 0
    timeout: float | None
    retry: Retry | None
    error: ErrorInfo | None = None
    progress: Progress | None = None
    wait_reason: str | None
    hold: bool
    on_parent_failure: OnParentFailure
    tags: tuple[str, ...]
    metadata: dict[str, Any] | None
    created_by: str | None
    correlation_id: str | None
    traceparent: str | None
    code_version: str | None
    worker: str | None = None
    after: tuple[UUID, ...]
    schedule_id: UUID | None = None
    nominal_at: datetime | None = None


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at a job, earlier or current."""

    number: int
    outcome: Outcome | None
    error: ErrorInfo | None
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    worker: str | None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a job's history."""

    at: datetime
    what: str
    """A state the job entered, or an act on it: `cancel`, `retry`, `give_back`, `snooze`, `edit`…"""
    by: str | None = None
    detail: str | None = None


OUTLIVING = "script"
"""The kind whose work goes on elsewhere when its worker dies: such a job is cancelled only once it is seen stopped."""


class Claim(msgspec.Struct, frozen=True):
    """A job in a worker's hands: what is needed to run it, and the token that every write about it carries.

    The order of the fields is the order of the columns that the stores' claim statements return; the last two are the
    same for all of a claim.
    """

    id: UUID
    token: int
    kind: str
    name: str
    payload: str
    attempt: int
    failures: int
    losses: int
    timeout: float | None
    retry: str | None
    correlation_id: str | None
    traceparent: str | None
    lease_id: UUID
    queue: str

    @property
    def suspect(self) -> bool:
        """May be killing its workers: to be run alone, in a child process of its own."""
        return self.losses >= SUSPECT_LOSSES


class Finish(msgspec.Struct, frozen=True):
    """The end of a job, as its worker saw it. Built by the named constructors only."""

    job_id: UUID
    token: int
    state: State
    outcome: Outcome
    ran: float | None
    """Seconds since the attempt began (None: it never did): the store works out `started_at` by its own clock."""
    result: bytes | None = None
    content_type: str = JSON
    meta: str | None = None
    source: str | None = None
    error: str | None = None

    @property
    def plain(self) -> bool:
        """A success that leaves nothing but itself."""
        return self.state is State.COMPLETED and self.result is None

    @classmethod
    def succeeded(cls, claim: Claim, ran: float | None, result: bytes | None, about: About | None = None) -> Finish:
        # By position, which takes half the time: nearly all jobs end like this.
        ended = cls(claim.id, claim.token, State.COMPLETED, Outcome.SUCCEEDED, ran, result)
        return msgspec.structs.replace(ended, **about.fields()) if about is not None else ended

    @classmethod
    def failed(
        cls,
        claim: Claim,
        ran: float | None,
        error: ErrorInfo,
        outcome: Outcome = Outcome.FAILED,
        result: bytes | None = None,
    ) -> Finish:
        return cls(
            job_id=claim.id,
            token=claim.token,
            state=State.FAILED,
            outcome=outcome,
            ran=ran,
            error=encode(error),
            result=result,
        )

    @classmethod
    def cancelled(cls, claim: Claim, ran: float | None, reason: str) -> Finish:
        return cls(
            job_id=claim.id,
            token=claim.token,
            state=State.CANCELLED,
            outcome=Outcome.CANCELLED,
            ran=ran,
            error=encode(ErrorInfo("Cancelled", reason)),
        )


NOT_HERE = "NoCode"
"""The type of the error that says what a parked job lacked."""
ReleaseReason = Literal["retry", "snooze", "give_back", "parked", "lost"]


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """A job going back to wait for its next attempt. Built by the named constructors only."""

    job_id: UUID
    token: int
    reason: ReleaseReason
    wait: float = 0.0
    ran: float | None = None
    outcome: Outcome | None = None
    error: str | None = None

    @classmethod
    def retry(cls, claim: Claim, ran: float, wait: float, error: ErrorInfo, outcome: Outcome) -> Release:
        """An attempt failed and another is due after `wait` seconds."""
        return cls(
            job_id=claim.id, token=claim.token, reason="retry", wait=wait, ran=ran, outcome=outcome, error=encode(error)
        )

    @classmethod
    def lost(cls, claim: Claim, ran: float, error: ErrorInfo) -> Release:
        """The child process that ran the job died under it."""
        return cls(
            job_id=claim.id, token=claim.token, reason="lost", ran=ran, outcome=Outcome.LOST, error=encode(error)
        )

    @classmethod
    def snooze(cls, claim: Claim, ran: float, wait: float) -> Release:
        """The job asked to be run later; no attempt is charged."""
        return cls(job_id=claim.id, token=claim.token, reason="snooze", wait=wait, ran=ran)

    @classmethod
    def give_back(cls, claim: Claim) -> Release:
        """The worker stops before the job ended; no attempt is charged."""
        return cls(job_id=claim.id, token=claim.token, reason="give_back")

    @classmethod
    def parked(cls, claim: Claim, wait: float, missing: str | None = None) -> Release:
        """This worker lacks what the job needs, such as its code; no attempt is charged."""
        error = encode(ErrorInfo(NOT_HERE, missing)) if missing else None
        return cls(job_id=claim.id, token=claim.token, reason="parked", wait=wait, error=error)


class Ended(msgspec.Struct, frozen=True):
    """What the store made of a `Finish` or `Release`; `state` is None when the write was refused (`LeaseLost`)."""

    state: State | None
    outcome: Outcome | None = None

    @property
    def accepted(self) -> bool:
        return self.state is not None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """News of a job that is still running."""

    job_id: UUID
    token: int
    ran: float
    progress: str | None = None


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of output, at most `CHUNK` bytes, never changed once stored."""

    seq: int
    stream: str
    data: bytes
    at: datetime | None = None
    """When it was stored; None on its way there."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a job has left. `note` says why it is not, or not all, there."""

    name: str
    size: int
    sha256: str | None = None
    note: str | None = None
    attempt: int = 0
    at: datetime | None = None


class ChunkSize(msgspec.Struct, frozen=True, kw_only=True):
    """How long a piece of output is."""

    seq: int
    stream: str
    size: int


def encode(value: msgspec.Struct) -> str:
    """A record as JSON text, the form in which stores keep it."""
    return msgspec.json.encode(value).decode()


def error_info(error: BaseException, traceback: str | None = None) -> ErrorInfo:
    """An exception, as kept and shown."""
    return ErrorInfo(type(error).__qualname__, str(error) or type(error).__qualname__, traceback)


def failure_of(error: BaseException) -> Failure:
    """An exception, as the rules of a `Retry` see it."""
    return Failure(
        type=_name(type(error)),
        bases=tuple(_name(base) for base in type(error).__mro__[1:]),
        message=str(error),
        status=getattr(error, "status", None),
        exit=getattr(error, "exit", None),
    )


def _name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
