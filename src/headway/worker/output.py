"""What a running job says about itself, on its way to the store: output and progress."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from headway.model.job import CHUNK, Chunk, Progress, encode

HEAD = TAIL = 5 * 1024 * 1024
"""Of long output the first and the last part are kept."""


class Output:
    """Collects an attempt's news; `take` hands over what is to be stored. Fed from the loop or from a thread."""

    def __init__(self) -> None:
        self.progress: Progress | None = None
        self._pending: deque[bytes] = deque()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._written = 0
        self._dropped = 0
        self._seq = 0

    def emit(self, news: Progress | bytes) -> None:
        if isinstance(news, Progress):
            self.progress = news
        elif self._written + len(news) <= HEAD:
            self._written += len(news)
            self._pending.append(news)
        else:
            self._keep_last(news)

    def take_progress(self) -> str | None:
        progress, self.progress = self.progress, None
        return encode(progress) if progress else None

    def take(self, *, last: bool = False) -> list[Chunk]:
        """Chunks not yet stored; with `last` also what was kept of the end."""
        pieces = [self._pending.popleft() for _ in range(len(self._pending))]
        if last and self._dropped:
            pieces.append(f"\n[… {self._dropped:,} bytes left out …]\n".encode())
        if last:
            pieces += self._tail
            self._tail.clear()
        return list(self._chunks(b"".join(pieces)))

    def _chunks(self, data: bytes) -> Iterator[Chunk]:
        for start in range(0, len(data), CHUNK):
            yield Chunk(seq=self._seq, stream="log", data=data[start : start + CHUNK])
            self._seq += 1

    def _keep_last(self, news: bytes) -> None:
        self._written = HEAD
        self._tail.append(news)
        self._tail_size += len(news)
        while self._tail_size > TAIL:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._dropped += gone
