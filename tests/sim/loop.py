"""An event loop on which time is a number: when nothing is ready, it jumps to the next timer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any

from headway.clock import Timer

START = datetime(2030, 1, 1, tzinfo=UTC)
LONGEST_MOMENT = 200_000
"""Turns of the loop without time passing, after which something is taken to be spinning."""
RESOLUTION = 1e-9
"""Timers as near as this fall due together."""


class Deadlock(Exception):
    """Nothing is ready and no timer runs: nothing will ever happen again."""


class Spinning(Exception):
    """The loop turns and turns, and no time passes."""


class Handle:
    """Something that is to happen: asyncio's own, without what only real loops need."""

    __slots__ = ("_act", "_context", "_given")

    def __init__(self, act: Callable[..., object], given: tuple[Any, ...], context: Context | None) -> None:
        self._act: Callable[..., object] | None = act
        self._given = given
        self._context = context or copy_context()

    def cancel(self) -> None:
        self._act = None

    def cancelled(self) -> bool:
        return self._act is None

    def run(self) -> None:
        if self._act is not None:
            self._context.run(self._act, *self._given)


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in the order in which they fall due, without waiting and without looking at the world.

    A callback that fails ends the run: whatever it is, nobody is there to hear of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._virtual = 0.0
        self._turns = 0
        self._waiting = deque[Handle]()
        self._timers: list[tuple[float, int, Handle]] = []
        self._order = count()

    def time(self) -> float:
        return self._virtual

    def call_soon(  # type: ignore[override]  # a handle of our own
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(callback, args, context)
        self._waiting.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(callback, args, context)
        heappush(self._timers, (when, next(self._order), handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        return self.call_at(self._virtual + delay, callback, *args, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Tasks that nobody asks for their errors any more: the dead leave them behind."""

    def _run_once(self) -> None:
        """One turn: what is ready, and what falls due now."""
        waiting, timers = self._waiting, self._timers
        if not waiting:
            self._jump()
        self._turns += 1
        if self._turns > LONGEST_MOMENT:
            raise Spinning(f"{LONGEST_MOMENT} turns at {self._virtual:.6f} s")
        due = self._virtual + RESOLUTION
        while timers and timers[0][0] <= due:
            waiting.append(heappop(timers)[2])
        for _ in range(len(waiting)):
            waiting.popleft().run()

    def _jump(self) -> None:
        """On to the next timer."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heappop(timers)
        if not timers:
            raise Deadlock("nothing is ready and no timer runs")
        if timers[0][0] > self._virtual:
            self._virtual = timers[0][0]
            self._turns = 0


class VirtualClock:
    """The loop's time as a `headway.clock.Clock`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        return START + timedelta(microseconds=round(self._loop.time() * 1_000_000))

    def monotonic(self) -> float:
        return self._loop.time()

    def call_later(self, delay: float, act: Callable[[], object]) -> Timer:
        return self._loop.call_later(max(delay, 0.0), act)
