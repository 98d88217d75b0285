"""Messages as they go over the wire, made from ready-made frames.

The driver takes 40 to 100 µs to publish a message, on the loop that runs the jobs; these take about two. Everything of
a message but its size and its body is the same for all that go the same way, so it is made once.
"""

from __future__ import annotations

import struct

from aiormq import spec
from aiormq.abc import AbstractChannel, ChannelFrame
from pamqp import frame
from pamqp.header import ContentHeader

_SIZE = struct.Struct(">Q")
_BODY = struct.Struct(">BHI")
_BODY_FRAME = 3
_END = b"\xce"
# A header frame: type, channel, length (7 bytes), class, weight (4), then the size of the body (8), then properties.
_BEFORE_SIZE, _AFTER_SIZE = 11, 19
_FRAME = 8
"""Bytes around each piece of a body."""
MOST_WAYS = 1_000


class Envelope:
    """One way for messages to go, on one channel. They are JSON, and not kept over a restart of the broker."""

    def __init__(self, channel: int, largest: int, exchange: str, key: str) -> None:
        properties = spec.Basic.Properties(content_type="application/json", delivery_mode=1)
        method = frame.marshal(spec.Basic.Publish(exchange=exchange, routing_key=key), channel)
        header = frame.marshal(ContentHeader(body_size=0, properties=properties), channel)
        self._head = method + header[:_BEFORE_SIZE]
        self._tail = header[_AFTER_SIZE:]
        self._channel = channel
        self._largest = largest

    def around(self, body: bytes) -> bytes:
        parts = [self._head, _SIZE.pack(len(body)), self._tail]
        for start in range(0, len(body), self._largest):
            piece = body[start : start + self._largest]
            parts += [_BODY.pack(_BODY_FRAME, self._channel, len(piece)), piece, _END]
        return b"".join(parts)


class Wire:
    """Writes to one channel, beside the driver."""

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel = channel
        self._largest = channel.connection.connection_tune.frame_max - _FRAME
        self._envelopes: dict[tuple[str, str], Envelope] = {}

    def message(self, exchange: str, key: str, body: bytes) -> bytes:
        way = exchange, key
        if way not in self._envelopes:
            if len(self._envelopes) >= MOST_WAYS:
                self._envelopes.clear()
            self._envelopes[way] = Envelope(self._channel.number, self._largest, exchange, key)
        return self._envelopes[way].around(body)

    async def write(self, messages: bytes) -> None:
        """Returns when they are on their way: a broker that takes no more makes us wait."""
        drained = self._channel.create_future()
        frame = ChannelFrame(payload=messages, should_close=False, drain_future=drained)
        await self._channel.connection.write_queue.put(frame)
        await drained
