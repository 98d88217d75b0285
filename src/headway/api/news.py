"""What becomes of jobs, for everybody in this process who waits for it: one feed, however many ask.

The feed is open only while somebody listens, and a little longer: opening it makes workers tell. It may miss something,
and says so; who waits for one job looks into the store every now and then all the same.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from headway.app import Headway
from headway.clock import Clock, Timer, wait_for
from headway.components.feed import Feed
from headway.model.events import Event
from headway.store.contract import Store

BACKLOG = 1000
"""Events that one slow reader may have waiting; then some are dropped, and it is told."""
LINGER = 10.0
"""Seconds for which the feed stays open when the last reader has left."""


class Reader:
    """One who wants to hear."""

    def __init__(self, fits: Callable[[Event], bool]) -> None:
        self._fits = fits
        self._events: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self.missed = False
        """Something may have happened that was not told: look again."""

    def tell(self, events: Sequence[Event]) -> None:
        """What came over the feed; nothing at all means that some was missed."""
        wanted = [event for event in events if self._fits(event)]
        self.missed = self.missed or not events or len(self._events) + len(wanted) > BACKLOG
        self._events.extend(wanted)
        while len(self._events) > BACKLOG:
            self._events.popleft()
        if wanted or self.missed:
            self._arrived.set()

    def wake(self) -> None:
        """Wait no longer."""
        self._arrived.set()

    async def next(self, clock: Clock, wait: float) -> list[Event]:
        """What has come; waits up to so many seconds for something."""
        await wait_for(clock, self._arrived, wait)
        self._arrived.clear()
        events = list(self._events)
        self._events.clear()
        return events


class News:
    """Opens the feed, hands on what it brings, and closes it."""

    def __init__(self, app: Headway, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._readers: set[Reader] = set()
        self._feed: Feed | None = None
        self._lock = asyncio.Lock()
        self._resting: Timer | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def join(self, reader: Reader) -> None:
        """Tell this reader of what happens from now on."""
        self._readers.add(reader)
        try:
            async with self._lock:
                if self._feed is None:
                    self._feed = await self._opened()
        except BaseException:
            self._readers.discard(reader)
            raise

    def leave(self, reader: Reader) -> None:
        self._readers.discard(reader)
        if not self._readers and self._feed is not None:
            if self._resting is not None:
                self._resting.cancel()
            self._resting = self._clock.call_later(LINGER, self._rest)

    def end(self) -> None:
        """Nobody is to wait any longer."""
        for reader in self._readers:
            reader.wake()

    async def close(self) -> None:
        """Let go of the feed."""
        if self._resting is not None:
            self._resting.cancel()
        async with self._lock:
            feed, self._feed = self._feed, None
        if feed is not None:
            await feed.close()

    async def _opened(self) -> Feed:
        store = await self._app.client.call(_itself)
        feed = Feed(store, self._app.bus)
        feed.listen(self._tell)
        await feed.open()
        return feed

    def _tell(self, events: Sequence[Event]) -> None:
        for reader in list(self._readers):
            reader.tell(events)

    def _rest(self) -> None:
        if not self._readers:
            task = asyncio.ensure_future(self.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


async def _itself(store: Store) -> Store:
    return store
