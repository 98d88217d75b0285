"""Those who watch a file: told behind each commit what it has changed, in this process and in others.

Each watcher binds a socket beside those of `wake.py`, under a name that tells them apart: where there is none, nothing
is gathered.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from headway.model.events import Transition
from headway.store.scripts.news import News, pages, write_lines
from headway.store.sqlite.wake import WATCHER, Listener, log, send, wake_directory

Heard = Callable[[Sequence[Transition]], None]

LONGEST_PAGE = 8_000


class Watchers:
    """Of one file; `path` is None for a database in memory, which nobody else can see."""

    def __init__(self, path: str | None) -> None:
        self._directory = wake_directory(path) if path is not None else None
        self._own: list[Watcher] = []
        self._lock = threading.Lock()

    def watch(self, heard: Heard) -> Callable[[], None]:
        """`heard` is called on the loop that runs now. Returns what ends it."""
        watcher = Watcher(asyncio.get_running_loop(), heard)
        if self._directory is not None:
            watcher.bind(self._directory)
        with self._lock:
            self._own.append(watcher)
        return lambda: self._remove(watcher)

    def committed(self, news: Sequence[News]) -> None:
        """What a transaction has changed. From any thread; never waits."""
        write_lines(news)
        self._tell(lambda: list(chain.from_iterable(each.changes() for each in news)))

    def tell(self, changes: Sequence[Transition]) -> None:
        self._tell(lambda: changes)

    def close(self) -> None:
        for watcher in self._all():
            self._remove(watcher)

    def _tell(self, gather: Callable[[], Sequence[Transition]]) -> None:
        own = self._all()
        others = self._others({watcher.name for watcher in own})
        if not own and not others:
            return
        changes = gather()
        for watcher in own:
            if not watcher.call(changes):
                self._remove(watcher)
        if others:
            for page in pages(changes):
                send(others, page.encode())

    def _others(self, own: set[str]) -> list[Path]:
        try:
            found = list(self._directory.iterdir()) if self._directory is not None else []
        except OSError:
            return []
        return [path for path in found if path.name.endswith(WATCHER) and path.name not in own]

    def _all(self) -> list[Watcher]:
        with self._lock:
            return list(self._own)

    def _remove(self, watcher: Watcher) -> None:
        with self._lock:
            if watcher in self._own:
                self._own.remove(watcher)
        watcher.close()


class Watcher(Listener[Transition]):
    """One who watches, the loop it belongs to, and the socket on which other processes reach it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, heard: Heard) -> None:
        super().__init__(loop, heard)
        self.name += WATCHER

    def _receive(self) -> None:
        """Page by page, as they came. An empty one says that some are missing."""
        try:
            while self._socket is not None:
                self._heard(msgspec.json.decode(self._socket.recv(LONGEST_PAGE), type=list[Transition]))
        except (BlockingIOError, InterruptedError):
            pass
        except (OSError, msgspec.DecodeError) as error:
            log.debug("store.bad_news", error=str(error))
            self._heard([])
