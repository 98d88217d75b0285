"""The bus within one process: `local://`, or `local://name` to have several apart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from threading import Lock
from weakref import WeakValueDictionary

from headway.bus.box import Box, Mail
from headway.bus.contract import Counters, Doorbell, OnCall, OnDoorbell, OnEvent, Stop
from headway.bus.ears import Ears
from headway.bus.line import Terms
from headway.model.events import Event


class Hub:
    """What the buses of one name have in common: each other."""

    def __init__(self) -> None:
        self.members: tuple[LocalBus, ...] = ()
        """Never changed, only replaced: it is read by any thread."""
        self._lock = Lock()

    def join(self, bus: LocalBus) -> None:
        with self._lock:
            self.members = (*self.members, bus)

    def leave(self, bus: LocalBus) -> None:
        with self._lock:
            self.members = tuple(member for member in self.members if member is not bus)


_hubs: WeakValueDictionary[str, Hub] = WeakValueDictionary()


def hub_of(url: str) -> Hub:
    """All buses with this URL meet here, for as long as there is one."""
    return _hubs.setdefault(url, Hub())


class LocalBus:
    """Every bus of the hub hears every ring, each on its own loop."""

    def __init__(self, hub: Hub) -> None:
        self.counters = Counters()
        self._hub = hub
        self._ears = Ears(self.counters)
        self._box: Box | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        return self._box is not None

    async def open(self) -> None:
        self._box = Box(self.counters)
        self._task = asyncio.create_task(self._hear(self._box))
        self._hub.join(self)

    async def join(self) -> None:
        await self.open()

    async def close(self) -> None:
        self._hub.leave(self)
        self._box = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def ring(self, doorbells: Sequence[Doorbell]) -> None:
        self.counters.rung += len(doorbells)
        for box, ears in self._others():
            wanted = set(ears.queues)
            if heard := [doorbell for doorbell in doorbells if doorbell.queue in wanted]:
                box.put(Mail(doorbells=heard))

    async def listen(self, queue: str, heard: OnDoorbell) -> None:
        self._ears.listen(queue, heard)

    async def unlisten(self, queue: str) -> None:
        self._ears.unlisten(queue)

    def ready(self, queue: str) -> None:
        self._ears.ready(queue)

    def call(self, channel: str) -> None:
        for box, ears in self._others():
            if ears.wants_calls:
                box.put(Mail(calls=[channel]))

    async def on_call(self, channel: str, heard: OnCall) -> Stop:
        return self._ears.on_call(channel, heard)

    def emit(self, events: Sequence[Event]) -> None:
        self.counters.emitted += len(events)
        for box, ears in self._others():
            if ears.wants_events:
                box.put(Mail(events=events))

    async def subscribe(self, pattern: str, heard: OnEvent, missed: OnCall = lambda: None) -> Stop:
        return self._ears.subscribe(pattern, heard, missed)

    def _others(self) -> Iterator[tuple[Box, Ears]]:
        """This bus among them: a process may wake itself."""
        for member in self._hub.members:
            if (box := member._box) is not None:
                yield box, member._ears

    async def _hear(self, box: Box) -> None:
        while True:
            mail = await box.take()
            for doorbell in mail.doorbells:
                self._ears.hear(doorbell)
            for channel in mail.calls:
                self._ears.hear_call(channel)
            for event in mail.events:
                self._ears.hear_event(event)
            await _turn()


async def _turn() -> None:
    """Let everybody else on the loop go on first."""
    turn = asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)
    await turn.wait()


def from_terms(terms: Terms) -> LocalBus:
    """The maker behind `local://`."""
    return LocalBus(hub_of(terms.url))
