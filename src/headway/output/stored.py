"""Output in the store, where every process finds it that finds the job, and which goes with the job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from headway.model.job import CHUNK, Chunk, ChunkSize, Claim
from headway.output.contract import Exist
from headway.store.contract import Store
from headway.store.together import Together

ARTIFACT = "artifact/"
RESULT = "result"
PIECES = 16
"""Of an artifact, stored or read at once: a megabyte."""
TOGETHER = 1024 * 1024
"""Bytes of several jobs that are stored at once."""


class StoredOutputs:
    """Chunks of the store; those of an artifact form a stream of their own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._appended = Together(store.append, lambda parcel: parcel[0].id, weigh=_weight, limit=TOGETHER)

    def location(self, job_id: UUID) -> str | None:
        return None

    async def append(self, claim: Claim, chunks: Sequence[Chunk]) -> bool:
        return await self._appended((claim, chunks))

    async def trim(self, claim: Claim, first: int, last: int) -> None:
        await self._store.trim(claim, first, last)

    async def chunks(
        self, job_id: UUID, attempt: int, *, stream: str | None = None, after_seq: int = -1, limit: int = 100
    ) -> list[Chunk]:
        return await self._store.chunks(job_id, attempt, stream=stream, after_seq=after_seq, limit=limit)

    async def sizes(self, job_id: UUID, attempt: int) -> list[ChunkSize]:
        found = await self._store.chunk_sizes(job_id, attempt)
        return [chunk for chunk in found if chunk.stream != RESULT and not chunk.stream.startswith(ARTIFACT)]

    async def save(self, claim: Claim, name: str, pieces: AsyncIterator[bytes]) -> bool:
        stream, waiting, seq = ARTIFACT + name, b"", 0
        async for piece in pieces:
            waiting += piece
            while len(waiting) >= CHUNK * PIECES:
                if not await self._append(claim, stream, seq, waiting[: CHUNK * PIECES]):
                    return False
                seq, waiting = seq + PIECES, waiting[CHUNK * PIECES :]
        return await self._append(claim, stream, seq, waiting)

    async def _append(self, claim: Claim, stream: str, seq: int, data: bytes) -> bool:
        chunks = [
            Chunk(seq=seq + number, stream=stream, data=data[start : start + CHUNK])
            for number, start in enumerate(range(0, max(len(data), 1), CHUNK))
        ]
        return await self._appended((claim, chunks))

    async def load(self, job_id: UUID, attempt: int, name: str, start: int = 0) -> AsyncIterator[bytes]:
        # All chunks of an artifact but the last are full.
        after, skip = start // CHUNK - 1, start % CHUNK
        stream = ARTIFACT + name
        while chunks := await self._store.chunks(job_id, attempt, stream=stream, after_seq=after, limit=PIECES):
            for chunk in chunks:
                yield chunk.data[skip:]
                skip = 0
            after = chunks[-1].seq

    async def sweep(self, exist: Exist) -> int:
        return 0

    async def prove(self) -> None:
        """Whether the store can be written is asked of the store."""

    async def close(self) -> None:
        """The store is closed by whoever opened it."""


def _weight(parcel: tuple[Claim, Sequence[Chunk]]) -> int:
    return sum(len(chunk.data) for chunk in parcel[1])
