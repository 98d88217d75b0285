"""A thread with an event loop and a store of its own, for what must go on while jobs block the main loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from headway.clock import Clock, sleep
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.lending import Stores

TRY_AGAIN = 1.0

log = get_logger("headway.store")


class StoreThread:
    """Runs `serve` with a lent store, from `start` until `serve` has ended or is stopped."""

    def __init__(self, name: str, serve: Callable[[Store], Awaitable[None]], stores: Stores, clock: Clock) -> None:
        self._name = name
        self._serve = serve
        self._stores = stores
        self._clock = clock
        self._thread = threading.Thread(target=self._run, name=f"headway-{name}", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._thread.start()

    def call(self, act: Callable[[], object]) -> None:
        """Do `act` on its loop, unless that has ended. From any thread."""
        self._ready.wait()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act)

    async def stop(self, end: Callable[[], object] | None = None) -> None:
        """Do `end` on its loop, by default `cancel`, and wait until the thread is over."""
        await asyncio.to_thread(self.call, end or self.cancel)
        await asyncio.to_thread(self._thread.join)

    def cancel(self) -> None:
        """End it at once. Called on its loop."""
        assert self._main is not None
        self._main.cancel()

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except asyncio.CancelledError:
            log.debug("store.thread_stopped", thread=self._name)
        finally:
            self._ready.set()

    async def _live(self) -> None:
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        self._ready.set()
        store = await self._acquire()
        try:
            await self._serve(store)
        finally:
            await self._stores.release(store)

    async def _acquire(self) -> Store:
        while True:
            try:
                return await self._stores.acquire()
            except Exception as error:
                # Whatever it is: without a keeper every lease would lapse, without a scheduler nothing would fire.
                log.warning("store.thread_delayed", thread=self._name, error=repr(error))
                await sleep(self._clock, TRY_AGAIN)
