"""What a script has written, as its host keeps it: much of it may have been let go (`warden` in `far.sh`)."""

from __future__ import annotations

from collections.abc import AsyncIterator

from headway.executors.script.link import READ_SIZE, File, Files

MUCH = 8 * 1024 * 1024
"""Bytes behind which it is worth to ask whether something was let go."""


class Spool:
    """One stream's file, and what lies beside it once it was cut."""

    def __init__(self, files: Files, path: str, file: File) -> None:
        self._files = files
        self._path = path
        self.file = file

    async def cut(self) -> int:
        """Up to which byte it was let go; 0 if it never was."""
        told = b"".join([piece async for piece in self._beside("cut")])
        return max(map(int, told.split()), default=0)

    async def head(self, offset: int) -> AsyncIterator[bytes]:
        """What is kept of its beginning, from there on."""
        async for piece in self._beside("head", offset):
            yield piece

    async def _beside(self, name: str, offset: int = 0) -> AsyncIterator[bytes]:
        file = await self._files.open(f"{self._path}.{name}")
        if file is None:
            return
        try:
            while data := await file.read(offset):
                offset += len(data)
                yield data
                if len(data) < READ_SIZE:
                    return
        finally:
            await file.close()
