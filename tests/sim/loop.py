"""An event loop on which time is a number: when nothing is ready, it jumps to the next timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from headway.clock import Timer

START = datetime(2030, 1, 1, tzinfo=UTC)
LONGEST_MOMENT = 200_000
"""Turns of the loop without time passing, after which something is taken to be spinning."""


class Deadlock(Exception):
    """Nothing is ready and no timer runs: nothing will ever happen again."""


class Spinning(Exception):
    """The loop turns and turns, and no time passes."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in the order in which they fall due, without waiting and without looking at the world."""

    def __init__(self) -> None:
        super().__init__()
        self._virtual = 0.0
        self._turns = 0
        # What BaseEventLoop asks for, instead of a selector that sleeps.
        self._selector = self
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._virtual

    def select(self, timeout: float | None) -> list[Any]:
        """Called once per turn: `timeout` is the time to the next timer, None when there is none."""
        if timeout is None:
            raise Deadlock("nothing is ready and no timer runs")
        if timeout > 0:
            # The timer's own time, not a sum: floats must not fall short of it.
            self._virtual = max(self._virtual, self._scheduled[0].when())  # type: ignore[attr-defined]
            self._turns = 0
        self._turns += 1
        if self._turns > LONGEST_MOMENT:
            raise Spinning(f"{LONGEST_MOMENT} turns at {self._virtual:.6f} s")
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """There is nobody to be woken from another thread."""


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
