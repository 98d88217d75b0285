"""Compressed content, unpacked piece by piece: what a small response unpacks to is never held as a whole beyond its
limit."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from typing import Any, Protocol

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from headway.outgoing.errors import BrokenResponse

ACCEPTED = "gzip, deflate, br, zstd"
PIECE = 64 * 1024
MOST_LAYERS = 3


class Decoder(Protocol):
    """Unpacks what it is fed, at most a piece at a time."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...
    def finished(self) -> bool: ...


class Inflate:
    """gzip, which may consist of several members, and deflate, which some servers send without its header."""

    def __init__(self, *, raw: bool = False) -> None:
        self._window = 15 if raw else 31
        self._unpacker = zlib.decompressobj(self._window)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        data = self._beyond_padding(data)
        more = bool(data)
        while more:
            if self._unpacker.eof:
                self._unpacker = zlib.decompressobj(self._window)
            piece = self._unpack(data)
            yield piece
            data = self._beyond_padding(self._unpacker.unconsumed_tail or self._unpacker.unused_data)
            # A full piece may be all that the limit let through, though every byte of the input has been taken.
            more = bool(data) or (len(piece) == PIECE and not self._unpacker.eof)

    def _beyond_padding(self, data: bytes) -> bytes:
        """Some fill the last block with zeros."""
        return data.lstrip(b"\0") if self._unpacker.eof else data

    def _unpack(self, data: bytes) -> bytes:
        try:
            piece = self._unpacker.decompress(data, PIECE)
        except zlib.error:
            if self._begun or self._window != 15:
                raise
            self._window = -15
            self._unpacker = zlib.decompressobj(self._window)
            piece = self._unpacker.decompress(data, PIECE)
        self._begun = True
        return piece

    def finished(self) -> bool:
        return self._unpacker.eof or not self._begun


class Brotli:
    def __init__(self) -> None:
        self._unpacker: Any = brotli.Decompressor()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._begun = True
        piece = self._unpacker.process(data, output_buffer_limit=PIECE)
        while piece:
            yield piece
            piece = b"" if self._unpacker.is_finished() else self._unpacker.process(b"", output_buffer_limit=PIECE)

    def finished(self) -> bool:
        return bool(self._unpacker.is_finished()) or not self._begun


class Zstandard:
    def __init__(self) -> None:
        self._unpacker: Any = zstd.ZstdDecompressor()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._begun = True
        while data or not (self._unpacker.needs_input or self._unpacker.eof):
            if self._unpacker.eof:
                self._unpacker = zstd.ZstdDecompressor()
            yield self._unpacker.decompress(data, max_length=PIECE)
            data = self._unpacker.unused_data if self._unpacker.eof else b""

    def finished(self) -> bool:
        return bool(self._unpacker.eof) or not self._begun


class Chain:
    """The decoders for a `Content-Encoding`; `unknown` names one that can't be undone, and then nothing is."""

    def __init__(self, encoding: str) -> None:
        names = [name.strip().lower() for name in encoding.split(",")]
        layers = [name for name in names if name not in {"", "identity"}]
        unknown = [name for name in layers if name not in _DECODERS]
        self.unknown = unknown[0] if unknown else encoding if len(layers) > MOST_LAYERS else None
        # What was packed last is unpacked first.
        self._decoders = [] if self.unknown else [_DECODERS[name]() for name in reversed(layers)]

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What these bytes unpack to. Raises BrokenResponse."""
        try:
            yield from _through(self._decoders, data)
        except (zlib.error, brotli.error, zstd.ZstdError) as error:
            raise BrokenResponse(f"the response can't be unpacked: {error}") from error

    def finish(self) -> None:
        """The content is over. Raises BrokenResponse if something is missing."""
        if not all(decoder.finished() for decoder in self._decoders):
            raise BrokenResponse("the response ends in the middle of its compressed content")


def _through(decoders: list[Decoder], data: bytes) -> Iterator[bytes]:
    if not decoders:
        yield data
        return
    for piece in decoders[0].feed(data):
        if piece:
            yield from _through(decoders[1:], piece)


_DECODERS: dict[str, Any] = {
    "gzip": Inflate,
    "x-gzip": Inflate,
    "deflate": lambda: Inflate(raw=True),
    "br": Brotli,
    "zstd": Zstandard,
}
