"""Whether this process can do its work: it reaches the store, and jobs that are due are being claimed."""

from __future__ import annotations

import asyncio

import msgspec

from headway.app import Headway
from headway.clock import Clock, deadline
from headway.model.errors import HeadwayError
from headway.model.overview import QueueStats

PATIENCE = 3.0
"""Seconds in which the store must answer."""
STALLED = 60.0
"""Seconds for which a due job may wait in a served queue where nothing runs."""
FRESH = 1.0
"""Seconds for which an answer holds: probes must cost nothing."""


class Ready(msgspec.Struct, frozen=True):
    """The answer; `reasons` tell what is wrong."""

    ready: bool
    reasons: list[str] = []


class Readiness:
    """Looks at most once a second, however many ask."""

    def __init__(self, app: Headway, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._looked_at = float("-inf")
        self._last = Ready(False, ["not looked yet"])
        self._lock = asyncio.Lock()

    async def look(self) -> Ready:
        async with self._lock:
            if self._clock.monotonic() - self._looked_at > FRESH:
                self._last = await self._judge()
                self._looked_at = self._clock.monotonic()
            return self._last

    async def _judge(self) -> Ready:
        try:
            async with deadline(self._clock, PATIENCE):
                queues = await self._app.client.call(lambda store: store.queue_stats())
        except TimeoutError:
            return Ready(False, [f"the store did not answer within {PATIENCE:g} s"])
        except (HeadwayError, OSError) as error:
            return Ready(False, [f"the store can't be reached: {error}"])
        reasons = [_stalled(queue) for queue in queues if stalled(queue)]
        return Ready(not reasons, reasons)


def stalled(queue: QueueStats) -> bool:
    """Due jobs wait although workers serve the queue, and none of its jobs runs. One that is paused, full or unserved
    waits for good reasons."""
    waits = queue.oldest_due is not None and queue.oldest_due > STALLED
    return waits and bool(queue.workers) and not queue.settings.paused and not queue.running + queue.cancelling


def _stalled(queue: QueueStats) -> str:
    return (
        f"claiming stalls: jobs of the queue {queue.name} have been due for {queue.oldest_due:.0f} s, "
        f"{len(queue.workers)} workers serve it, and nothing runs"
    )
