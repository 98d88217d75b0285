"""A bus that drops everything: whatever is right with it is right with any bus."""

from __future__ import annotations

from collections.abc import Sequence

from headway.bus.contract import Bus, Counters, Doorbell, OnCall, OnDoorbell, OnEvent, Stop
from headway.model.events import Event


class DeafBus:
    """Takes everything and tells nobody."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.connected = False

    async def open(self) -> None: ...

    async def join(self) -> None: ...

    async def close(self) -> None: ...

    def ring(self, doorbells: Sequence[Doorbell]) -> None:
        self.counters.dropped_rings += len(doorbells)

    async def listen(self, queue: str, heard: OnDoorbell) -> None: ...

    async def unlisten(self, queue: str) -> None: ...

    def ready(self, queue: str) -> None: ...

    def call(self, channel: str) -> None:
        self.counters.dropped_rings += 1

    async def on_call(self, channel: str, heard: OnCall) -> Stop:
        return lambda: None

    def emit(self, events: Sequence[Event]) -> None:
        self.counters.dropped_events += len(events)

    async def subscribe(self, pattern: str, heard: OnEvent, missed: OnCall = lambda: None) -> Stop:
        return lambda: None


def deaf_bus() -> Bus:
    return DeafBus()
