"""A scheduler on a thread of its own, beside a worker: jobs that block the worker's loop must not make it late."""

from __future__ import annotations

from headway.clock import Clock
from headway.scheduler.scheduler import Scheduler
from headway.store.contract import Store
from headway.store.lending import Stores
from headway.store.thread import StoreThread

STOP_PATIENCE = 5.0


class SchedulerThread:
    """Fires schedules with a loop and a store of its own, from `start` to `stop`."""

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._clock = clock
        self._thread = StoreThread("scheduler", self._fire, stores, clock)
        self._scheduler: Scheduler | None = None

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        """The tick under way is completed; a store that can't be reached is not waited for much longer."""
        await self._thread.stop(self._end)

    async def _fire(self, store: Store) -> None:
        self._scheduler = Scheduler(self._clock)
        await self._scheduler.run(store)

    def _end(self) -> None:
        if self._scheduler is None:
            self._thread.cancel()
        else:
            self._scheduler.stop()
            self._clock.call_later(STOP_PATIENCE, self._thread.cancel)
