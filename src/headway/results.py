"""A job's result and output as the store keeps them, put together again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from headway.model.job import Chunk
from headway.store.contract import Store


async def read_result(store: Store, job_id: UUID) -> bytes | None:
    """The whole result, also a large one; None when there is none."""
    stored = await store.result(job_id)
    if stored is None:
        return None
    if stored.data is not None:
        return stored.data
    return b"".join([chunk.data async for chunk in read_chunks(store, job_id, 0, "result")])


async def read_chunks(store: Store, job_id: UUID, attempt: int, stream: str | None = None) -> AsyncIterator[Chunk]:
    """Output stored so far, piece by piece."""
    after = -1
    while chunks := await store.chunks(job_id, attempt, stream=stream, after_seq=after):
        for chunk in chunks:
            yield chunk
        after = chunks[-1].seq
