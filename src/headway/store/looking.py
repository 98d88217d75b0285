"""The part of a store over SQL that only looks: `Views` of the contract, by scripts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from headway.model.filters import JobFilter
from headway.model.findings import Finding
from headway.model.history import Row as HistoryRow
from headway.model.job import Artifact, Attempt, Change, Chunk, ChunkSize, JobRecord
from headway.model.limits import Retention
from headway.model.overview import QueueStats, Upkeep, WorkerStats
from headway.model.result import ResultMeta, Stored
from headway.model.states import State
from headway.model.why import Why
from headway.model.worker import FunctionInfo, WorkerInfo
from headway.store.driver import Driver, Lane
from headway.store.scripts import checkup, dispatch, figures, lists, output, overview, views, why
from headway.store.scripts.dispatch import Outstanding


class SqlViews:
    """Looks through a driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def get(self, job_ids: Sequence[UUID]) -> list[JobRecord | None]:
        return await self._driver.run(lambda: views.get(job_ids), Lane.READ, single=True)

    async def find(self, wanted: JobFilter) -> list[JobRecord]:
        return await self._driver.run(lambda: lists.find(wanted), Lane.READ)

    async def attempts(self, job_id: UUID) -> list[Attempt]:
        return await self._driver.run(lambda: views.attempts(job_id), Lane.READ)

    async def children(self, job_id: UUID, limit: int = 100) -> list[UUID]:
        return await self._driver.run(lambda: views.children(job_id, limit), Lane.READ, single=True)

    async def history(self, job_id: UUID) -> list[Change]:
        return await self._driver.run(lambda: views.history(job_id), Lane.READ)

    async def result(self, job_id: UUID) -> Stored | None:
        return await self._driver.run(lambda: views.result(job_id), Lane.READ, single=True)

    async def result_metas(self, job_ids: Sequence[UUID]) -> dict[UUID, ResultMeta]:
        return await self._driver.run(lambda: views.result_metas(job_ids), Lane.READ, single=True)

    async def latest_result_of(self, source: str) -> tuple[UUID, ResultMeta] | None:
        return await self._driver.run(lambda: views.latest_result_of(source), Lane.READ, single=True)

    async def chunks(
        self, job_id: UUID, attempt: int, *, stream: str | None = None, after_seq: int = -1, limit: int = 100
    ) -> list[Chunk]:
        return await self._driver.run(
            lambda: views.chunks(job_id, attempt, stream, after_seq, limit), Lane.READ, single=True
        )

    async def chunk_sizes(self, job_id: UUID, attempt: int) -> list[ChunkSize]:
        return await self._driver.run(lambda: views.chunk_sizes(job_id, attempt), Lane.READ, single=True)

    async def open_job(self, key: str) -> UUID | None:
        return await self._driver.run(lambda: views.open_job(key), Lane.READ)

    async def ahead(self, job: JobRecord, limit: int = 1000) -> int | None:
        return await self._driver.run(lambda: views.ahead(job, limit), Lane.READ)

    async def artifacts(self, job_id: UUID) -> list[Artifact]:
        return await self._driver.run(lambda: output.artifacts(job_id), Lane.READ, single=True)

    async def workers(self) -> list[WorkerInfo]:
        return await self._driver.run(views.workers, Lane.READ, single=True)

    async def functions(self) -> list[FunctionInfo]:
        return await self._driver.run(views.functions, Lane.READ, single=True)

    async def counts(self) -> dict[str, dict[State, int]]:
        return await self._driver.run(views.counts, Lane.READ, single=True)

    async def outstanding(self, limit: int = 1000, without: Sequence[str] = ()) -> Outstanding:
        return await self._driver.run(lambda: dispatch.outstanding(limit, without), Lane.READ)

    async def now(self) -> datetime:
        """Workers, who are many, look at the time and little else: their lane of reads stays without a connection."""
        return await self._driver.run(overview.store_time, Lane.WRITE, single=True)

    async def queue_stats(self) -> list[QueueStats]:
        return await self._driver.run(overview.queue_stats, Lane.READ)

    async def worker_stats(self) -> list[WorkerStats]:
        return await self._driver.run(overview.worker_stats, Lane.READ)

    async def ids_starting(self, prefix: str, limit: int = 10) -> list[UUID]:
        return await self._driver.run(lambda: overview.ids_starting(prefix, limit), Lane.READ, single=True)

    async def why(self, job_id: UUID) -> Why | None:
        return await self._driver.run(lambda: why.why(job_id), Lane.READ)

    async def figures(self, since: datetime, queue: str | None = None) -> list[HistoryRow]:
        return await self._driver.run(lambda: figures.look(since, queue), Lane.READ, single=True)

    async def upkeep(self, retention: Retention, cancel_patience: float = 60.0) -> Upkeep:
        return await self._driver.run(lambda: checkup.upkeep(retention, cancel_patience), Lane.READ)

    async def examine(self) -> list[Finding]:
        return await self._driver.examine()
