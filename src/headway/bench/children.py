"""The processes that a measurement consists of, seen from the one that conducts it."""

from __future__ import annotations

import asyncio
import mmap
import struct
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from headway.clock import SystemClock, deadline
from headway.model.errors import HeadwayError

PATIENCE = 600.0
"""Seconds after which a child that says nothing is given up."""
LONGEST_LINE = 16 * 1024 * 1024


class BenchFailed(HeadwayError):
    """A measurement could not be made, or did not leave the store as it should."""


class Child:
    """A process playing a role (`child.py`). As a context it is gone at the end, whatever happens."""

    def __init__(self, role: str, **spec: Any) -> None:
        self._role = role
        self._spec = spec
        self._process: asyncio.subprocess.Process | None = None
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "headway.bench.child", self._role, msgspec.json.encode(self._spec).decode()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._complaints,
            limit=LONGEST_LINE,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        if self._process.returncode is None and error is not None:
            self._process.kill()
        await self._process.wait()
        self._complaints.close()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def ready(self) -> None:
        """Until it says so."""
        word = await self._hear()
        if word != "ready":
            raise BenchFailed(f"{self._role} said {word!r} instead of being ready")

    async def tell(self, word: str = "go") -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())
        await self._process.stdin.drain()

    def check(self) -> None:
        """Raises when it has ended before its time."""
        assert self._process is not None
        if self._process.returncode is not None:
            raise self._failure()

    async def result(self) -> Any:
        return msgspec.json.decode(await self._hear())

    async def _hear(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        async with deadline(SystemClock(), PATIENCE):
            line = await self._process.stdout.readline()
        if not line:
            await self._process.wait()
            raise self._failure()
        return line.decode().strip()

    def _failure(self) -> BenchFailed:
        self._complaints.seek(0)
        return BenchFailed(f"{self._role} failed: {self._complaints.read().decode(errors='replace')[-2000:]}")


async def play(role: str, **spec: Any) -> Any:
    """Let one child play its role from beginning to end."""
    async with Child(role, **spec) as child:
        return await child.result()


class Counts:
    """How many jobs each of several processes has ended so far: a few bytes that they share."""

    def __init__(self, path: Path, seats: int) -> None:
        path.write_bytes(bytes(8 * seats))
        self._seats = [Seat(path, number) for number in range(seats)]

    @property
    def specs(self) -> list[dict[str, Any]]:
        """What each process is told, to find its seat."""
        return [{"path": str(seat.path), "number": seat.number} for seat in self._seats]

    @property
    def total(self) -> int:
        return sum(seat.get() for seat in self._seats)


class Seat:
    """One process's place in the counts."""

    def __init__(self, path: Path, number: int) -> None:
        self.path = path
        self.number = number
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 0)

    @classmethod
    def of(cls, spec: dict[str, Any]) -> Seat:
        return cls(Path(spec["path"]), spec["number"])

    def put(self, count: int) -> None:
        struct.pack_into("q", self._shared, 8 * self.number, count)

    def get(self) -> int:
        count: int = struct.unpack_from("q", self._shared, 8 * self.number)[0]
        return count
