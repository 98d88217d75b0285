"""A real web server on a free port, in a thread of its own: polite, slow, broken, redirecting, huge, compressed."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import threading
import zlib
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import brotli
from aiohttp import web
from backports import zstd

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw-deflate": lambda data: zlib.compress(data)[2:-4],
    "br": lambda data: brotli.compress(data, quality=1),
    "zstd": zstd.compress,
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Asked:
    """A request as the server got it."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self.method = request.method
        self.path = request.path
        self.query = request.rel_url.raw_query_string
        self.headers = request.headers.copy()
        self.body = body


class Site:
    """`with Site() as site:` serves at `site.url`. What was asked is in `site.asked(path)`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-site")
        self._seen: list[Asked] = []
        self._handlers: dict[str, Handler] = {}
        self._raw: list[asyncio.Server] = []
        self.port = 0
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def asked(self, path: str) -> list[Asked]:
        return [each for each in self._seen if each.path == path]

    def on(self, path: str, handler: Handler) -> str:
        """Answer a path; its URL."""
        self._handlers[path] = handler
        return self.url + path

    def say(self, path: str, *answers: web.Response | tuple[int, dict[str, str], bytes]) -> str:
        """Answer a path with these, one after another, and with the last again and again; its URL."""
        left = [each if isinstance(each, tuple) else (each.status, {}, b"") for each in answers]

        async def handler(request: web.Request) -> web.Response:
            status, headers, body = left.pop(0) if len(left) > 1 else left[0]
            return web.Response(status=status, headers=headers, body=body)

        return self.on(path, handler)

    def raw(self, act: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> str:
        """A server that does as it likes with each connection, once a request's head has come; its URL."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.readuntil(b"\r\n\r\n")
                await act(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        async def start() -> int:
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            self._raw.append(server)
            port: int = server.sockets[0].getsockname()[1]
            return port

        return f"http://127.0.0.1:{self._call(start())}/"

    def _call(self, act: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(act, self._loop).result(30)

    async def _start(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=2048).start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def _stop(self) -> None:
        for server in self._raw:
            server.close()
        await self._runner.cleanup()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self._seen.append(Asked(request, await request.read()))
        handler = self._handlers.get(request.path)
        if handler is None:
            return web.Response(text="here")
        return await handler(request)


def packed(encoding: str, content: bytes) -> tuple[int, dict[str, str], bytes]:
    """An answer with its content compressed."""
    return 200, {"Content-Encoding": encoding.removeprefix("raw-")}, PACKERS[encoding](content)


def reset(writer: asyncio.StreamWriter) -> None:
    """Break the connection off hard."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
