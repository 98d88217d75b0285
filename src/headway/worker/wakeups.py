"""How a worker learns that there is work: by rings of the store or of a bus, and by looking when none comes.

Rings may be lost, late or too many. What is claimed decides; a look every second is the net under all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from uuid import UUID

from headway.bus.contract import Bus, Doorbell
from headway.clock import Clock, Timer, wait_for
from headway.model.errors import StoreUnavailable
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.scripts.cancel import worker_channel
from headway.store.scripts.rows import later
from headway.worker.lane import Lane

LOOK_AFTER = 0.05
"""Seconds after a claim until the worker asks when the next job is due."""
LATER = later("")

log = get_logger("headway.worker")


class Wakeups:
    """Wakes the lanes of one worker. `hurry` is called when somebody wants the worker to look at its cancels."""

    def __init__(
        self, worker_id: UUID, store: Store, clock: Clock, lanes: Mapping[str, Lane], hurry: Callable[[], None]
    ) -> None:
        self._own = worker_channel(worker_id)
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._hurry = hurry
        self._look = asyncio.Event()
        self._asking: Timer | None = None

    def all(self) -> None:
        """Look at all queues now."""
        for lane in self._lanes.values():
            lane.wake.set()

    async def listen(self, bus: Bus | None) -> Callable[[], None]:
        """Begin to hear: from the bus, or without one from the store itself. Returns what ends it."""
        return await (bus.on_call(self._own, self._hurry) if bus else self._store.listen(self._heard))

    def rung(self, doorbell: Doorbell) -> bool:
        """A doorbell of the bus. A lane that is full leaves it to another worker."""
        lane = self._lanes[doorbell.queue]
        lane.deaf = lane.room <= 0
        if not lane.deaf:
            self._due(lane)
        return not lane.deaf

    def claimed(self, lane: Lane, *, empty: bool) -> None:
        """Ask when the next job is due: at once after an empty claim, unless that very answer led to it; soon after
        one that took all there was, but not after each of many."""
        if empty and not lane.peeked:
            self._look.set()
        elif not empty and self._asking is None:
            self._asking = self._clock.call_later(LOOK_AFTER, self._ask)
        lane.peeked = False

    async def poll(self, every: float) -> None:
        """The net under all wake-ups: one question for all idle queues, at least every so many seconds."""
        try:
            while True:
                self._look.clear()
                idle = {lane.queue: lane for lane in self._lanes.values() if lane.open and lane.idle}
                wait = min(every, await self._wake_due(idle, every)) if idle else every
                await wait_for(self._clock, self._look, wait)
        finally:
            if self._asking is not None:
                self._asking.cancel()

    def _heard(self, channel: str) -> None:
        """A ring of the store for one queue, for this worker itself, or (after a reconnect) for all."""
        if channel == self._own:
            self._hurry()
        elif channel == "":
            self.all()
        elif channel.startswith(LATER):
            self._look_when_due(channel.removeprefix(LATER))
        elif channel in self._lanes:
            self._due(self._lanes[channel])

    def _due(self, lane: Lane) -> None:
        """Jobs are due now. If others are quicker there is no need to ask when the next one is: it will ring."""
        lane.peeked = True
        lane.wake.set()

    def _look_when_due(self, queue: str) -> None:
        if queue in self._lanes:
            self._lanes[queue].peeked = False
            self._look.set()

    def _ask(self) -> None:
        self._asking = None
        self._look.set()

    async def _wake_due(self, lanes: Mapping[str, Lane], every: float) -> float:
        """Wake the lanes that have work; seconds until the next one will."""
        try:
            delays = await self._store.peek(list(lanes))
        except StoreUnavailable as error:
            log.warning("worker.poll_delayed", error=str(error))
            return every
        for queue, delay in delays.items():
            if delay <= 0:
                self._due(lanes[queue])
        return min((delay for delay in delays.values() if delay > 0), default=every)
