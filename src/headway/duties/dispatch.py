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
"""The same while a whole page waits: then workers are busy, and need no doorbell."""
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
        self._rung: dict[UUID, float] = {}
        self._look = asyncio.Event()
        self._term_ends = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        stop = await self._store.listen(self._heard)
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
        found = await self._store.outstanding(PAGE)
        now = self._clock.monotonic()
        known = {job_id: self._rung[job_id] for ids in found.due.values() for job_id in ids if job_id in self._rung}
        self._rung = known
        for queue, ids in found.due.items():
            self._ring(queue, [job_id for job_id in ids if now - known.get(job_id, -self._window) >= self._window], now)
        if any(len(ids) >= PAGE for ids in found.due.values()):
            await sleep(self._clock, CROWDED)
        again = min(self._rung.values(), default=now) + self._window - now
        return max(0.0, min(again, TERM / 2, self._window if found.next_in is None else found.next_in))

    def _ring(self, queue: str, ids: Sequence[UUID], now: float) -> None:
        bells = list(doorbells(queue, ids, SHARE))
        if bells:
            self._bus.ring(bells)
            self._rung |= dict.fromkeys(ids, now)
            log.debug("dispatch.rung", queue=queue, jobs=len(ids))

    async def _on_duty(self) -> bool:
        """Whether this process is the one that rings; asked again when half of its term is over."""
        now = self._clock.monotonic()
        if now >= self._term_ends - TERM / 2:
            taken = await self._store.take_duty("dispatch", self._holder, TERM)
            self._term_ends = now + TERM if taken else 0.0
        return now < self._term_ends

    def _heard(self, channel: str) -> None:
        """The store rings: for a queue, or for a worker that is to look at its cancels."""
        if to_worker(channel):
            self._bus.call(channel)
        else:
            self._look.set()
