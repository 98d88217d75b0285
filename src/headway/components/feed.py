"""FEED: what becomes of jobs, whichever process changes them, for those who show it live.

    feed = Feed(store, bus="amqp://…" or None)
    await feed.open()
    stop = feed.listen(heard)       # heard(events), on this loop

An empty list of events says that some were missed (a connection was lost, a worker was too fast): look again. Nothing
is repeated, so whoever shows something reads it from the store first, and goes by the feed from there.

With a bus it is the bus that brings the news; without one the store does: PostgreSQL by NOTIFY, SQLite by sockets
beside the file. While nobody listens nothing is told, so a feed should be open only while it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway.bus import make_bus
from headway.bus.contract import Bus
from headway.model.events import Event
from headway.observe.logs import get_logger
from headway.store.contract import Heard, Store

EVERYTHING = "job.*"

log = get_logger("headway.components")


class Feed:
    """The news of all processes on one store. Opened and listened to on one loop."""

    def __init__(self, store: Store, bus: str | None = None) -> None:
        self._store = store
        self._url = bus
        self._bus: Bus | None = None
        self._stop: Callable[[], None] | None = None
        self._listeners: dict[object, Heard] = {}

    async def open(self) -> None:
        """Begin to hear. Raises StoreUnavailable; a broker may be away, and is reached for."""
        if self._url is None:
            self._stop = await self._store.watch(self._pass_on)
            return
        self._bus = make_bus(self._url)
        await self._bus.join()
        self._stop = await self._bus.subscribe(EVERYTHING, lambda it: self._pass_on([it]), lambda: self._pass_on([]))

    async def close(self) -> None:
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()
        if self._bus is not None:
            bus, self._bus = self._bus, None
            await bus.close()

    def listen(self, heard: Heard) -> Callable[[], None]:
        """Call `heard` with what comes; it must not block. Returns what ends it."""
        place = object()
        self._listeners[place] = heard

        def leave() -> None:
            self._listeners.pop(place, None)

        return leave

    def _pass_on(self, events: Sequence[Event]) -> None:
        """A listener that raises harms nobody else."""
        for heard in list(self._listeners.values()):
            try:
                heard(events)
            except Exception:
                log.exception("feed.listener_failed")
