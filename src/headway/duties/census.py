"""The gauges that tell of the whole store, for the pages of schedulers and of the API.

Read when a page is asked for, and not oftener than every few seconds, however many ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as NotInTime

from headway.clock import Clock, SystemClock
from headway.model.overview import QueueStats, WorkerStats
from headway.observe import series
from headway.observe.logs import get_logger
from headway.observe.metrics import NAMES, Series
from headway.store.contract import Store
from headway.store.scripts.fire import ScheduleStats

FRESH = 5.0
"""Seconds for which a look at the store is good enough."""
PATIENCE = 10.0

Reach = Callable[[Callable[[Store], Awaitable[list[Series]]]], Awaitable[list[Series]]]

log = get_logger("headway.metrics")


class Census:
    """Looks at one store, through whatever leads to it."""

    def __init__(self, reach: Reach, clock: Clock | None = None) -> None:
        self._reach = reach
        self._clock = clock or SystemClock()
        self._lock = asyncio.Lock()
        self._looked: float | None = None
        self._found: list[Series] = []

    async def series(self) -> list[Series]:
        """All there is to tell; of a store that can't be reached, just that."""
        async with self._lock:
            now = self._clock.monotonic()
            if self._looked is None or now - self._looked >= FRESH:
                self._found = await self._look()
                self._looked = self._clock.monotonic()
            return self._found

    def from_thread(self, loop: asyncio.AbstractEventLoop) -> list[Series]:
        """The same for another thread than the loop's own; nothing, if the loop doesn't come round to it."""
        asked = asyncio.run_coroutine_threadsafe(self.series(), loop)
        try:
            return asked.result(PATIENCE)
        except NotInTime:
            asked.cancel()
            log.warning("metrics.no_census", help="the event loop is held up: the page tells of this process only")
            return []

    async def _look(self) -> list[Series]:
        try:
            return [series.store_up.at([((), 1)]), *await self._reach(_look)]
        except Exception as error:
            # Whatever it is, the page must say so and not fail.
            log.warning("metrics.store_unseen", error=str(error))
            return [series.store_up.at([((), 0)])]


async def _look(store: Store) -> list[Series]:
    queues, workers = await store.queue_stats(), await store.worker_stats()
    schedules, schedulers = await store.schedule_stats(), await store.schedulers()
    return [
        *_of_queues(queues),
        *_of_workers(workers),
        *_of_schedules(schedules),
        series.schedulers.at([((), schedulers)]),
    ]


def _of_queues(queues: Sequence[QueueStats]) -> Iterator[Series]:
    yield series.queue_jobs.at(((queue.name, state), number) for queue in queues for state, number in _depth(queue))
    yield series.queue_oldest_due.at(((queue.name,), queue.oldest_due or 0.0) for queue in queues)
    yield series.queue_workers.at(((queue.name,), len(queue.workers)) for queue in queues)
    yield series.queue_paused.at(((queue.name,), float(queue.pause is not None)) for queue in queues)


def _depth(queue: QueueStats) -> list[tuple[str, int]]:
    return [
        ("due", queue.due),
        ("later", queue.waiting - queue.due),
        ("running", queue.running),
        ("cancelling", queue.cancelling),
        ("blocked", queue.blocked),
        ("on_hold", queue.on_hold),
    ]


def _of_workers(workers: Sequence[WorkerStats]) -> Iterator[Series]:
    serving = [worker for worker in workers if worker.info.queues]
    yield series.workers.at([((), sum(worker.alive for worker in serving))])
    # Names come and go with their workers: those silent for longest are told of, and the label stays bounded.
    silent = sorted(workers, key=lambda worker: -worker.silent)[:NAMES]
    ages: dict[str, float] = {}
    for worker in silent:
        ages.setdefault(worker.info.name, worker.silent)
    yield series.worker_heartbeat_age.at(((name,), age) for name, age in ages.items())


def _of_schedules(found: ScheduleStats) -> Iterator[Series]:
    yield series.schedules.at([(("active",), found.active), (("inactive",), found.schedules - found.active)])
    yield series.schedule_late.at([((), found.late)])
