"""Every error a user can meet. Each says what happened, to what, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
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


class NotStorable(InvalidRequest):
    """The store can't take this very content, such as U+0000 in a text on PostgreSQL: it would be refused again."""


class InvalidSchedule(HeadwayError):
    """A schedule can't be accepted as it is; `field` names the part to mend."""

    code = "invalid_schedule"

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class SecretNotFound(HeadwayError):
    """A job or a target refers to a secret that isn't there."""

    code = "secret_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no secret {name!r}: make it with `headway secrets set {name}`, or mend its name")
        self.name = name


class VaultLocked(HeadwayError):
    """This process has not got the key that secrets are sealed with. Another may have it."""

    code = "vault_locked"


class VaultKeyRetired(HeadwayError):
    """Something was sealed with a key that has been replaced meanwhile."""

    code = "unavailable"

    def __init__(self, key_id: str) -> None:
        super().__init__(f"the vault's key was changed at this very moment (from {key_id}): try again")
        self.key_id = key_id


class SealBroken(HeadwayError):
    """Sealed content was changed, or stands where it doesn't belong: it can't be opened."""

    code = "seal_broken"


class AttachmentNotFound(HeadwayError):
    """What a job was to share with another, or was uploaded for it, is gone."""

    code = "not_found"

    def __init__(self, role: str, name: str) -> None:
        super().__init__(
            f"the {role} {name!r} is gone: the job it belonged to was deleted, or it was uploaded more than a day ago "
            "and never used; give it again"
        )
        self.field = role


class TargetNotFound(HeadwayError):
    """There is no such target, or no longer."""

    code = "not_found"

    def __init__(self, target: UUID | str) -> None:
        super().__init__(f"there is no target {str(target)!r}: see `headway targets list`")
        self.field = "target"


class TargetInUse(HeadwayError):
    """Jobs that have not ended name this target: they would never find it again."""

    code = "conflict"

    def __init__(self, name: str, jobs: Sequence[UUID], *, more: bool) -> None:
        told = f"{', '.join(map(str, jobs))}{' and others' if more else ''}"
        super().__init__(
            f"the target {name!r} is named by jobs that have not ended: {told}. Wait for them or cancel them first; if "
            "its server is gone for good, so that nobody can see their scripts stopped, delete it with force"
        )
        self.conflicting_job_id = jobs[0]


class NameTaken(HeadwayError):
    """There is a schedule, target, user or token of that name."""

    code = "conflict"

    def __init__(self, name: str, what: str = "schedule") -> None:
        super().__init__(f"there is a {what} {name!r} already: choose another name, or change that one")
        self.field = "name"


class VersionConflict(HeadwayError):
    """A schedule or a target was changed by somebody else since it was read."""

    code = "version_conflict"

    def __init__(self, name: str, version: int | None, what: str = "schedule") -> None:
        where = "is not at the version that was named" if version is None else f"is at version {version} now"
        super().__init__(
            f"{what} {name!r} has been changed meanwhile and {where}: read it again, and repeat the change"
        )
        self.version = version


class ScheduleNotFound(HeadwayError):
    """There is no such schedule, or no longer."""

    code = "not_found"

    def __init__(self, schedule: UUID | str) -> None:
        super().__init__(f"there is no schedule {schedule}: see `headway schedules list`")


class UserNotFound(HeadwayError):
    """There is no such user, or no longer."""

    code = "not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no user {name!r}: see `headway users list`")


class TokenNotFound(HeadwayError):
    """There is no such token, or no longer."""

    code = "not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no token {name!r}: see `headway tokens list`")


class UnknownFunction(HeadwayError):
    """No function of that name is registered here."""

    code = "unknown_function"


class IdTaken(HeadwayError):
    """The id belongs to a job, or a schedule, with another content."""

    code = "conflict"

    def __init__(self, job_id: UUID, what: str = "job") -> None:
        super().__init__(
            f"{what} {job_id} exists with another content: submit with a new id, or repeat exactly the same submission"
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

    def __init__(self, job_id: UUID | str) -> None:
        super().__init__(f"there is no job {job_id}: it was never accepted, was deleted, or retention removed it")
        self.job_id = job_id


class JobChanged(HeadwayError):
    """A job is no longer as it was when it was read."""

    code = "precondition_failed"

    def __init__(self, job_id: UUID) -> None:
        super().__init__(f"job {job_id} has changed since it was read: read it again, and repeat the change")
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


class OutputUnavailable(HeadwayError):
    """The place for output can't be reached, or refuses."""

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


# What only the service meets.


class Malformed(HeadwayError):
    """A request that is no request: not JSON, cut off, too deep."""

    code = "malformed"


class UnsupportedMediaType(HeadwayError):
    """A body of a type that isn't taken here."""

    code = "unsupported_media_type"


class NotIdentified(HeadwayError):
    """Nobody has shown who they are, or nobody that is known."""

    code = "unauthenticated"


class Forbidden(HeadwayError):
    """Known, but not allowed to do this."""

    code = "forbidden"


class InsecureTransport(HeadwayError):
    """A secret would travel where others can read it."""

    code = "forbidden"

    def __init__(self) -> None:
        super().__init__(
            "this takes or shows secrets, and the line is not encrypted: use https:// (HEADWAY_TLS_CERT and "
            "HEADWAY_TLS_KEY, or a proxy that HEADWAY_TRUSTED_PROXIES names), or call from the machine itself"
        )


class CrossSite(HeadwayError):
    """Another site's page has made a browser send this."""

    code = "forbidden"

    def __init__(self) -> None:
        super().__init__("this was sent by a page of another site: use the service's own page, or a token")


class Throttled(HeadwayError):
    """Too many tries; `wait`: seconds after which the next may be made."""

    code = "throttled"

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait


class NotFound(HeadwayError):
    """There is nothing at that place."""

    code = "not_found"


class MethodNotAllowed(HeadwayError):
    """There is something at that place, but this can't be done with it."""

    code = "method_not_allowed"


class InternalError(HeadwayError):
    """Our own fault; what exactly stands in the log, not in the answer."""

    def __init__(self) -> None:
        super().__init__("something went wrong here that should not: the service's log tells what; try again later")


# Raised by users' code inside a running job, to say how it should go on.


class Snooze(Exception):
    """Run this job again after `delay`, in seconds or as a timedelta; no attempt is charged."""

    def __init__(self, delay: float | timedelta) -> None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if not isinstance(seconds, int | float) or not seconds >= 0:
            raise ValueError(f"Snooze takes seconds or a timedelta, not {delay!r}")
        super().__init__(f"snoozed for {seconds:g} s")
        self.delay = float(seconds)


class Fail(Exception):
    """Fail for good: whatever the retry policy says, don't try again."""


class Cancel(Exception):
    """End this job as cancelled, by its own wish."""
