"""A TCP proxy that can cut what passes through it, refuse what comes next, or swallow everything."""

from __future__ import annotations

import asyncio
from typing import Self
from urllib.parse import urlsplit

from headway.bench.server import free_port


class Cutter:
    """In front of the server of `url`; runs on the test's own loop."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._port = free_port()
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self.silent = False
        """Connections are taken and kept, and nothing passes."""
        self.mute = False
        """What clients send reaches nobody; they are told everything."""

    @property
    def url(self) -> str:
        user = self._parts.netloc.rpartition("@")[0]
        return self._parts._replace(netloc=f"{user}@127.0.0.1:{self._port}").geturl()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def close(self) -> None:
        """The server is away."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.cut()

    async def cut(self) -> None:
        """All connections that there are now."""
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links.add(link)
        try:
            far_reader, far_writer = await asyncio.open_connection(self._parts.hostname, self._parts.port)
            ways = [
                asyncio.ensure_future(self._pass(reader, far_writer, client=True)),
                asyncio.ensure_future(self._pass(far_reader, writer, client=False)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                far_writer.transport.abort()
                for way in ways:
                    way.cancel()
        except (asyncio.CancelledError, OSError):
            pass
        finally:
            self._links.discard(link)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, client: bool) -> None:
        try:
            while data := await reader.read(65536):
                if not self.silent and not (client and self.mute):
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        while self.silent:
            # Who is cut off does not see the other end go either.
            await asyncio.sleep(0.01)
