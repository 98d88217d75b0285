"""A job in the hands of a library user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from uuid import UUID

import msgspec

from headway.model.errors import InvalidRequest, JobFailed
from headway.model.job import ErrorInfo, JobRecord, Progress
from headway.model.states import Outcome, State
from headway.model.submission import Accepted

R = TypeVar("R")


class Source(Protocol):
    """Where a snapshot gets newer ones from."""

    def get(self, job_id: UUID) -> Job[Any]: ...
    async def aget(self, job_id: UUID) -> Job[Any]: ...
    def wait(self, job_id: UUID, timeout: float | None) -> Job[Any]: ...
    async def await_ended(self, job_id: UUID, timeout: float | None) -> Job[Any]: ...


class Job(Generic[R]):
    """A frozen snapshot of a job: it tells what was true when it was taken. `refresh` gives a newer one."""

    if TYPE_CHECKING:
        name: str
        kind: str
        key: str
        queue: str
        priority: int
        label: str
        outcome: Outcome | None
        error: ErrorInfo | None
        progress: Progress | None
        attempt: int
        failures: int
        losses: int
        run_at: datetime
        desired_at: datetime
        created_at: datetime
        claimed_at: datetime | None
        started_at: datetime | None
        finished_at: datetime | None
        wait_reason: str | None
        tags: tuple[str, ...]
        metadata: dict[str, Any] | None
        after: tuple[UUID, ...]

    __slots__ = ("_record", "_source", "deduplicated", "id", "result", "state", "warnings")

    id: UUID
    state: State
    result: R | None
    """What the function returned; None until the job is completed."""
    deduplicated: bool
    """The submission was answered with this earlier job."""
    warnings: tuple[str, ...]
    _source: Source

    def __init__(  # noqa: PLR0913 - built in two places of the app, never by users
        self,
        job_id: UUID,
        state: State,
        record: JobRecord | Callable[[], JobRecord],
        source: Source,
        *,
        result: R | None = None,
        accepted: Accepted | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "id", job_id)
        put(self, "state", state)
        put(self, "result", result)
        put(self, "deduplicated", accepted is not None and accepted.deduplicated)
        put(self, "warnings", accepted.warnings if accepted is not None else ())
        put(self, "_record", record)
        put(self, "_source", source)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Job is a snapshot, {name!r} can't be set; use app.cancel, app.retry and so on")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in JobRecord.__struct_fields__:
            raise AttributeError(f"a Job has no {name!r}")
        return getattr(self.record, name)

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.name} {self.state}>"

    @property
    def record(self) -> JobRecord:
        """All that the store tells."""
        if not isinstance(self._record, JobRecord):
            object.__setattr__(self, "_record", self._record())
        record: JobRecord = self._record
        return record

    @property
    def ended(self) -> bool:
        return self.state.terminal

    def as_of(self, recorded: Mapping[str, Any]) -> Job[R]:
        """The snapshot as it was when these fields were recorded; the job may have gone on since."""
        record = msgspec.structs.replace(self.record, **recorded)
        return Job(self.id, record.state, record, self._source, result=self.result)

    def refresh(self) -> Job[R]:
        """A new snapshot."""
        return self._source.get(self.id)

    async def arefresh(self) -> Job[R]:
        """A new snapshot."""
        return await self._source.aget(self.id)

    def wait(self, timeout: float | None = None) -> Job[R]:
        """The job when it has ended. Raises WaitTimeout if that takes longer than `timeout` seconds."""
        return self._source.wait(self.id, timeout)

    async def finished(self, timeout: float | None = None) -> Job[R]:
        """The job when it has ended. Raises WaitTimeout if that takes longer than `timeout` seconds."""
        return await self._source.await_ended(self.id, timeout)

    def result_or_raise(self) -> R | None:
        """The result of a completed job; raises JobFailed for one that ended otherwise, or not yet."""
        if self.state is State.COMPLETED:
            return self.result
        reason = self.error.message if self.error else self.state.value
        raise JobFailed(f"job {self.id} ({self.name}) is {self.state}: {reason}")


def decode_result(data: bytes) -> Any:
    """A result without its function at hand: plain data."""
    return msgspec.json.decode(data)


def id_of(job: Job[Any] | UUID) -> UUID:
    """By which a job is known. Raises InvalidRequest."""
    if isinstance(job, Job):
        return job.id
    if not isinstance(job, UUID):
        raise InvalidRequest(f"a job is named by its id, a UUID, or by the Job itself, not by {job!r}", field="job_id")
    return job
