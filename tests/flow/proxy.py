"""A TCP proxy before PostgreSQL that loses connections where it hurts, and counts what passes."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import urlsplit

_STARTUP = 196608


class Proxy:
    """Runs on a thread of its own, so that nothing the test does holds it up.

    `cut_after`: each new connection dies after so many bytes. `lose_reply(word)`: the next request that contains the
    word reaches the server, its reply reaches nobody. `delay_request(word, seconds)`: the client loses its connection
    when it sends the next such request, which reaches the server all the same, but late. `slow`: every request with one
    of its words waits for so many seconds. A request is a statement as it is carried out; of a prepared one, the word
    may be anywhere in its text.
    """

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self.queries = 0
        """Statements that passed."""
        self.connections = 0
        self.cuts = 0
        self.late = 0
        """Delayed requests that have reached the server."""
        self.cut_after: Callable[[], int] | None = None
        self.slow: dict[str, float] = {}
        self.held_up = 0
        """Requests that `slow` has held up."""
        self._lose: list[bytes] = []
        self._delay: list[tuple[bytes, float]] = []
        self._links: set[_Link] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    @property
    def url(self) -> str:
        return self._parts._replace(netloc=f"{self._parts.username}@127.0.0.1:{self._port}").geturl()

    def lose_reply(self, word: str) -> None:
        self._lose.append(word.encode())

    def delay_request(self, word: str, seconds: float) -> None:
        self._delay.append((word.encode(), seconds))

    @property
    def armed(self) -> bool:
        """Whether something waits to go wrong."""
        return bool(self._lose or self._delay)

    def cut(self) -> None:
        """Cut all connections now."""
        self._call(self._cut_all())

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, act: Any) -> None:
        asyncio.run_coroutine_threadsafe(act, self._loop).result(10)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port: int = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        await self._cut_all()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _cut_all(self) -> None:
        for link in list(self._links):
            link.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            server = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(self, (reader, writer), server)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)

    def patience(self, request: bytes) -> float:
        """For how long this request is to wait."""
        seconds = max((seconds for word, seconds in self.slow.items() if word.encode() in request), default=0.0)
        self.held_up += seconds > 0
        return seconds

    def hurt(self, request: bytes) -> tuple[str, float] | None:
        """What is to go wrong with this request, once."""
        for word in self._lose:
            if word in request:
                self._lose.remove(word)
                return "lose", 0.0
        for word, seconds in self._delay:
            if word in request:
                self._delay.remove((word, seconds))
                return "delay", seconds
        return None


class _Link:
    """One connection through the proxy."""

    def __init__(
        self,
        proxy: Proxy,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._left = proxy.cut_after() if proxy.cut_after else None
        self._deaf = False
        self._prepared: dict[bytes, bytes] = {}

    async def run(self) -> None:
        up, down = asyncio.ensure_future(self._up()), asyncio.ensure_future(self._down())
        try:
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._client[1].transport.abort()
            if not self._deaf:
                self._server[1].transport.abort()
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    def cut(self) -> None:
        self._proxy.cuts += 1
        for _, writer in (self._client, self._server):
            writer.transport.abort()

    async def _up(self) -> None:
        """From the client, message by message."""
        reader, writer = self._client[0], self._server[1]
        started = False
        while True:
            head = await reader.readexactly(5 if started else 4)
            (length,) = struct.unpack("!I", head[-4:])
            message = head + await reader.readexactly(length - 4)
            if started:
                self._proxy.queries += message[:1] in (b"Q", b"E")
            else:
                started = struct.unpack("!I", message[4:8])[0] == _STARTUP
            if started and (hurt := self._proxy.hurt(self._request(message))):
                await self._hurt(hurt, message, reader)
                return
            if started and (seconds := self._proxy.patience(self._request(message))):
                await asyncio.sleep(seconds)
            if self._spend(len(message)):
                return
            writer.write(message)

    def _request(self, message: bytes) -> bytes:
        """The text of the statement that this message has carried out; empty for all other messages."""
        match message[:1]:
            case b"Q":
                return message[5:]
            case b"P":
                name, text, _ = message[5:].split(b"\0", 2)
                self._prepared[name] = text
            case b"B":
                _, name, _ = message[5:].split(b"\0", 2)
                return self._prepared.get(name, b"")
            case _:
                pass
        return b""

    async def _down(self) -> None:
        reader, writer = self._server[0], self._client[1]
        while data := await reader.read(65536):
            if self._deaf:
                continue
            if self._spend(len(data)):
                return
            writer.write(data)

    async def _hurt(self, hurt: tuple[str, float], message: bytes, reader: asyncio.StreamReader) -> None:
        """The client loses its connection; what it has sent by now reaches the server, at once or late."""
        how, seconds = hurt
        self._deaf = True
        self._proxy.cuts += 1
        with_rest = message + (await reader.read(65536) if message[:1] != b"Q" else b"")
        if how == "lose":
            self._server[1].write(with_rest)
            # Until the server has done it: its reply is read, and goes nowhere.
            await asyncio.sleep(0.2)
            self._server[1].close()
        else:
            self._client[1].transport.abort()
            asyncio.get_running_loop().call_later(seconds, self._send_late, with_rest)

    def _send_late(self, message: bytes) -> None:
        self._server[1].write(message)
        self._server[1].close()
        self._proxy.late += 1

    def _spend(self, size: int) -> bool:
        if self._left is None:
            return False
        self._left -= size
        if self._left < 0:
            self.cut()
        return self._left < 0
