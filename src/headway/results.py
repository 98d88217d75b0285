"""A job's result and output as the store keeps them, put together again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from headway.model.result import ResultMeta
from headway.store.contents import read_chunks, read_content
from headway.store.contract import Store

__all__ = ["Result", "describe_result", "load_result", "read_chunks", "read_result"]


class Result(ResultMeta, frozen=True, kw_only=True):
    """A whole result, also a large one."""

    content: bytes


async def read_result(store: Store, job_id: UUID) -> bytes | None:
    """The content of the whole result; None when there is none."""
    return await read_content(store, job_id)


async def load_result(store: Store, job_id: UUID) -> Result | None:
    """The whole result and what is known of it; None when there is none."""
    known = (await store.result_metas([job_id])).get(job_id)
    content = await read_content(store, job_id)
    return Result(**msgspec.structs.asdict(known), content=content) if known and content is not None else None


def describe_result(known: ResultMeta) -> dict[str, Any]:
    """What is known of a result besides its content, as it is shown: `content_type`, `size`, and, of a response,
    `status`, `headers`, `timings`, `url`…"""
    return {"content_type": known.content_type, "size": known.size, **known.meta}
