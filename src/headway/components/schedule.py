"""SCHEDULE: a job goes on to be run: one that was created before, was on hold, or has ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from headway.components.messages import Handled, Message, Reach, answered
from headway.components.shapes import job_shape
from headway.components.status import get_job
from headway.components.verdicts import sole, told
from headway.kinds.body import A_TIME, Time
from headway.kinds.reading import read
from headway.model.errors import IllegalMove, InvalidRequest
from headway.model.moments import check_moment
from headway.store.contract import Jobs
from headway.store.scripts.cancel import Verdict

SCHEDULE = "schedule"


async def schedule_jobs(
    store: Jobs,
    ids: Sequence[UUID],
    run_at: datetime | None = None,
    *,
    by: str | None,
    correlation_id: str | None = None,
) -> list[Verdict]:
    """Let jobs go that were created before or are on hold, at once or at `run_at`. Raises InvalidRequest."""
    if run_at is not None:
        check_moment("run_at", run_at, InvalidRequest)
    return told(SCHEDULE, ids, await store.schedule(ids, run_at, by=by), correlation_id)


async def retry_jobs(
    store: Jobs, ids: Sequence[UUID], *, by: str | None, correlation_id: str | None = None
) -> list[Verdict]:
    """Run ended jobs again, under the same id."""
    return told(SCHEDULE, ids, await store.retry(ids, by=by), correlation_id)


class _Payload(msgspec.Struct):
    job_id: Annotated[UUID, Meta(description="the id of a job")]
    run_at: Annotated[Time | None, Meta(description=A_TIME)] = None


class ScheduleJob:
    """Acts on SCHEDULE: `{"type": "SCHEDULE", "payload": {"job_id": …, "run_at"?: …}}`."""

    handles = "SCHEDULE"
    name = SCHEDULE

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def handle(self, message: Message) -> Handled | None:
        return await answered(self, message, self._schedule) if message.type == self.handles else None

    async def _schedule(self, message: Message) -> Handled:
        asked = read(_Payload, message.payload, InvalidRequest)
        try:
            await self._reach.call(lambda store: _scheduled(store, asked, message))
        except IllegalMove:
            # The job has gone on since this message was first acted on: what it asked for is done.
            if not message.redelivered:
                raise
        job = await self._reach.call(lambda store: get_job(store, asked.job_id))
        return Handled({"ok": True, "job": job_shape(job)}, job_id=asked.job_id)


async def _scheduled(store: Jobs, asked: _Payload, message: Message) -> Any:
    verdicts = await schedule_jobs(
        store, [asked.job_id], asked.run_at, by=message.by, correlation_id=message.correlation_id
    )
    return sole(verdicts)
