"""The only file that reads time or sleeps.

Time is an argument: whoever waits or times something is given a `Clock`, so that tests drive it by hand
(`FakeClock`) and the simulator runs on the virtual time of its own event loop.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Timer(Protocol):
    """Something that will happen, unless it is cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Wall time, steady time, and waiting."""

    def now(self) -> datetime:
        """Wall time in UTC."""

    def monotonic(self) -> float:
        """Seconds that only go forward."""

    def call_later(self, delay: float, act: Callable[[], object]) -> Timer:
        """Do `act` on the running loop after `delay` seconds."""


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    # Asked for twice with every job: without a function of our own around it.
    monotonic = staticmethod(time.monotonic)

    def call_later(self, delay: float, act: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, act)


class FakeClock:
    """Time that stands still until a test moves it on."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, _FakeTimer]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, delay: float, act: Callable[[], object]) -> Timer:
        timer = _FakeTimer(act)
        heapq.heappush(self._timers, (self._elapsed + max(delay, 0.0), next(self._order), timer))
        return timer

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back; steady time knows nothing of it."""
        self._start += timedelta(seconds=seconds)

    def advance(self, seconds: float) -> None:
        """Move time on; what falls due on the way happens in order, at its own time."""
        end = self._elapsed + seconds
        while self._timers and self._timers[0][0] <= end:
            at, _, timer = heapq.heappop(self._timers)
            self._elapsed = max(self._elapsed, at)
            timer.ring()
        self._elapsed = end

    @property
    def next_timer(self) -> float | None:
        """Seconds until something falls due."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] - self._elapsed if self._timers else None


class _FakeTimer:
    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def ring(self) -> None:
        if not self.cancelled:
            self._act()


async def sleep(clock: Clock, delay: float) -> None:
    """Wait `delay` seconds of this clock's time."""
    over = asyncio.get_running_loop().create_future()

    def ring() -> None:
        if not over.done():
            over.set_result(None)

    timer = clock.call_later(delay, ring)
    try:
        await over
    finally:
        timer.cancel()


async def wait_for(clock: Clock, event: asyncio.Event, delay: float) -> bool:
    """Wait until the event is set, at most `delay` seconds; whether it is set."""
    if event.is_set():
        return True
    waiter = asyncio.ensure_future(event.wait())
    timer = clock.call_later(delay, waiter.cancel)
    try:
        await waiter
    except asyncio.CancelledError:
        if not waiter.cancelled() or _cancelling():
            raise
    finally:
        timer.cancel()
        waiter.cancel()
    return event.is_set()


@asynccontextmanager
async def deadline(clock: Clock, delay: float | None) -> AsyncIterator[None]:
    """Cancel the block after `delay` seconds and raise TimeoutError in its place; None is no limit."""
    if delay is None:
        yield
        return
    task = asyncio.current_task()
    assert task is not None
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = True
        task.cancel()

    timer = clock.call_later(delay, expire)
    try:
        yield
    except asyncio.CancelledError as cancelled:
        if expired and task.uncancel() == 0:
            raise TimeoutError(f"timed out after {delay:g} s") from cancelled
        raise
    finally:
        timer.cancel()


def _cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
