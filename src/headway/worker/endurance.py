"""What keeps a worker's loops going: one that dies in silence leaves a worker that looks alive and does nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from headway.clock import Clock, sleep
from headway.model.errors import StoreUnavailable
from headway.observe.logs import get_logger

PAUSE = 1.0
"""Seconds until a loop that has failed begins anew."""

log = get_logger("headway.worker")


async def endure(loop: Callable[[], Awaitable[None]], clock: Clock, name: str) -> None:
    """`loop` until cancelled: whatever it fails of is told, and it begins anew."""
    while True:
        try:
            await loop()
        except Exception:
            log.exception("worker.loop_failed", loop=name)
        await sleep(clock, PAUSE)


def delayed(event: str, error: Exception, **fields: object) -> None:
    """Tell of something that will be tried again. A store that is away is to be expected; anything else is a fault,
    and told with where it comes from."""
    if isinstance(error, StoreUnavailable):
        log.warning(event, error=str(error), **fields)
    else:
        log.error(event, exc_info=error, error=repr(error), **fields)
