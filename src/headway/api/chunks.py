"""Output and large results as the store keeps them: in chunks, read a few at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from headway.api.call import Call
from headway.model.job import CHUNK, Artifact, Chunk, ChunkSize
from headway.output.contract import Outputs

AT_ONCE = 16
RESULT = "result"
ARTIFACT = "artifact/"


class Chunks:
    """Some chunks of one attempt, as pieces of content."""

    def __init__(self, call: Call, job_id: UUID, attempt: int, chunks: list[ChunkSize], stream: str | None) -> None:
        self._call = call
        self._job_id = job_id
        self._attempt = attempt
        self._chunks = chunks
        self._stream = stream
        self.sizes = tuple(chunk.size for chunk in chunks)

    async def read(self, first: int, last: int) -> AsyncIterator[bytes]:
        wanted = {(chunk.seq, chunk.stream) for chunk in self._chunks[first : last + 1]}
        after, end = self._chunks[first].seq - 1, self._chunks[last].seq
        while after < end:
            found = await self._next(after)
            if not found:
                return
            for chunk in found:
                if (chunk.seq, chunk.stream) in wanted:
                    yield chunk.data
            after = found[-1].seq

    async def _next(self, after: int) -> list[Chunk]:
        job_id, attempt, stream = self._job_id, self._attempt, self._stream
        if stream == RESULT:
            return await self._call.store(lambda store: store.chunks(job_id, attempt, stream=stream, after_seq=after))
        return await self._call.outputs(lambda outputs: outputs.chunks(job_id, attempt, stream=stream, after_seq=after))


async def chunks_of(call: Call, job_id: UUID, attempt: int, stream: str | None) -> Chunks:
    """The output of an attempt: of one stream, or all that people are to read."""
    if stream == RESULT:
        found = await call.store(lambda store: store.chunk_sizes(job_id, attempt))
    else:
        found = await call.outputs(lambda outputs: outputs.sizes(job_id, attempt))
    wanted = [chunk for chunk in found if stream is None or chunk.stream == stream]
    return Chunks(call, job_id, attempt, wanted, stream)


class Saved:
    """A file that a job has left, as pieces of content."""

    def __init__(self, call: Call, job_id: UUID, artifact: Artifact) -> None:
        self._call = call
        self._job_id = job_id
        self._artifact = artifact
        whole, rest = divmod(artifact.size, CHUNK)
        self.sizes = (*(CHUNK for _ in range(whole)), *((rest,) if rest else ()))

    async def read(self, first: int, last: int) -> AsyncIterator[bytes]:
        left = sum(self.sizes[first : last + 1])
        start = first * CHUNK
        while left > 0:
            pieces = await self._call.outputs(lambda outputs, start=start: self._some(outputs, start))  # type: ignore[misc]
            for piece in pieces:
                yield piece[:left]
                left -= len(piece)
                start += len(piece)
            if not pieces:
                return

    async def _some(self, outputs: Outputs, start: int) -> list[bytes]:
        found: list[bytes] = []
        async for piece in outputs.load(self._job_id, self._artifact.attempt, self._artifact.name, start):
            found.append(piece)
            if len(found) == AT_ONCE:
                break
        return found


def is_output(stream: str) -> bool:
    """Whether a stream is what a job wrote, and neither its result nor a file of its."""
    return stream != RESULT and not stream.startswith(ARTIFACT)
