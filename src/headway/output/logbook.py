"""One attempt's output as plain files: `output` as it came, `stdout` and others by stream, and an index of both.

The index is the truth. It grows only by entries whose bytes are in `output` already; what is taken out of the middle
is first struck out there, and copied away once it is more than half of what stays. The copy counts from the moment at
which its index takes the place of the other, so whoever dies in the middle of anything leaves it as it was, or as it
should be.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from struct import Struct
from typing import BinaryIO, NamedTuple

from headway.model.errors import OutputUnavailable
from headway.model.job import Chunk, ChunkSize

_ENTRY = Struct("<q16sqqi")
_COPY = -1
"""The number of an index's first entry if it belongs to a copy; its place is then which one."""
_STRUCK = -1
"""The size of a chunk that was taken out."""
WORTH = 1024 * 1024
"""Bytes that are worth a copy."""
_TRIES = 100


class _Entry(NamedTuple):
    seq: int
    stream: bytes
    place: int
    at: int
    """In microseconds."""
    size: int

    @property
    def name(self) -> str:
        return self.stream.rstrip(b"\0").decode()


class Logbook:
    """Written by one at a time, read by anybody meanwhile."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._index = directory / "index"
        self._output = directory / "output"

    def write(self, chunks: Sequence[Chunk], now: datetime) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._settle()
        at = int(now.timestamp() * 1_000_000)
        entries = []
        with self._output.open("ab") as output:
            for chunk in chunks:
                entries.append(_Entry(chunk.seq, chunk.stream.encode()[:16], output.tell(), at, len(chunk.data)))
                output.write(chunk.data)
        self._enter(entries)
        for chunk in chunks:
            with self._single(chunk.stream).open("ab") as single:
                single.write(chunk.data)

    def cut(self, first: int, last: int) -> None:
        """Take out the chunks with these numbers, and those between."""
        with self._opened() as (_, entries, _output):
            gone = [entry for entry in entries.values() if first <= entry.seq <= last]
        if not gone:
            return
        if len(gone) == len(entries):
            self._clear({entry.name for entry in gone})
            return
        self._settle()
        self._enter(entry._replace(size=_STRUCK) for entry in gone)
        left = sum(entry.size for entry in entries.values()) - sum(entry.size for entry in gone)
        if self._output.stat().st_size - left > max(left // 2, WORTH):
            self._copy()

    def sizes(self) -> list[ChunkSize]:
        with self._opened() as (_, entries, _output):
            return [ChunkSize(seq=entry.seq, stream=entry.name, size=entry.size) for entry in entries.values()]

    def read(self, stream: str | None, after_seq: int, limit: int) -> list[Chunk]:
        with self._opened() as (_, entries, output):
            wanted = [
                entry
                for entry in entries.values()
                if entry.seq > after_seq and (stream is None or entry.name == stream)
            ]
            return [_chunk(entry, output) for entry in wanted[:limit]]

    @contextmanager
    def _opened(self) -> Iterator[tuple[int, dict[int, _Entry], BinaryIO]]:
        """Which copy it is, its entries in order, and the bytes that belong to them."""
        for _ in range(_TRIES):
            try:
                index = self._index.open("rb")
            except FileNotFoundError:
                with Path(os.devnull).open("rb") as nothing:
                    yield 0, {}, nothing
                return
            with index:
                copy, entries = _read(index.read())
                try:
                    output = (self._copied(copy) if self._copied(copy).exists() else self._output).open("rb")
                except FileNotFoundError:
                    continue
                with output:
                    if self._is(index):
                        yield copy, entries, output
                        return
        raise OutputUnavailable(f"{self._directory} has an index without its output")

    def _is(self, index: BinaryIO) -> bool:
        """Whether it is still the index: if not, the bytes may be of the next one."""
        try:
            return os.stat(self._index).st_ino == os.fstat(index.fileno()).st_ino  # noqa: PTH116 - as of the open file
        except FileNotFoundError:
            return False

    def _enter(self, entries: Iterable[_Entry]) -> None:
        with self._index.open("ab") as index:
            # Half an entry, left by somebody who died, would make nonsense of all that follow.
            index.truncate(index.tell() // _ENTRY.size * _ENTRY.size)
            index.write(b"".join(_ENTRY.pack(*entry) for entry in entries))

    def _copy(self) -> None:
        """All that is left, in order."""
        with self._opened() as (copy, entries, output):
            chunks = [(entry, _chunk(entry, output).data) for entry in entries.values()]
        fresh, index = self._copied(copy + 1), self._directory / ".index"
        written = [_Entry(_COPY, b"", copy + 1, 0, 0)]
        with fresh.open("wb") as output:
            for entry, data in chunks:
                written.append(entry._replace(place=output.tell()))
                output.write(data)
        index.write_bytes(b"".join(_ENTRY.pack(*entry) for entry in written))
        index.replace(self._index)
        self._settle()
        for name in {entry.name for entry, _ in chunks}:
            part = self._directory / f".{_safe(name)}"
            part.write_bytes(b"".join(data for entry, data in chunks if _safe(entry.name) == _safe(name)))
            part.replace(self._single(name))

    def _settle(self) -> None:
        """Let a copy that counts have the name under which people look for it."""
        try:
            with self._index.open("rb") as index:
                copy, _ = _read(index.read(_ENTRY.size))
            self._copied(copy).replace(self._output)
        except FileNotFoundError:
            return

    def _clear(self, streams: Iterable[str]) -> None:
        """The index first: without it the rest is nothing."""
        self._index.unlink(missing_ok=True)
        for path in (self._output, *map(self._single, streams)):
            path.unlink(missing_ok=True)

    def _copied(self, copy: int) -> Path:
        return self._directory / f".output.{copy}"

    def _single(self, stream: str) -> Path:
        return self._directory / _safe(stream)


def _read(index: bytes) -> tuple[int, dict[int, _Entry]]:
    """Which copy it belongs to, and its entries by number: the last of each counts."""
    whole = len(index) // _ENTRY.size * _ENTRY.size
    found = {entry.seq: entry for entry in map(_Entry._make, _ENTRY.iter_unpack(index[:whole]))}
    copied = found.pop(_COPY, None)
    kept = {seq: found[seq] for seq in sorted(found) if found[seq].size != _STRUCK}
    return copied.place if copied else 0, kept


def _chunk(entry: _Entry, output: BinaryIO) -> Chunk:
    output.seek(entry.place)
    at = datetime.fromtimestamp(entry.at / 1_000_000, UTC)
    return Chunk(seq=entry.seq, stream=entry.name, data=output.read(entry.size), at=at)


def _safe(stream: str) -> str:
    return stream if stream.isalnum() and stream not in {"index", "output"} else "other"
