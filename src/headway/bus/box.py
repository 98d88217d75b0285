"""What waits to be sent: bounded, filled from any thread, emptied by one task."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from headway.bus.contract import Counters, Doorbell
from headway.model.events import Event
from headway.observe.logs import get_logger

T = TypeVar("T")

MOST_RINGS = 1_000
"""Doorbells, and as many calls, that are kept for a broker that is away."""
MOST_EVENTS = 10_000
EVENTS_AT_ONCE = 500
"""So that rings never wait behind more than these."""

log = get_logger("headway.bus")


class Mail(NamedTuple):
    """What is sent in one go."""

    doorbells: Sequence[Doorbell] = ()
    calls: Sequence[str] = ()
    events: Sequence[Event] = ()


class Box:
    """Belongs to the loop that runs when it is made."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._doorbells: deque[Doorbell] = deque()
        self._calls: deque[str] = deque()
        self._events: deque[Event] = deque()
        self._filled = asyncio.Event()
        self._overflowing = False
        self.drained = asyncio.Event()
        """Set while everything that was put in has been dealt with."""
        self.drained.set()

    def put(self, mail: Mail) -> None:
        """From any thread. What is too much pushes out the oldest."""
        if not any(mail):
            return
        with self._lock:
            rings = _extend(self._doorbells, mail.doorbells, MOST_RINGS) + _extend(self._calls, mail.calls, MOST_RINGS)
            events = _extend(self._events, mail.events, MOST_EVENTS)
            self._counters.dropped_rings += rings
            self._counters.dropped_events += events
        if rings or events:
            self._complain(rings, events)
        self._rouse()

    def put_back(self, mail: Mail) -> None:
        """It could not be sent. Rings may go out twice; events, of which some may have gone, may not."""
        with self._lock:
            self._doorbells.extendleft(reversed(mail.doorbells))
            self._calls.extendleft(reversed(mail.calls))
            self._counters.dropped_events += len(mail.events)
        self._rouse()

    async def take(self) -> Mail:
        """The next to be sent; what was taken before counts as sent now."""
        while not (self._doorbells or self._calls or self._events):
            self._overflowing = False
            self._filled.clear()
            self.drained.set()
            await self._filled.wait()
        with self._lock:
            # A call repeated is no call more.
            return Mail(_all(self._doorbells), list(dict.fromkeys(_all(self._calls))), _some(self._events))

    def _complain(self, rings: int, events: int) -> None:
        if not self._overflowing:
            self._overflowing = True
            log.warning("bus.dropping", rings=rings, events=events, help="the broker is away or too slow")

    def _rouse(self) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._filled_now()
        else:
            # The loop may just be closing: then nobody is there to be roused.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._filled_now)

    def _filled_now(self) -> None:
        self.drained.clear()
        self._filled.set()


def _extend(queue: deque[T], more: Iterable[T], limit: int) -> int:
    """How many had to go."""
    queue.extend(more)
    excess = max(len(queue) - limit, 0)
    for _ in range(excess):
        queue.popleft()
    return excess


def _all(queue: deque[T]) -> list[T]:
    taken = list(queue)
    queue.clear()
    return taken


def _some(queue: deque[Event]) -> list[Event]:
    return [queue.popleft() for _ in range(min(len(queue), EVENTS_AT_ONCE))]
