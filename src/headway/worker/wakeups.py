"""How a worker learns that there is work: by rings of the store or of a bus, and by looking when none comes.

Rings may be lost, late or too many. What is claimed decides; a look every second is the net under all of them.

A ring of the store is heard by all workers at once. Where there are many, each lets a moment pass that it has drawn by
lot: the first to ask takes what there is. If that was all, its claim tells the others to stay where they are; if not, a
few join in at once, and the others one after another, as claims take time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from uuid import UUID

from headway.bus.contract import Bus, Doorbell
from headway.clock import Clock, Timer, wait_for
from headway.model.errors import StoreUnavailable
from headway.model.retry import Random
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.scripts.rows import HUSH, hushed, later
from headway.worker.lane import AT_ONCE, Lane

LOOK_AFTER = 0.05
"""Seconds after a claim until the worker asks when the next job is due."""
SHORTEST_TURN, LONGEST_TURN = 0.001, 0.025
"""Seconds that each worker more may have to answer a ring: the first few, and the others at most."""
LATER = later("")

log = get_logger("headway.worker")


class Wakeups:
    """Wakes the lanes of one worker. `calls`: what else is rung for, and what is to be done then."""

    def __init__(  # noqa: PLR0913 - what a worker hears, and by which means
        self,
        worker_id: UUID,
        store: Store,
        clock: Clock,
        random: Random,
        lanes: Mapping[str, Lane],
        calls: Mapping[str, Callable[[], None]],
    ) -> None:
        self.crowd = 1
        """How many workers hear the same rings."""
        self._me = str(worker_id)
        self._store = store
        self._clock = clock
        self._random = random
        self._lanes = lanes
        self._calls = calls
        self._look = asyncio.Event()
        self._asking: Timer | None = None

    def count(self, crowd: int) -> None:
        """So many workers hear the same rings."""
        self.crowd = crowd

    def all(self) -> None:
        """Look at all queues now."""
        for lane in self._lanes.values():
            lane.wake.set()

    async def listen(self, bus: Bus | None) -> Callable[[], None]:
        """Begin to hear: from the bus, or without one from the store itself. Returns what ends it."""
        if bus is None:
            return await self._store.listen(self._heard)
        stops = [await bus.on_call(channel, call) for channel, call in self._calls.items()]

        def stop() -> None:
            for each in stops:
                each()

        return stop

    def rung(self, doorbell: Doorbell) -> bool:
        """A doorbell of the bus. A lane that is full, or sits out, leaves it to another worker."""
        lane = self._lanes[doorbell.queue]
        lane.deaf = lane.room <= 0 or lane.sits_out
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
                self._asking = None
            for lane in self._lanes.values():
                self._take_back(lane)

    def _heard(self, channel: str) -> None:
        """A ring of the store for one queue, for this worker itself, or (after a reconnect) for all."""
        if channel in self._calls:
            self._calls[channel]()
        elif channel == "":
            self.all()
        elif channel.startswith(LATER):
            self._look_when_due(channel.removeprefix(LATER))
        elif channel.startswith(HUSH):
            self._heard_hush(*hushed(channel))
        elif channel in self._lanes:
            self._ring(self._lanes[channel])

    def _ring(self, lane: Lane) -> None:
        """Jobs are due, and everybody knows. A lane that is just asking will ask again."""
        if self.crowd == 1 or not lane.idle:
            self._due(lane)
        elif lane.answer is None:
            lane.answer = self._clock.call_later(self._lot(lane.claim_time), lambda: self._answer(lane))

    def _lot(self, turn: float) -> float:
        """Seconds until this worker answers, where a claim took so long last time."""
        number = self._random() * self.crowd
        turn = min(max(turn, SHORTEST_TURN), LONGEST_TURN)
        return min(number, AT_ONCE) * SHORTEST_TURN + max(number - AT_ONCE, 0.0) * turn

    def _answer(self, lane: Lane) -> None:
        lane.answer, lane.answers = None, True
        self._due(lane)

    def _heard_hush(self, worker: str, queue: str) -> None:
        """Nothing was left when this worker asked. What was rung for since, others have been told to leave to it."""
        lane = self._lanes.get(queue)
        if lane is not None and self._take_back(lane) and worker == self._me:
            self._answer(lane)

    def _take_back(self, lane: Lane) -> bool:
        """Answer no more; whether that was intended."""
        timer, lane.answer = lane.answer, None
        if timer is not None:
            timer.cancel()
        return timer is not None

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
