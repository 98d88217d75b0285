"""What a worker and its child processes say to each other: length-prefixed MessagePack over a socket."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from headway.executors.contract import (
    Cancelled,
    Completed,
    Ending,
    Failed,
    Lost,
    NoCode,
    Snoozed,
    TimedOut,
    Unknown,
)
from headway.model.job import Claim, Progress

_ENDINGS: dict[str, type[Any]] = {
    ending.__name__: ending for ending in (Completed, Failed, TimedOut, Snoozed, Cancelled, Lost, Unknown, NoCode)
}
LENGTH = struct.Struct("!I")


class Hello(msgspec.Struct, frozen=True, tag=True):
    """Parent to child, first: where to import from. The child answers `Ready` or `Broken`."""

    path: list[str]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The app is imported; send work."""


class Broken(msgspec.Struct, frozen=True, tag=True):
    """The app can't be imported."""

    reason: str


class Start(msgspec.Struct, frozen=True, tag=True):
    """Parent to child: run this job."""

    claim: Claim
    function: str
    memory_limit: int | None
    traceparent: str | None = None
    """The span of this attempt, if anybody traces."""


class Advanced(msgspec.Struct, frozen=True, tag=True):
    """The job reports progress."""

    progress: Progress


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The job has ended; its output is written out."""

    kind: str
    body: msgspec.Raw

    @classmethod
    def of(cls, ending: Ending) -> Ended:
        return cls(type(ending).__name__, msgspec.Raw(msgspec.msgpack.encode(ending)))

    def ending(self) -> Ending:
        ending: Ending = msgspec.msgpack.decode(self.body, type=_ENDINGS[self.kind])
        return ending


Order = Hello | Start
News = Ready | Broken | Advanced | Ended
_encode = msgspec.msgpack.Encoder().encode
read_order = msgspec.msgpack.Decoder(Order).decode
read_news = msgspec.msgpack.Decoder(News).decode


def framed(message: Order | News) -> bytes:
    """A message as it goes over the socket."""
    body = _encode(message)
    return LENGTH.pack(len(body)) + body
