"""A scheduler on a thread of its own, beside a worker: jobs that block the worker's loop must not make it late."""

from __future__ import annotations

import asyncio
import threading

from headway.clock import Clock, sleep
from headway.observe.logs import get_logger
from headway.scheduler.scheduler import Scheduler
from headway.store.contract import Store
from headway.store.lending import Stores

STOP_PATIENCE = 5.0

log = get_logger("headway.scheduler")


class SchedulerThread:
    """Fires schedules with a loop and a store of its own, from `start` to `stop`."""

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores = stores
        self._clock = clock
        self._thread = threading.Thread(target=self._run, name="headway-scheduler", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._scheduler: Scheduler | None = None

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        """The tick under way is completed; a store that can't be reached is not waited for much longer."""
        await asyncio.to_thread(self._ready.wait)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end)
        await asyncio.to_thread(self._thread.join)

    def _end(self) -> None:
        assert self._main is not None
        if self._scheduler is None:
            self._main.cancel()
        else:
            self._scheduler.stop()
            self._clock.call_later(STOP_PATIENCE, self._main.cancel)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except asyncio.CancelledError:
            log.debug("scheduler.thread_stopped")
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        self._ready.set()
        store = await self._acquire()
        self._scheduler = Scheduler(self._clock)
        try:
            await self._scheduler.run(store)
        finally:
            await self._stores.release(store)

    async def _acquire(self) -> Store:
        while True:
            try:
                return await self._stores.acquire()
            except Exception as error:
                # Whatever it is: a worker that was asked to fire must not go on without.
                log.warning("scheduler.delayed", error=repr(error))
                await sleep(self._clock, 1.0)
