"""A TCP proxy before a server that cuts connections, or slows them down."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self


class Wire:
    """Runs on the test's own loop. `cut_after`: each new connection dies after so many bytes in all; `delay`: every
    piece is late by so many seconds; `held`: nothing passes while it is not set."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.port = 0
        self.cut_after: int | None = None
        self.delay = 0.0
        self.held = asyncio.Event()
        self.held.set()
        self.connections = 0
        self.cuts = 0
        self.passed = 0
        """Bytes of the connection that was made last."""
        self._links: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._links, return_exceptions=True)

    def cut(self) -> None:
        """Cut all connections now."""
        for link in self._links:
            link.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.passed = 0
        link = asyncio.ensure_future(self._serve(reader, writer))
        self._links.add(link)

        # Also for a link that is cut before it has begun to serve.
        def ended(_: object) -> None:
            writer.transport.abort()
            self._links.discard(link)

        link.add_done_callback(ended)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        pumps = [
            asyncio.ensure_future(self._pump(reader, far_writer)),
            asyncio.ensure_future(self._pump(far_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.cuts += 1
        finally:
            for end in (writer, far_writer):
                end.transport.abort()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(4096):
                await self.held.wait()
                if self.delay:
                    await asyncio.sleep(self.delay)
                self.passed += len(data)
                if self.cut_after is not None and self.passed > self.cut_after:
                    self.cuts += 1
                    return
                sink.write(data)
                await sink.drain()
