"""Every error a user can meet. Each says what happened, to what, and what to do."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID


class HeadwayError(Exception):
    """The root of everything Headway raises on purpose."""

    code: ClassVar[str] = "error"
    """What programs go by, in replies to messages and over HTTP; the words are for people."""


class InvalidJob(HeadwayError):
    """A submission can't be accepted as it is; `field` names the part to mend."""

    code = "invalid_job"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class InvalidRequest(InvalidJob):
    """What was asked can't be understood as it is; `field` names the part to mend."""

    code = "invalid_request"


class TooLarge(InvalidJob):
    """A submission takes more room than there is for it."""

    code = "too_large"


class InvalidSchedule(HeadwayError):
    """A schedule can't be accepted as it is; `field` names the part to mend."""

    code = "invalid_schedule"

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class NameTaken(HeadwayError):
    """There is a schedule of that name."""

    code = "conflict"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a schedule {name!r} already: choose another name, or change that one")
        self.field = "name"


class VersionConflict(HeadwayError):
    """A schedule was changed by somebody else since it was read."""

    code = "conflict"

    def __init__(self, name: str, version: int) -> None:
        super().__init__(
            f"schedule {name!r} has been changed meanwhile and is at version {version} now: "
            "read it again, and repeat the change"
        )
        self.version = version


class ScheduleNotFound(HeadwayError):
    """There is no such schedule, or no longer."""

    code = "not_found"

    def __init__(self, schedule: UUID | str) -> None:
        super().__init__(f"there is no schedule {schedule}: see `headway schedules list`")


class UnknownFunction(HeadwayError):
    """No function of that name is registered here."""

    code = "unknown_function"


class IdTaken(HeadwayError):
    """The id belongs to a job with another content."""

    code = "conflict"

    def __init__(self, job_id: UUID) -> None:
        super().__init__(
            f"job {job_id} exists with another content: submit with a new id, or repeat exactly the same submission"
        )
        self.job_id = self.conflicting_job_id = job_id


class Conflict(HeadwayError):
    """`on_conflict="reject"` met another open job of the same key."""

    code = "conflict"

    def __init__(self, key: str, other: UUID) -> None:
        super().__init__(
            f"job {other} with the key {key!r} has not ended yet: wait for it, cancel it, or submit with "
            "on_conflict='wait', 'skip', 'replace' or 'allow'"
        )
        self.key = key
        self.conflicting_job_id = other


class JobNotFound(HeadwayError):
    """There is no such job (any more)."""

    code = "not_found"

    def __init__(self, job_id: UUID) -> None:
        super().__init__(f"there is no job {job_id}: it was never accepted, was deleted, or retention removed it")
        self.job_id = job_id


class IllegalMove(HeadwayError):
    """The job's state doesn't allow what was asked."""

    code = "illegal_move"


class LeaseLost(HeadwayError):
    """A write came from a worker that no longer holds the job; the store refused it."""

    def __init__(self, job_id: UUID) -> None:
        super().__init__(f"job {job_id} is no longer held by this worker: its lease lapsed and the write was refused")
        self.job_id = job_id


class JobFailed(HeadwayError):
    """Raised by `job.result_or_raise()` when the job didn't complete."""


class WaitTimeout(HeadwayError, TimeoutError):
    """The job had not ended when the time given to `wait` was over."""


class StoreUnavailable(HeadwayError):
    """The store can't be reached."""

    code = "unavailable"


class KeyBusy(StoreUnavailable):
    """Another transaction holds the key for too long."""


class NotServed(StoreUnavailable):
    """This process leaves such messages to others: put it back."""


class SchemaError(HeadwayError):
    """The store's schema and this code don't fit together."""


class ConfigurationError(HeadwayError):
    """A setting is wrong; the message says which and what it should look like."""


class ForeignLoop(HeadwayError):
    """A blocking call was made on a running event loop."""


# Raised by users' code inside a running job, to say how it should go on.


class Snooze(Exception):
    """Run this job again after `delay` seconds; no attempt is charged."""

    def __init__(self, delay: float) -> None:
        super().__init__(f"snoozed for {delay} s")
        self.delay = delay


class Fail(Exception):
    """Fail for good: whatever the retry policy says, don't try again."""


class Cancel(Exception):
    """End this job as cancelled, by its own wish."""
