"""What a running job says about itself, on its way to where it is kept: output and progress."""

from __future__ import annotations

import asyncio
from collections import deque
from threading import Lock

import msgspec

from headway.executors.contract import Written
from headway.model.job import CHUNK, Chunk, Progress, encode

CAP = 10 * 1024 * 1024
"""Of longer output the first and the last half of so much are kept."""
LIVE = 512 * 1024
"""Of what comes faster than it can be stored, so much of the latest is stored at a time while the job runs."""
NOTE = "note"
"""The stream of what we say ourselves."""


class Parcel(msgspec.Struct, frozen=True):
    """What is to be stored now, and which chunks to take out before."""

    chunks: list[Chunk]
    trim: tuple[int, int] | None = None

    @property
    def empty(self) -> bool:
        return not self.chunks and self.trim is None


class _Piece:
    """A chunk in the making."""

    __slots__ = ("data", "seq", "stored", "stream")

    def __init__(self, seq: int, stream: str, data: bytes) -> None:
        self.seq = seq
        self.stream = stream
        self.data = bytearray(data)
        self.stored = False

    def takes(self, stream: str, size: int) -> bool:
        return not self.stored and self.stream == stream and len(self.data) + size <= CHUNK

    def chunk(self) -> Chunk:
        self.stored = True
        return Chunk(seq=self.seq, stream=self.stream, data=bytes(self.data))


class Output:
    """Collects an attempt's news; `take` hands over what is to be stored. Fed from the loop or from a thread.

    The first half of the cap is stored as it comes. Of what follows the last half is kept here, and stored as far as
    there is time: readers see the latest while the job runs, and all of it when it has ended.
    """

    def __init__(self, cap: int = CAP) -> None:
        self.progress: Progress | None = None
        self.storing = asyncio.Lock()
        """Held while something taken is on its way."""
        self._half = cap // 2
        self._head: deque[_Piece] = deque()
        self._head_left = self._half
        self._tail: deque[_Piece] = deque()
        self._tail_size = 0
        self._note: int | None = None
        self._dropped = 0
        self._told = 0
        self._trim: tuple[int, int] | None = None
        self._seq = 0
        self._lock = Lock()

    def emit(self, news: Progress | Written) -> None:
        if isinstance(news, Progress):
            self.progress = news
            return
        with self._lock:
            for start in range(0, len(news.data), CHUNK):
                self._add(news.stream, news.data[start : start + CHUNK])

    def take_progress(self) -> str | None:
        progress, self.progress = self.progress, None
        return encode(progress) if progress else None

    @property
    def waiting(self) -> bool:
        """Whether there is anything to store."""
        return bool(self._head) or bool(self._tail and not self._tail[-1].stored)

    def take(self, *, last: bool = False) -> Parcel:
        """What is not yet stored: with `last` all of it, else as much as may be stored at a time."""
        with self._lock:
            chunks = [piece.chunk() for piece in self._head]
            self._head.clear()
            latest = self._latest(len(self._tail) * CHUNK if last else LIVE)
            if self._note is not None and self._dropped > self._told:
                self._told = self._dropped
                words = f"\n[… {self._dropped:,} bytes left out …]\n".encode()
                chunks.append(Chunk(seq=self._note, stream=NOTE, data=words))
            trim, self._trim = self._trim, None
            return Parcel([*chunks, *latest], trim)

    def discard(self) -> None:
        """Leave nothing behind, also of what is stored."""
        with self._lock:
            self._head.clear()
            self._tail.clear()
            self._trim, self._note = (0, max(self._seq - 1, 0)), None

    def _add(self, stream: str, data: bytes) -> None:
        if len(data) <= self._head_left:
            self._head_left -= len(data)
            self._join(self._head, stream, data)
            return
        if self._note is None:
            # What doesn't fit ends the head for good, and this place is kept for the words about what is missing.
            self._head_left = 0
            self._note = self._next()
        self._join(self._tail, stream, data)
        self._tail_size += len(data)
        while self._tail_size > self._half:
            self._drop(self._tail.popleft())

    def _join(self, pieces: deque[_Piece], stream: str, data: bytes) -> None:
        if pieces and pieces[-1].takes(stream, len(data)):
            pieces[-1].data += data
        else:
            pieces.append(_Piece(self._next(), stream, data))

    def _drop(self, piece: _Piece) -> None:
        self._tail_size -= len(piece.data)
        self._dropped += len(piece.data)
        if piece.stored:
            self._trim = (self._trim[0] if self._trim else piece.seq, piece.seq)

    def _latest(self, most: int) -> list[Chunk]:
        found: list[_Piece] = []
        for piece in reversed(self._tail):
            most -= len(piece.data)
            if most < 0:
                break
            if not piece.stored:
                found.append(piece)
        return [piece.chunk() for piece in reversed(found)]

    def _next(self) -> int:
        self._seq += 1
        return self._seq - 1
