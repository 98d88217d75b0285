"""What servers have answered to jobs of kind `http`, for lists of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from headway.components.shapes import JobShape, job_shape
from headway.model.job import JobRecord
from headway.model.states import State
from headway.store.contract import Store

HTTP = "http"
SHOWN = 4096
"""Characters of a body that are shown in a list; all of it is the job's result."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. `body` is its beginning as text, `truncated` if there is more; None: it is no text."""

    status: int
    headers: dict[str, str]
    timings: dict[str, float | bool]
    body: str | None
    truncated: bool


class AnsweredJob(JobShape, frozen=True, kw_only=True):
    """A job, and what the server said that it asked."""

    response: Response | UnsetType | None = UNSET
    """Only of kind http; None: there is none yet, or the request got none."""


async def answered(store: Store, jobs: Sequence[JobRecord]) -> list[AnsweredJob]:
    """These jobs with the responses that they got."""
    told = await _documents(store, [job.id for job in jobs if job.kind == HTTP and job.state is State.COMPLETED])
    return [AnsweredJob(**msgspec.structs.asdict(job_shape(job)), response=_response(job, told)) for job in jobs]


async def _documents(store: Store, job_ids: Sequence[UUID]) -> dict[UUID, Mapping[str, Any]]:
    """Results of jobs; of one that is kept in chunks, what is known of it besides its content."""
    metas = await store.result_metas(job_ids)
    stored = await asyncio.gather(*(store.result(job_id) for job_id in metas))
    return {
        job_id: msgspec.json.decode(each.data) if each is not None and each.data is not None else metas[job_id].meta
        for job_id, each in zip(metas, stored, strict=True)
    }


def _response(job: JobRecord, told: Mapping[UUID, Mapping[str, Any]]) -> Response | UnsetType | None:
    if job.kind != HTTP:
        return UNSET
    found = told.get(job.id) or (job.error.details if job.error else None) or {}
    if "status" not in found:
        return None
    body = found.get("body")
    return Response(
        status=found["status"],
        headers=found.get("headers", {}),
        timings=found.get("timings", {}),
        body=None if body is None else body[:SHOWN],
        truncated=body is None or len(body) > SHOWN or bool(found.get("truncated")),
    )
