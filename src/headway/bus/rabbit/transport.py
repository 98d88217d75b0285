"""Reading what a broker sends, whatever foreign clients have put into it.

The driver takes a message whose properties it can't decode (text that is no UTF-8, a time beyond all calendars) for a
fault of the connection and drops it. The broker then delivers the same message on the next one, and so on: one such
message would end every consumer of its queue. Here it is mended on its way in, and marked.
"""

from __future__ import annotations

import asyncio
import struct
from functools import lru_cache
from typing import Any

from aio_pika import Connection
from aiormq import spec
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from pamqp import frame
from pamqp.header import ContentHeader
from yarl import URL

UNREADABLE = "headway.unreadable"
"""The type of a message that lost its properties on the way in."""

_HEAD = struct.Struct(">BHI")
_SIZE = struct.Struct(">Q")
_METHOD, _HEADER = 1, 2
_DELIVER = struct.pack(">HH", 60, 60)
_END = b"\xce"


class TolerantConnection(Connection):
    """A connection that reads through `TolerantReader`."""

    def __init__(self, url: URL, **arguments: Any) -> None:
        super().__init__(url, **arguments)
        self.kwargs["transport_factory"] = _Transport()


class _Transport(TransportFactory):
    async def create(self, url: URL, **arguments: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        factory = TLSTransportFactory() if url.scheme == "amqps" else TCPTransportFactory()
        reader, writer = await factory.create(url, **arguments)
        return TolerantReader(reader), writer


class TolerantReader(asyncio.StreamReader):
    """Hands on the frames of another reader."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__()
        self._reader = reader
        self._frame = b""

    async def readexactly(self, n: int) -> bytes:
        if not self._frame:
            self._frame = await self._next()
        part, self._frame = self._frame[:n], self._frame[n:]
        return part

    async def read(self, n: int = -1) -> bytes:
        return self._frame + await self._reader.read(n)

    def at_eof(self) -> bool:
        return not self._frame and self._reader.at_eof()

    async def _next(self) -> bytes:
        head = await self._reader.readexactly(_HEAD.size)
        if head.startswith(b"AMQP"):
            # A broker of another version says so, and that is all it says.
            return head
        return mended(head + await self._reader.readexactly(_HEAD.unpack(head)[2] + 1))


def mended(data: bytes) -> bytes:
    """The frame itself, or one in its place that can be read."""
    kind, channel, _ = _HEAD.unpack_from(data)
    payload = data[_HEAD.size : -1]
    if kind == _HEADER and not _readable(payload[12:]):
        marked = spec.Basic.Properties(message_type=UNREADABLE)
        return frame.marshal(ContentHeader(body_size=_SIZE.unpack_from(payload, 4)[0], properties=marked), channel)
    if kind == _METHOD and payload.startswith(_DELIVER) and (known := _without_key(payload)):
        return _HEAD.pack(kind, channel, len(known)) + known + _END
    return data


@lru_cache(maxsize=1024)
def _readable(properties: bytes) -> bool:
    try:
        ContentHeader().unmarshal(bytes(12) + properties)
    except Exception:
        # Whatever the driver's reader trips over: it would cost the connection, again at each delivery.
        return False
    return True


def _without_key(payload: bytes) -> bytes | None:
    """A delivery without its routing key, where that is not text."""
    # Class and method (4 bytes), consumer's tag, delivery's tag (8), redelivered (1), exchange, routing key.
    exchange = 4 + 1 + payload[4] + 9
    key = exchange + 1 + payload[exchange]
    try:
        payload[key + 1 :].decode()
    except UnicodeDecodeError:
        return payload[:key] + b"\0"
    return None
