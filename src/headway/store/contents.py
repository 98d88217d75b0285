"""A job's result and output as a store keeps them, put together again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from headway.model.job import Chunk
from headway.store.contract import Views


async def read_content(store: Views, job_id: UUID) -> bytes | None:
    """The content of the whole result, also of a large one; None when there is none, or it was removed meanwhile."""
    stored = await store.result(job_id)
    if stored is None:
        return None
    if stored.data is not None:
        return stored.data
    content = b"".join([chunk.data async for chunk in read_chunks(store, job_id, 0, "result")])
    return content if len(content) == stored.size else None


async def read_chunks(store: Views, job_id: UUID, attempt: int, stream: str | None = None) -> AsyncIterator[Chunk]:
    """Output stored so far, piece by piece."""
    after = -1
    while chunks := await store.chunks(job_id, attempt, stream=stream, after_seq=after):
        for chunk in chunks:
            yield chunk
        after = chunks[-1].seq
