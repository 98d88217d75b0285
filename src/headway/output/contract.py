"""What every place for output promises. `headway.contracts.outputs` is the suite that each one passes.

Output is a row of chunks, numbered as they came; each is of one stream and bears the time at which it was stored. A
chunk is never changed, but chunks may be taken out of the middle. Artifacts are whole files, kept in pieces; which
there are is told by the store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol
from uuid import UUID

from headway.model.job import Chunk, ChunkSize, Claim

Exist = Callable[[Sequence[UUID]], Awaitable[set[UUID]]]
"""Which of these jobs there still are."""


class Outputs(Protocol):
    """A place for output and artifacts."""

    def location(self, job_id: UUID) -> str | None:
        """Where people find what this job left; None: in the store, by the API only."""

    async def append(self, claim: Claim, chunks: Sequence[Chunk]) -> bool:
        """Add to the output of the claim's attempt. A chunk with a number that is there takes its place. False when the
        job is no longer held: then nothing was added."""

    async def trim(self, claim: Claim, first: int, last: int) -> None:
        """Take the chunks with these numbers, and those between, out again."""

    async def chunks(
        self, job_id: UUID, attempt: int, *, stream: str | None = None, after_seq: int = -1, limit: int = 100
    ) -> list[Chunk]:
        """The next chunks behind `after_seq`, in order; of one stream, or of all."""

    async def sizes(self, job_id: UUID, attempt: int) -> list[ChunkSize]:
        """Which chunks there are, in order, without reading them."""

    async def save(self, claim: Claim, name: str, pieces: AsyncIterator[bytes]) -> bool:
        """Keep an artifact, in the place of an earlier one of that name. False when the job is no longer held."""

    def load(self, job_id: UUID, attempt: int, name: str, start: int = 0) -> AsyncIterator[bytes]:
        """An artifact from this byte on, piece by piece."""

    async def sweep(self, exist: Exist) -> int:
        """Remove what is left of jobs that are gone, where the store doesn't do that by itself; of how many."""

    async def prove(self) -> None:
        """Write something beside all jobs, read it back and remove it, where that is not the store's business. Raises
        OutputUnavailable."""

    async def close(self) -> None:
        """Let go of connections."""
