"""CANCEL: a job that waits ends at once; one that runs is told to stop, and ends when it is seen stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from headway.components.messages import Handled, Message, Reach, answered
from headway.components.shapes import job_shape
from headway.components.status import get_job
from headway.components.verdicts import sole, told
from headway.kinds.reading import read
from headway.model.errors import InvalidRequest
from headway.store.contract import Jobs
from headway.store.scripts.cancel import Verdict

CANCEL = "cancel"
REASON = "cancelled on request"


async def cancel_jobs(
    store: Jobs, ids: Sequence[UUID], *, by: str | None, reason: str = REASON, correlation_id: str | None = None
) -> list[Verdict]:
    """Cancel jobs; those that have ended stay as they are."""
    return told(CANCEL, ids, await store.cancel(ids, by=by, reason=reason), correlation_id)


async def delete_jobs(
    store: Jobs, ids: Sequence[UUID], *, by: str | None, correlation_id: str | None = None
) -> list[Verdict]:
    """Remove jobs with all that belongs to them; running ones are cancelled first."""
    return told(CANCEL, ids, await store.delete(ids, by=by), correlation_id)


class _Payload(msgspec.Struct):
    job_id: Annotated[UUID, Meta(description="the id of a job")]
    reason: Annotated[str, Meta(description="a text")] = REASON


class CancelJob:
    """Acts on CANCEL: `{"type": "CANCEL", "payload": {"job_id": …, "reason"?: …}}`."""

    handles = "CANCEL"
    name = CANCEL

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def handle(self, message: Message) -> Handled | None:
        return await answered(self, message, self._cancel) if message.type == self.handles else None

    async def _cancel(self, message: Message) -> Handled:
        asked = read(_Payload, message.payload, InvalidRequest)
        await self._reach.call(lambda store: _cancelled(store, asked, message))
        job = await self._reach.call(lambda store: get_job(store, asked.job_id))
        return Handled({"ok": True, "job": job_shape(job)}, job_id=asked.job_id)


async def _cancelled(store: Jobs, asked: _Payload, message: Message) -> Any:
    verdicts = await cancel_jobs(
        store, [asked.job_id], by=message.by, reason=asked.reason, correlation_id=message.correlation_id
    )
    return sole(verdicts)
