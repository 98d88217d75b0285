"""Requests by the thousand, with as little work for each as can be: the machine is the service's, which is measured."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import cast

from headway.bench.child import clock
from headway.bench.children import BenchFailed

_END = b"\r\n\r\n"


async def ask(port: int, requests: Iterable[bytes], took: list[float] | None = None) -> bytes:
    """One after another over one connection; the last answer's content. Raises BenchFailed for a refusal."""
    loop = asyncio.get_running_loop()
    _, line = await loop.create_connection(lambda: _Line(requests, took), "127.0.0.1", port)
    return await line.over


async def rate(port: int, request: bytes, count: int, connections: int) -> float:
    """Requests a second, over so many connections at once."""
    share = max(count // connections, 1)
    began = clock.monotonic()
    await asyncio.gather(*(ask(port, [request] * share) for _ in range(connections)))
    return share * connections / (clock.monotonic() - began)


class _Line(asyncio.Protocol):
    """A connection: the next request goes as soon as the answer to the last has come."""

    def __init__(self, requests: Iterable[bytes], took: list[float] | None) -> None:
        self.over: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._requests = iter(requests)
        self._took = took
        self._began = 0.0
        self._heard = bytearray()
        self._head = 0
        """Where the head of the answer ends; 0: it has not come."""
        self._length = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send(b"")

    def data_received(self, data: bytes) -> None:
        self._heard += data
        try:
            if self._answered():
                self._send(bytes(self._heard[self._head :]))
        except BenchFailed as error:
            self.over.set_exception(error)
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_exception(error or BenchFailed("the service has closed the connection"))

    def _answered(self) -> bool:
        if not self._head:
            self._head = self._heard.find(_END) + len(_END)
            if self._head < len(_END):
                self._head = 0
                return False
            self._length = _length(bytes(self._heard[: self._head]))
        if len(self._heard) < self._head + self._length:
            return False
        if self._took is not None:
            self._took.append(clock.monotonic() - self._began)
        return True

    def _send(self, last: bytes) -> None:
        request = next(self._requests, None)
        if request is None:
            self.over.set_result(last)
            self._transport.close()
            return
        self._heard.clear()
        self._head = 0
        self._began = clock.monotonic()
        self._transport.write(request)


def _length(head: bytes) -> int:
    """How long the answer is. Raises BenchFailed for a refusal."""
    status = int(head[9:12])
    if status >= 400:
        raise BenchFailed(f"the service refused: {head.decode()}")
    if status == 304:
        return 0
    found = head.lower().partition(b"content-length: ")[2]
    return int(found.partition(b"\r\n")[0])
