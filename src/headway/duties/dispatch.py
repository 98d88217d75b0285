"""DISPATCH: rings on the bus for due jobs, so that workers needn't watch the store.

A job is rung for once per window, and again only if it stays unclaimed. Any number of schedulers may run this: one of
them rings, and another takes over when it is gone. What gets lost meanwhile the workers find by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from headway.bus.contract import Bus, doorbells
from headway.clock import Clock, sleep, wait_for
from headway.model.errors import StoreUnavailable
from headway.model.events import Event
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.scripts.cancel import to_worker

WINDOW = 5.0
"""Seconds after which a job that is still unclaimed is rung for again."""
PAGE = 1000
"""Jobs looked at, of each queue and priority. Whoever is woken for these claims the others too."""
SHARE = 50
"""Jobs in one doorbell, each of which wakes one worker: few enough that many jobs wake many."""
PAUSE = 0.01
"""The shortest time between two looks, in seconds; submits come in bursts."""
CROWDED = 0.25
"""The same for a queue in which a whole page waits: then its workers are busy, or gone, and need no doorbell."""
TERM = 3.0
"""Seconds for which one process is the one that rings."""

log = get_logger("headway.dispatch")


class Dispatcher:
    """Rings for one store. `holder` is the process in whose name it takes the duty."""

    def __init__(self, holder: UUID, store: Store, bus: Bus, clock: Clock, *, window: float = WINDOW) -> None:
        self._holder = holder
        self._store = store
        self._bus = bus
        self._clock = clock
        self._window = window
        self._rung: dict[str, dict[UUID, float]] = {}
        """When each due job was rung for, by queue."""
        self._resting: dict[str, float] = {}
        """Until when crowded queues are not looked at."""
        self._look = asyncio.Event()
        self._term_ends = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        stop = await self._store.listen(self._heard)
        try:
            await self._serve()
        finally:
            stop()

    async def _serve(self) -> None:
        stop = await self._store.watch(self._pass_on, everything=False)
        try:
            while True:
                self._look.clear()
                wait = await self._turn()
                await sleep(self._clock, min(wait, PAUSE))
                await wait_for(self._clock, self._look, wait)
        finally:
            stop()

    async def _turn(self) -> float:
        """Seconds until the next one, if nothing rings before."""
        try:
            return await self.dispatch() if await self._on_duty() else TERM / 2
        except StoreUnavailable as error:
            log.warning("dispatch.delayed", error=str(error))
            return 1.0

    async def dispatch(self) -> float:
        """Ring for what is due; seconds until something else will be, or has to be rung for again."""
        began = self._clock.monotonic()
        resting = {queue: until for queue, until in self._resting.items() if until > began}
        found = await self._store.outstanding(PAGE, without=list(resting))
        now = self._clock.monotonic()
        rung = {queue: self._ring(queue, ids, now) for queue, ids in found.due.items()}
        self._resting = resting | {queue: now + CROWDED for queue, ids in found.due.items() if len(ids) >= PAGE}
        again = [min(at.values()) + self._window for queue, at in rung.items() if queue not in self._resting]
        self._rung = {queue: self._rung.get(queue, {}) for queue in resting} | rung
        wait = min([*again, *self._resting.values(), now + TERM / 2]) - now
        return max(0.0, wait if found.next_in is None else min(wait, found.next_in))

    def _ring(self, queue: str, ids: Sequence[UUID], now: float) -> dict[UUID, float]:
        """Ring for those of these due jobs whose window is over; when each was rung for last."""
        before = self._rung.get(queue, {})
        rung = {job_id: before[job_id] for job_id in ids if now - before.get(job_id, -self._window) < self._window}
        bells = list(doorbells(queue, [job_id for job_id in ids if job_id not in rung], SHARE))
        if bells:
            self._bus.ring(bells)
            log.debug("dispatch.rung", queue=queue, jobs=len(ids) - len(rung))
        return dict.fromkeys(ids, now) | rung

    async def _on_duty(self) -> bool:
        """Whether this process is the one that rings; asked again when half of its term is over."""
        now = self._clock.monotonic()
        if now >= self._term_ends - TERM / 2:
            taken = await self._store.take_duty("dispatch", self._holder, TERM)
            self._term_ends = now + TERM if taken else 0.0
        return now < self._term_ends

    def _pass_on(self, events: Sequence[Event]) -> None:
        """What the store tells of jobs goes out on the bus, by the one that is on duty. Workers tell the rest there."""
        if self._clock.monotonic() < self._term_ends:
            self._bus.emit(events)

    def _heard(self, channel: str) -> None:
        """The store rings: for a queue, or for a worker that is to look at its cancels."""
        if to_worker(channel):
            self._bus.call(channel)
        else:
            self._look.set()
