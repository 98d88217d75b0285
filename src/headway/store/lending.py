"""Who holds a store: each event loop its own connections to PostgreSQL, but a whole process one SQLite store."""

from __future__ import annotations

import os
import threading

from headway.clock import Clock
from headway.store import make_store
from headway.store.contract import Store


class Stores:
    """Lends opened stores for one URL and takes them back.

    SQLite has one writer: everything in a process shares one store, closed with the last one given back (in memory it
    is the data itself, and stays until `close`). PostgreSQL's connections belong to an event loop: each borrower gets
    its own.
    """

    def __init__(self, url: str, clock: Clock | None) -> None:
        self.url = url
        self._clock = clock
        self._shares = self.any_loop = url.startswith("sqlite")
        """Whether a store may be called from any event loop, not only from the one that opened it."""
        self._in_memory = self._shares and not url.partition("://")[2].strip("/")
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._shared: Store | None = None
        self._borrowers = 0

    async def acquire(self) -> Store:
        """A store, opened. SQLite brings its schema up to date by itself."""
        if not self._shares:
            return await self._opened(make_store(self.url, self._clock))
        self._start_afresh_after_fork()
        with self._lock:
            self._borrowers += 1
            if self._shared is None:
                self._shared = make_store(self.url, self._clock)
            store = self._shared
        try:
            await store.open()
        except BaseException:
            await self.release(store)
            raise
        return store

    async def release(self, store: Store) -> None:
        """Take a store back."""
        if self._shares:
            with self._lock:
                self._borrowers -= 1
                if self._borrowers > 0 or self._in_memory:
                    return
                self._shared = None
        await store.close()

    async def close(self) -> None:
        """Let go of what is kept between borrowers."""
        with self._lock:
            store, self._shared = self._shared, None
        if store is not None and self._pid == os.getpid():
            await store.close()

    async def _opened(self, store: Store) -> Store:
        try:
            await store.open()
        except BaseException:
            await store.close()
            raise
        return store

    def _start_afresh_after_fork(self) -> None:
        if self._pid != os.getpid():
            self._pid, self._lock, self._shared, self._borrowers = os.getpid(), threading.Lock(), None, 0
