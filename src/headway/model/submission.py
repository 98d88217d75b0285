"""What is submitted: a job as its submitter describes it, how it is checked, and the store's answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec

from headway.model.errors import InvalidJob, TooLarge
from headway.model.moments import check_moment
from headway.model.retry import Retry
from headway.model.sealed import Attachment
from headway.model.states import State

INLINE_LIMIT = 256 * 1024
"""Arguments above this are refused; results above it are stored in chunks."""
METADATA_LIMIT = 4 * 1024


_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")


@lru_cache(maxsize=4096)
def check_name(field: str, text: str) -> None:
    """Raise InvalidJob for what is no name. The same few are asked about again and again: good ones are remembered."""
    if not _NAME.fullmatch(text):
        raise InvalidJob(
            f"{field} must be 1 to 200 characters without control characters, not {text[:250]!r}", field=field
        )


def texts(field: str, given: Any, error: type[InvalidJob] = InvalidJob) -> tuple[str, ...]:
    """One text or several, as a tuple. Raises `error`."""
    several = (given,) if isinstance(given, str) else given
    if not isinstance(several, Collection) or not all(isinstance(each, str) for each in several):
        raise error(f"{field} must be a text or a list of texts, not {given!r}", field=field)
    return tuple(several)


class OnConflict(StrEnum):
    """What a submission does when another open job has the same key."""

    ALLOW = "allow"
    REJECT = "reject"
    WAIT = "wait"
    SKIP = "skip"
    REPLACE = "replace"


class OnParentFailure(StrEnum):
    """What becomes of a job when one that it waits for didn't complete."""

    CANCEL = "cancel"
    RUN = "run"
    HOLD = "hold"


class Dedupe(msgspec.Struct, frozen=True):
    """Within `window` seconds after a submission with this key, further ones get the earlier job."""

    key: str
    window: float = 3600.0


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A job as asked for, complete and checked, ready to be stored."""

    id: UUID
    kind: str
    name: str
    payload: str
    """JSON, made and read by the executor of this kind."""
    key: str | None = None
    queue: str = "default"
    priority: int = 0
    run_at: datetime | None = None
    delay: float = 0.0
    """Seconds after acceptance, counted by the store's clock; only without `run_at`."""
    timeout: float | None = None
    retry: Retry | None = None
    on_conflict: OnConflict = OnConflict.ALLOW
    curious: bool = False
    """Its submitter has named `on_conflict`: wants to be told of the other, even where both may run."""
    dedupe: Dedupe | None = None
    after: tuple[UUID, ...] = ()
    on_parent_failure: OnParentFailure = OnParentFailure.CANCEL
    hold: bool = False
    staged: bool = False
    """Stored as `creating`: a SCHEDULE message lets it go on, or the sweep does if that got lost."""
    expires_at: datetime | None = None
    expires_in: float | None = None
    retain: float | None = None
    """Keep the job this many seconds after its end instead of the queue's retention."""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] | None = None
    created_by: str | None = None
    correlation_id: str | None = None
    traceparent: str | None = None
    code_version: str | None = None
    schedule_id: UUID | None = None
    nominal_at: datetime | None = None
    """The schedule that made this job, and the time of its timetable that it stands for (None: run by hand)."""
    attachments: tuple[Attachment, ...] = ()
    """Scripts, files and credentials, stored with the job and gone with the last one that uses them."""
    fingerprint: bytes | None = None
    """What tells a repeat, instead of the submission itself: of a body, which says the same even after the defaults
    that it was completed with have changed."""

    def __post_init__(self) -> None:
        if not -100 <= self.priority <= 100:
            raise InvalidJob(f"priority must be from -100 to 100, not {self.priority}", field="priority")
        if self.timeout is not None and self.timeout <= 0:
            raise InvalidJob(
                f"timeout must be more than 0 seconds, or None for no limit, not {self.timeout:g}", field="timeout"
            )
        check_name("queue", self.queue)
        check_name("name", self.name)
        if self.key:
            check_name("key", self.key)
        for tag in self.tags:
            check_name("tags", tag)
        if self.run_at is not None:
            check_moment("run_at", self.run_at)
        if self.expires_at is not None:
            check_moment("expires", self.expires_at)
        size = len(self.payload) if self.payload.isascii() else len(self.payload.encode())
        if size > INLINE_LIMIT:
            raise TooLarge(
                f"the arguments of {self.name!r} take {size:,} bytes, the limit is {INLINE_LIMIT:,}: "
                "store the data elsewhere and pass a reference to it",
                field="payload",
            )
        if self.metadata is not None:
            _check_metadata(self.metadata)

    @property
    def conflict_key(self) -> str:
        return self.key or self.name

    @property
    def plain(self) -> bool:
        """Needs no look at other jobs: may be coalesced with others into one statement."""
        return (
            self.key is None
            and self.on_conflict is OnConflict.ALLOW
            and not self.curious
            and self.dedupe is None
            and not self.after
            and not self.attachments
        )

    def digest(self) -> bytes:
        """Equal for repeats of the same submission; tells a repeat from another job with the same id."""
        if self.fingerprint is not None:
            return self.fingerprint
        content = f"{self.kind}\0{self.name}\0{self.key}\0{self.queue}\0{self.priority}\0{self.payload}"
        for each in self.attachments:
            content += f"\0{each.role}\0{each.name}\0{each.size}\0{each.sha256}"
        return hashlib.blake2b(content.encode(), digest_size=16).digest()


def _check_metadata(metadata: dict[str, Any]) -> None:
    try:
        size = len(msgspec.json.encode(metadata))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidJob(f"metadata can't be stored as JSON: {error}", field="metadata") from error
    if size > METADATA_LIMIT:
        raise TooLarge(f"metadata must not exceed {METADATA_LIMIT:,} bytes of JSON", field="metadata")


class Moved(msgspec.Struct, frozen=True):
    """What an act has done to a job; nothing, if both are the same."""

    before: State
    state: State


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The store's answer to a submission: the job it became, or the earlier one that stands for it."""

    job_id: UUID
    state: State
    run_at: datetime
    created_at: datetime
    deduplicated: bool = False
    overlapped: bool = False
    """It stands for this one because it had not ended, not because of a window."""
    repeated: bool = False
    """The very same submission was accepted before: `state` tells what has become of it."""
    warnings: tuple[str, ...] = ()
    replaced: tuple[tuple[UUID, Moved], ...] = ()
    """The jobs that were cancelled for this one, or are to be."""

    @property
    def earlier(self) -> bool:
        """The answer is a job that was there before."""
        return self.deduplicated or self.repeated


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be changed of a job that nobody has begun; None stays as it is."""

    run_at: datetime | None = None
    priority: int | None = None
    queue: str | None = None
    payload: str | None = None

    def __post_init__(self) -> None:
        if self.run_at is not None:
            check_moment("run_at", self.run_at)

    def __str__(self) -> str:
        told = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return ", ".join(name if name == "payload" else f"{name} {value}" for name, value in told.items())
