"""Onto the worker's own machine, where that is switched on. The same shell and the same files, without a connection."""

from __future__ import annotations

import asyncio
import glob
import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from typing import cast

from headway.executors.script.link import READ_SIZE, Channel, File, Files, LinkLost


class LocalLink:
    """Shells as child processes of the worker."""

    host_key: str | None = None

    def __init__(self) -> None:
        self._shells: list[tuple[asyncio.SubprocessTransport, _Shell]] = []

    async def shell(self, on_data: Callable[[bytes], None], on_lost: Callable[[], None]) -> Channel:
        transport, shell = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Shell(on_data, on_lost),
            "/bin/sh",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            cwd=os.environ.get("HOME", "/"),
            env=_environment(),
        )
        self._shells.append((transport, shell))
        return _LocalChannel(transport)

    async def files(self) -> Files:
        return LocalFiles()

    async def close(self) -> None:
        """Runs are no children of these shells' sessions: they go on."""
        shells, self._shells = self._shells, []
        for transport, shell in shells:
            transport.close()
            await shell.exited.wait()


_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")


def _environment() -> dict[str, str]:
    """What a script may know of the worker's own: its settings hold the vault's key, tokens and passwords."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


class _Shell(asyncio.SubprocessProtocol):
    def __init__(self, on_data: Callable[[bytes], None], on_lost: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_lost = on_lost
        self.exited = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._on_data(data)

    def process_exited(self) -> None:
        self._on_lost()
        self.exited.set()


class _LocalChannel:
    def __init__(self, transport: asyncio.SubprocessTransport) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        pipe = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        if pipe is None or pipe.is_closing():
            raise LinkLost("the shell has ended")
        pipe.write(data)

    def close(self) -> None:
        self._transport.close()


class LocalFiles:
    """The worker's own files. A read takes microseconds: no thread is worth it."""

    async def open(self, path: str) -> File | None:
        try:
            return LocalFile(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        except FileNotFoundError:
            return None

    async def glob(self, patterns: Sequence[str]) -> AsyncIterator[tuple[str, int]]:
        for pattern in patterns:
            for path in glob.iglob(pattern, recursive=True):  # noqa: PTH207 - as the far side's own
                try:
                    found = os.stat(path)  # noqa: PTH116
                except OSError:
                    # A link to nowhere is no file.
                    continue
                if stat.S_ISREG(found.st_mode):
                    yield path, found.st_size


class LocalFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def read(self, offset: int) -> bytes:
        return os.pread(self._descriptor, READ_SIZE, offset)

    async def close(self) -> None:
        os.close(self._descriptor)
