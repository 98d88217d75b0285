"""Files that a script leaves, collected as artifacts: those that match its globs, up to a limit, under safe names, and
without the secrets that the job can see."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator

from headway.executors.script.hosts import Station
from headway.executors.script.link import READ_SIZE, File
from headway.executors.script.run import Run
from headway.executors.script.task import Redactor, Task
from headway.model.job import Artifact, Claim
from headway.output.contract import Outputs
from headway.store.contract import Work as Held

FILE_LIMIT = 64 * 1024 * 1024
TOTAL_LIMIT = 256 * 1024 * 1024
MOST_FILES = 200
NAME_LIMIT = 200
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\\:*?\"<>|]")


class Collector:
    """Keeps what scripts leave."""

    def __init__(self, store: Held, outputs: Outputs) -> None:
        self._store = store
        self._outputs = outputs

    async def __call__(self, claim: Claim, run: Run, station: Station, task: Task) -> int:
        """How many files were kept."""
        patterns = task.work.collect
        if not patterns:
            return 0
        directory = f"{run.directory(station.base)}/work"
        patterns = [pattern if pattern.startswith("/") else f"{directory}/{pattern}" for pattern in patterns]
        found: list[Artifact] = []
        names: set[str] = set()
        left = TOTAL_LIMIT
        async for path, size in station.files.glob(patterns):
            name = unique(safe_name(path.removeprefix(f"{directory}/")), names)
            if len(found) == MOST_FILES:
                note = f"not kept, nor any that come behind it: {MOST_FILES} files were kept"
                found.append(Artifact(name=name, size=size, note=note))
                break
            pieces = _Pieces(min(FILE_LIMIT, left), task.redactor())
            artifact = await self._take(claim, station, path, Artifact(name=name, size=size), pieces)
            found.append(artifact)
            left -= 0 if artifact.note else artifact.size
        if found:
            await self._store.put_artifacts(claim, found)
        return sum(artifact.note is None for artifact in found)

    async def _take(self, claim: Claim, station: Station, path: str, artifact: Artifact, pieces: _Pieces) -> Artifact:
        if artifact.size > pieces.limit:
            note = f"not kept: it has {artifact.size:,} bytes, and {pieces.limit:,} were left for it"
            return Artifact(name=artifact.name, size=artifact.size, note=note)
        try:
            file = await station.files.open(path)
        except OSError as error:
            return Artifact(name=artifact.name, size=artifact.size, note=f"not kept: {error}")
        if file is None:
            return Artifact(name=artifact.name, size=artifact.size, note="not kept: it is gone")
        try:
            await self._outputs.save(claim, artifact.name, pieces.of(file))
        finally:
            await file.close()
        return Artifact(name=artifact.name, size=pieces.size, sha256=pieces.digest.hexdigest())


class _Pieces:
    """A file as it is read, and as it is kept: size and digest are those of what is kept."""

    def __init__(self, limit: int, redactor: Redactor) -> None:
        self.limit = limit
        self._redactor = redactor
        self.size = 0
        self.digest = hashlib.sha256()

    async def of(self, file: File) -> AsyncIterator[bytes]:
        async for data in self._read(file):
            if clean := self._redactor.feed(data):
                yield self._counted(clean)
        if rest := self._redactor.close():
            yield self._counted(rest)

    async def _read(self, file: File) -> AsyncIterator[bytes]:
        offset = 0
        while offset < self.limit:
            data = (await file.read(offset))[: self.limit - offset]
            offset += len(data)
            if data:
                yield data
            if len(data) < READ_SIZE:
                return

    def _counted(self, data: bytes) -> bytes:
        self.size += len(data)
        self.digest.update(data)
        return data


def safe_name(path: str) -> str:
    """A relative path without anything that could lead out of where it is kept, or mislead whoever reads it."""
    readable = path.encode(errors="surrogateescape").decode(errors="replace")
    short = "/".join(_kept(_UNSAFE.sub("_", readable)))[-NAME_LIMIT:]
    # Cut in the middle of a name, it may begin with something else again.
    return "/".join(_kept(short)) or "unnamed"


def _kept(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".", "..")]


def unique(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken."""
    stem, dot, ending = name.rpartition(".")
    number, fresh = 1, name
    while fresh in taken:
        number += 1
        fresh = f"{stem}-{number}{dot}{ending}" if stem else f"{name}-{number}"
    taken.add(fresh)
    return fresh
