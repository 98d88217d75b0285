"""What a scheduler does at a broker: it rings for due jobs, and its components act on commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from headway.access.trail import Trail
from headway.bus import make_bus
from headway.bus.contract import BusUnavailable
from headway.clock import Clock, sleep
from headway.components.assembly import Components
from headway.components.serving import serve_components
from headway.duties.dispatch import Dispatcher
from headway.model.errors import StoreUnavailable
from headway.observe.logs import get_logger
from headway.store.contract import Store

AGAIN = 1.0
"""Seconds until the broker or the store is tried again."""

log = get_logger("headway.scheduler")


class Post:
    """Serves one broker. Whether that is there or not, the store is enough to go on.

    A URL that no bus has raises ConfigurationError.
    """

    def __init__(self, url: str, holder: UUID, components: Components | None, clock: Clock) -> None:
        self._url = url
        self._bus = make_bus(url)
        self._holder = holder
        self._components = components
        self._clock = clock
        self._serving: asyncio.Task[None] | None = None

    def open(self, store: Store) -> None:
        """Begin to serve."""
        self._serving = asyncio.create_task(self._serve(store))

    async def close(self) -> None:
        """Ring no more, and take no more commands; those in hand are answered."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])

    async def _serve(self, store: Store) -> None:
        await self._bus.join()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._insist(lambda: self._dispatch(store)))
                if self._components is not None and self._url.startswith("amqp"):
                    group.create_task(self._insist(lambda: self._answer_commands(store)))
        finally:
            await self._bus.close()

    async def _dispatch(self, store: Store) -> None:
        await Dispatcher(self._holder, store, self._bus, self._clock).run()

    async def _answer_commands(self, store: Store) -> None:
        assert self._components is not None
        trail = Trail(lambda act: act(store), self._clock)
        desk = await serve_components(self._url, self._components, audit=trail)
        try:
            await asyncio.Event().wait()
        finally:
            await desk.close()
            await trail.close()

    async def _insist(self, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await act()
            except (BusUnavailable, StoreUnavailable) as error:
                log.warning("scheduler.post_delayed", error=str(error))
            except Exception:
                # Whatever it was: schedules are fired all the same.
                log.exception("scheduler.post_failed")
            await sleep(self._clock, AGAIN)
