"""The duties and how often they are due. Any number of processes may carry them out at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from headway.clock import Clock, sleep
from headway.duties.recording import Counted, Recorder
from headway.model.access import LOGIN_WINDOW
from headway.model.errors import StoreUnavailable
from headway.model.limits import Retention
from headway.observe import series
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.scripts.tend import Rescued

LOOK_EVERY = 2.5
SWEEP_EVERY = 30.0
PRUNE_EVERY = 300.0
VACUUM_EVERY = 5.0
RECORD_EVERY = 61.0
VACUUM_AFTER = 20_000
"""Ends recorded by all processes since the last vacuum, about, that make another one worth its while."""
DEAD_AFTER = 120.0
UPLOAD_PATIENCE = 86_400.0
"""Seconds for which what was uploaded waits for a job that uses it."""

log = get_logger("headway.duties")


class Tending:
    """Runs the duties of one process. `ended` tells how many jobs it has ended so far, `crowd` how many processes do as
    it does (what vacuum goes by)."""

    def __init__(  # noqa: PLR0913 - what a process brings to its duties
        self,
        holder: UUID,
        clock: Clock,
        *,
        retention: Retention,
        ended: Callable[[], int],
        on_rescued: Callable[[list[Rescued]], None],
        counted: Counted | None = None,
        crowd: Callable[[], int] = lambda: 1,
    ) -> None:
        self._holder = holder
        self._clock = clock
        self._retention = retention
        self._ended = ended
        self._crowd = crowd
        self._on_rescued = on_rescued
        self._vacuumed_at_count = 0
        self.recorder = Recorder(holder, counted)

    async def run(self, store: Store) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._every(LOOK_EVERY, lambda: self.look(store)))
            group.create_task(self._every(SWEEP_EVERY, lambda: self.sweep(store)))
            group.create_task(self._every(PRUNE_EVERY, lambda: self.prune(store)))
            group.create_task(self._every(VACUUM_EVERY, lambda: self.vacuum(store)))
            group.create_task(self._every(RECORD_EVERY, lambda: self.recorder.record(store)))

    async def look(self, store: Store) -> float | None:
        """One cheap question tells whether any of the frequent duties has something to do."""
        due = await store.look()
        while due.lapsed and (rescued := await store.rescue()):
            self._rescued(rescued)
            due = await store.look()
        if due.expired:
            series.jobs_withdrawn.add(("expired",), len(await store.expire()))
        if due.stray:
            self._taken_up(await store.take_up())
        return await store.reopen_gates() if due.closed else None

    async def sweep(self, store: Store) -> None:
        if await store.take_duty("sweep", self._holder, SWEEP_EVERY):
            mended = await store.sweep()
            if mended:
                log.warning("duties.sweep_mended", jobs=mended)
            for name in await store.bury(DEAD_AFTER):
                log.warning("duties.worker_gone", worker=name)

    async def prune(self, store: Store) -> None:
        if not await store.take_duty("prune", self._holder, PRUNE_EVERY):
            return
        removed, after_id = 0, None
        while True:
            step = await store.prune(self._retention, after_id)
            removed, after_id = removed + step.removed, step.after_id
            if after_id is None:
                break
        lines = await _until_none(lambda: store.prune_ledger(self._retention.ledger))
        audited = await _until_none(lambda: store.prune_audit(self._retention.audit))
        await store.prune_access(LOGIN_WINDOW)
        await _until_none(lambda: store.prune_uploads(UPLOAD_PATIENCE))
        if removed or lines or audited:
            log.info("duties.pruned", jobs=removed, occurrences=lines, audit=audited)

    async def vacuum(self, store: Store) -> None:
        ended = self._ended()
        if (ended - self._vacuumed_at_count) * self._crowd() < VACUUM_AFTER:
            return
        if await store.take_duty("vacuum", self._holder, VACUUM_EVERY):
            self._vacuumed_at_count = ended
            await store.vacuum()

    def _rescued(self, rescued: list[Rescued]) -> None:
        log.warning("duties.rescued", jobs=len(rescued))
        for job in rescued:
            series.jobs_rescued.add((job.queue, job.outcome))
            if job.state.terminal:
                series.jobs_finished.add((job.kind, job.queue, job.outcome))
        self._on_rescued(rescued)

    def _taken_up(self, strays: list[UUID]) -> None:
        if strays:
            log.warning("duties.schedule_lost", jobs=len(strays), help="their SCHEDULE messages have not come")

    async def _every(self, interval: float, duty: Callable[[], Awaitable[float | None]]) -> None:
        """A duty that fails is tried again at its next turn; one that knows when it is due next comes back earlier."""
        while True:
            wait: float | None = None
            try:
                wait = await duty()
            except StoreUnavailable as error:
                log.warning("duties.delayed", error=str(error))
            except Exception:
                log.exception("duties.failed")
            await sleep(self._clock, interval if wait is None else min(max(wait, 0.01), interval))


async def _until_none(step: Callable[[], Awaitable[int]]) -> int:
    """Take steps until there is nothing left to remove; how much went."""
    removed = 0
    while gone := await step():
        removed += gone
    return removed
