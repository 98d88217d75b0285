"""The part of a store over SQL that only looks: `Views` of the contract, by scripts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from headway.model.filters import JobFilter
from headway.model.findings import Finding
from headway.model.job import Attempt, Change, Chunk, JobRecord, Stored
from headway.model.limits import Retention
from headway.model.overview import QueueStats, Upkeep, WorkerStats
from headway.model.states import State
from headway.model.why import Why
from headway.model.worker import FunctionInfo, WorkerInfo
from headway.store.driver import Driver, Lane
from headway.store.scripts import checkup, dispatch, overview, views, why
from headway.store.scripts.dispatch import Outstanding


class SqlViews:
    """Looks through a driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def get(self, job_ids: Sequence[UUID]) -> list[JobRecord | None]:
        return await self._driver.run(lambda: views.get(job_ids), Lane.READ, single=True)

    async def find(self, wanted: JobFilter) -> list[JobRecord]:
        return await self._driver.run(lambda: views.find(wanted), Lane.READ, single=True)

    async def attempts(self, job_id: UUID) -> list[Attempt]:
        return await self._driver.run(lambda: views.attempts(job_id), Lane.READ)

    async def history(self, job_id: UUID) -> list[Change]:
        return await self._driver.run(lambda: views.history(job_id), Lane.READ)

    async def result(self, job_id: UUID) -> Stored | None:
        return await self._driver.run(lambda: views.result(job_id), Lane.READ, single=True)

    async def chunks(
        self, job_id: UUID, attempt: int, *, stream: str | None = None, after_seq: int = -1, limit: int = 100
    ) -> list[Chunk]:
        return await self._driver.run(
            lambda: views.chunks(job_id, attempt, stream, after_seq, limit), Lane.READ, single=True
        )

    async def workers(self) -> list[WorkerInfo]:
        return await self._driver.run(views.workers, Lane.READ, single=True)

    async def functions(self) -> list[FunctionInfo]:
        return await self._driver.run(views.functions, Lane.READ, single=True)

    async def counts(self) -> dict[str, dict[State, int]]:
        return await self._driver.run(views.counts, Lane.READ, single=True)

    async def outstanding(self, limit: int = 1000) -> Outstanding:
        return await self._driver.run(lambda: dispatch.outstanding(limit), Lane.READ)

    async def now(self) -> datetime:
        return await self._driver.run(overview.store_time, Lane.READ, single=True)

    async def queue_stats(self) -> list[QueueStats]:
        return await self._driver.run(overview.queue_stats, Lane.READ)

    async def worker_stats(self) -> list[WorkerStats]:
        return await self._driver.run(overview.worker_stats, Lane.READ)

    async def ids_starting(self, prefix: str, limit: int = 10) -> list[UUID]:
        return await self._driver.run(lambda: overview.ids_starting(prefix, limit), Lane.READ, single=True)

    async def why(self, job_id: UUID) -> Why | None:
        return await self._driver.run(lambda: why.why(job_id), Lane.READ)

    async def upkeep(self, retention: Retention, cancel_patience: float = 60.0) -> Upkeep:
        return await self._driver.run(lambda: checkup.upkeep(retention, cancel_patience), Lane.READ)

    async def examine(self) -> list[Finding]:
        return await self._driver.examine()
