"""Output as plain files, for one machine or a volume that all of them share: `HEADWAY_OUTPUT=file:///var/lib/headway`.

    <root>/<job>/<attempt>/output           what was written, as it came
    <root>/<job>/<attempt>/stdout …         by stream
    <root>/<job>/<attempt>/artifacts/…      files that were collected
    <root>/<job>/<attempt>/index            which bytes of which stream came when

Names of artifacts are made safe by whoever collects them, and checked here again: nothing is ever written or read
outside of the root.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid4

from headway.model.errors import ConfigurationError, OutputUnavailable
from headway.model.job import CHUNK, Chunk, ChunkSize, Claim, Report
from headway.output.contract import Exist
from headway.output.logbook import Logbook
from headway.store.contract import Store

T = TypeVar("T")
BATCH = 200


def from_url(url: str, store: Store) -> FileOutputs:
    """file:///path"""
    parts = urlsplit(url)
    path = Path(unquote(parts.path))
    if parts.netloc not in ("", "localhost") or not path.is_absolute():
        raise ConfigurationError(f"{url!r} must look like file:///absolute/path")
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationError(f"output can't be kept at {path}: {error.strerror}") from error
    return FileOutputs(path, store)


class FileOutputs:
    """Files below a directory. The store is asked whether a writer still holds its job."""

    def __init__(self, root: Path, store: Store) -> None:
        self._root = root
        self._store = store

    def location(self, job_id: UUID) -> str | None:
        return str(self._root / str(job_id))

    async def append(self, claim: Claim, chunks: Sequence[Chunk]) -> bool:
        if not await self._held(claim):
            return False
        now = await self._store.now()
        await self._do(lambda: self._logbook(claim.id, claim.attempt).write(chunks, now))
        return True

    async def trim(self, claim: Claim, first: int, last: int) -> None:
        if await self._held(claim):
            await self._do(lambda: self._logbook(claim.id, claim.attempt).cut(first, last))

    async def chunks(
        self, job_id: UUID, attempt: int, *, stream: str | None = None, after_seq: int = -1, limit: int = 100
    ) -> list[Chunk]:
        return await self._do(lambda: self._logbook(job_id, attempt).read(stream, after_seq, limit))

    async def sizes(self, job_id: UUID, attempt: int) -> list[ChunkSize]:
        return await self._do(self._logbook(job_id, attempt).sizes)

    async def save(self, claim: Claim, name: str, pieces: AsyncIterator[bytes]) -> bool:
        if not await self._held(claim):
            return False
        path = self._artifact(claim.id, claim.attempt, name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = path.with_name(f".{path.name}.part")
        with part.open("wb") as file:
            async for piece in pieces:
                file.write(piece)
        part.replace(path)
        return True

    async def load(self, job_id: UUID, attempt: int, name: str, start: int = 0) -> AsyncIterator[bytes]:
        path = self._artifact(job_id, attempt, name)
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(start)
            while piece := file.read(CHUNK):
                yield piece

    async def sweep(self, exist: Exist) -> int:
        gone = 0
        for ids in self._jobs():
            there = await exist(ids)
            for job_id in set(ids) - there:
                shutil.rmtree(self._root / str(job_id), ignore_errors=True)
                gone += 1
        return gone

    async def prove(self) -> None:
        await self._do(self._prove)

    async def close(self) -> None:
        """Files are open only while they are written or read."""

    def _prove(self) -> None:
        path, content = self._root / f".proof-{uuid4()}", uuid4().bytes
        try:
            path.write_bytes(content)
            found = path.read_bytes()
            path.unlink()
        except OSError as error:
            raise OutputUnavailable(f"{self._root} can't be written and read: {error.strerror}") from error
        if found != content:
            raise OutputUnavailable(f"{self._root} gave back something else than was written to it")

    def _jobs(self) -> Iterator[list[UUID]]:
        batch: list[UUID] = []
        for path in self._root.iterdir():
            try:
                batch.append(UUID(path.name))
            except ValueError:
                continue
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    async def _held(self, claim: Claim) -> bool:
        return bool(await self._store.report([Report(job_id=claim.id, token=claim.token, ran=0.0)]))

    async def _do(self, act: Callable[[], T]) -> T:
        """On a thread: a shared volume may be slow."""
        return await asyncio.to_thread(act)

    def _directory(self, job_id: UUID, attempt: int) -> Path:
        return self._root / str(job_id) / str(int(attempt))

    def _logbook(self, job_id: UUID, attempt: int) -> Logbook:
        return Logbook(self._directory(job_id, attempt))

    def _artifact(self, job_id: UUID, attempt: int, name: str) -> Path:
        base = self._directory(job_id, attempt) / "artifacts"
        path = Path(os.path.normpath(base / name))
        if "\0" in name or not path.is_relative_to(base) or path == base:
            raise ValueError(f"{name!r} is no name for an artifact")
        return path
