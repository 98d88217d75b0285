"""What an app tells of its jobs. Each look has a blocking form and an async one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar
from uuid import UUID

from headway.client import Client
from headway.clock import Clock, sleep
from headway.components.status import find_jobs, get_job
from headway.executors.call.arguments import called
from headway.executors.call.functions import Registry
from headway.jobs import Job, decode_result, id_of
from headway.model.errors import InvalidRequest, JobNotFound, WaitTimeout
from headway.model.filters import JobFilter
from headway.model.job import JobRecord
from headway.model.result import JSON
from headway.model.states import State
from headway.model.submission import texts
from headway.model.why import Why
from headway.options import checked
from headway.results import Result, describe_result, load_result, read_chunks
from headway.store.contract import Store

T = TypeVar("T")

_LONGEST_LOOK = 0.25


class Looking(ABC):
    """The part of an app that looks at jobs."""

    client: Client
    registry: Registry
    _clock: Clock

    @abstractmethod
    def block(self, call: Coroutine[Any, Any, T], name: str) -> T:
        """Wait for a call from plain code."""

    def get(self, job_id: Job[Any] | UUID) -> Job[Any]:
        """The job as it is now. Raises JobNotFound."""
        return self.block(self.aget(job_id), "get")

    async def aget(self, job_id: Job[Any] | UUID) -> Job[Any]:
        """The job as it is now. Raises JobNotFound."""
        return await self._with_result(await self.client.call(lambda store: get_job(store, id_of(job_id))))

    def jobs(self, **wanted: Any) -> list[Job[Any]]:
        """Jobs that match, newest first: `state=`, `kind=`, `queue=`, `name=`, `tags=`, `since=`, `until=`, `limit=`"""
        return self.block(self.ajobs(**wanted), "jobs")

    async def ajobs(self, **wanted: Any) -> list[Job[Any]]:
        """Jobs that match, newest first."""
        asked = _filter(wanted)
        page = await self.client.call(lambda store: find_jobs(store, asked))
        return [Job(record.id, record.state, record, self) for record in page.jobs]

    def wait(self, job_id: Job[Any] | UUID, timeout: float | None = None) -> Job[Any]:
        """The job when it has ended. Raises WaitTimeout."""
        return self.block(self.await_ended(job_id, timeout), "wait")

    async def await_ended(self, job_id: Job[Any] | UUID, timeout: float | None = None) -> Job[Any]:
        """The job when it has ended. Raises WaitTimeout."""
        started, pause = self._clock.monotonic(), 0.002
        while True:
            job = await self.aget(job_id)
            if job.ended:
                return job
            if timeout is not None and self._clock.monotonic() - started >= timeout:
                raise WaitTimeout(f"job {job.id} ({job.name}) is still {job.state} after {timeout:g} s")
            await sleep(self._clock, pause)
            pause = min(pause * 1.5, _LONGEST_LOOK)

    async def aoutput(self, job_id: Job[Any] | UUID, attempt: int | None = None) -> bytes:
        """What the job wrote and logged, of its last attempt or another."""
        number = attempt if attempt is not None else (await self.aget(job_id)).attempt

        async def read(store: Store) -> bytes:
            return b"".join([chunk.data async for chunk in read_chunks(store, id_of(job_id), number)])

        return await self.client.call(read)

    def output(self, job_id: Job[Any] | UUID, attempt: int | None = None) -> bytes:
        """What the job wrote and logged, of its last attempt or another."""
        return self.block(self.aoutput(job_id, attempt), "output")

    async def aresult_meta(self, job_id: Job[Any] | UUID) -> dict[str, Any] | None:
        """What is known of a job's result besides its content, such as the status, headers and timings of a response;
        None when there is none."""
        found = await self.client.call(lambda store: store.result_metas([id_of(job_id)]))
        return describe_result(*found.values()) if found else None

    def result_meta(self, job_id: Job[Any] | UUID) -> dict[str, Any] | None:
        """What is known of a job's result besides its content, such as the status, headers and timings of a response;
        None when there is none."""
        return self.block(self.aresult_meta(job_id), "result_meta")

    async def awhy(self, job_id: Job[Any] | UUID) -> Why:
        """Why the job is not running now, in a sentence, and what to do. Raises JobNotFound."""
        why = await self.client.call(lambda store: store.why(id_of(job_id)))
        if why is None:
            raise JobNotFound(id_of(job_id))
        return why

    def why(self, job_id: Job[Any] | UUID) -> Why:
        """Why the job is not running now, in a sentence, and what to do. Raises JobNotFound."""
        return self.block(self.awhy(job_id), "why")

    async def _with_result(self, record: JobRecord) -> Job[Any]:
        result = None
        if record.state is State.COMPLETED:
            found = await self.client.call(lambda store: load_result(store, record.id))
            result = self._decode(record, found)
        return Job(record.id, record.state, record, self, result=result)

    def _decode(self, record: JobRecord, found: Result | None) -> Any:
        """Fetched content stays as it came, whatever its type."""
        if found is None:
            return None
        if record.kind == "fetch" or found.content_type != JSON:
            return found.content
        function = self.registry.get(called(record.payload)) if record.kind == "call" else None
        return function.returns.decode(found.content) if function else decode_result(found.content)


def _filter(wanted: Mapping[str, Any]) -> JobFilter:
    asked = {
        "states": texts("state", wanted.get("state", ()), InvalidRequest),
        "tags": texts("tags", wanted.get("tags", wanted.get("tag", ())), InvalidRequest),
    }
    rest = {name: value for name, value in wanted.items() if name not in {"state", "tags", "tag"}}
    return checked(JobFilter, {**asked, **rest})
