"""A job's time limit on the event loop."""

from __future__ import annotations

import asyncio

from headway.clock import Clock, Timer


class Limit:
    """`with Limit(clock, seconds) as limit:` cancels the running task when the time is over.

    It raises nothing itself: a job may raise TimeoutErrors of its own, so whoever used the limit asks `expired`.
    """

    __slots__ = ("_clock", "_seconds", "_task", "_timer", "expired")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._timer: Timer | None = None
        self._task: asyncio.Task[object] | None = None
        self.expired = False

    def __enter__(self) -> Limit:
        self._task = asyncio.current_task()
        self._timer = self._clock.call_later(self._seconds, self._expire)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._timer is not None
        self._timer.cancel()
        if self.expired and self._task is not None:
            self._task.uncancel()

    def _expire(self) -> None:
        if self._task is not None:
            self.expired = True
            self._task.cancel()
