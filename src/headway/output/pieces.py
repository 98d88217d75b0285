"""Chunks as objects of a bucket. An object's name and size tell which chunks are in it: to know what there is, it takes
a list of names, and nothing has to be read.

    000000000007-stdout.65536,stdout.65536,stderr        chunks 7, 8 and 9; the last one takes up the rest

What is added at once becomes one object, up to `MOST` chunks; a single chunk that is said again takes its own place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from struct import Struct
from urllib.parse import quote, unquote

import msgspec

from headway.model.job import Chunk, ChunkSize

MOST = 8
"""Names have to be short."""
_AT = Struct(">q")
"""What an object begins with: when it was stored, in microseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Piece(msgspec.Struct, frozen=True):
    """An object, by what its name and its size tell."""

    first: int
    streams: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, chunks: Sequence[Chunk]) -> Piece:
        return cls(chunks[0].seq, tuple(each.stream for each in chunks), tuple(len(each.data) for each in chunks))

    @classmethod
    def named(cls, name: str, size: int) -> Piece:
        number, _, told = name.partition("-")
        *parts, last = told.split(",")
        said = [part.rpartition(".") for part in parts]
        sizes = [int(each) for _, _, each in said]
        streams = [unquote(each) for each in (*(stream for stream, _, _ in said), last)]
        return cls(int(number), tuple(streams), (*sizes, size - _AT.size - sum(sizes)))

    @property
    def name(self) -> str:
        said = [f"{_quoted(stream)}.{size}" for stream, size in zip(self.streams[:-1], self.sizes[:-1], strict=True)]
        return f"{begin(self.first)}-{','.join((*said, _quoted(self.streams[-1])))}"

    @property
    def seqs(self) -> range:
        return range(self.first, self.first + len(self.streams))

    def sizes_of(self) -> list[ChunkSize]:
        told = zip(self.seqs, self.streams, self.sizes, strict=True)
        return [ChunkSize(seq=seq, stream=stream, size=size) for seq, stream, size in told]

    def chunks(self, content: bytes) -> list[Chunk]:
        at = _EPOCH + timedelta(microseconds=_AT.unpack_from(content)[0])
        place, found = _AT.size, []
        for each in self.sizes_of():
            data = content[place : place + each.size]
            found.append(Chunk(seq=each.seq, stream=each.stream, data=data, at=at))
            place += each.size
        return found


def begin(number: int) -> str:
    """How names of objects begin whose first chunk this is. Of even length, so that S3's order is ours."""
    return f"{max(number, 0):012d}"


def content(chunks: Sequence[Chunk], at: datetime) -> bytes:
    """What to put into the object."""
    return _AT.pack((at - _EPOCH) // timedelta(microseconds=1)) + b"".join(each.data for each in chunks)


def runs(chunks: Iterable[Chunk]) -> list[list[Chunk]]:
    """What becomes one object each: split where numbers are left out, or a name would get too long."""
    found: list[list[Chunk]] = []
    for chunk in chunks:
        if found and chunk.seq == found[-1][-1].seq + 1 and len(found[-1]) < MOST:
            found[-1].append(chunk)
        else:
            found.append([chunk])
    return found


def current(pieces: Iterable[Piece]) -> dict[int, Piece]:
    """Where each chunk is, in order. One that begins later has the last word about a chunk, then a shorter one: what is
    said again is said alone."""
    found: dict[int, Piece] = {}
    for piece in sorted(pieces, key=lambda piece: (piece.first, -len(piece.streams))):
        found |= dict.fromkeys(piece.seqs, piece)
    return dict(sorted(found.items()))


def _quoted(stream: str) -> str:
    return quote(stream, safe="")
