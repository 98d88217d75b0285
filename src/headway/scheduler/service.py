"""A scheduler as a process of its own: it fires, shows that it lives, and keeps the store in order like any worker."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from headway.clock import Clock, sleep
from headway.duties.tending import Tending
from headway.model.errors import StoreUnavailable
from headway.model.limits import Retention
from headway.model.worker import WorkerInfo
from headway.observe import series
from headway.observe.logs import get_logger
from headway.observe.metrics import process_name
from headway.scheduler.scheduler import POLL, Scheduler
from headway.store.contract import Store
from headway.store.scripts.tend import Rescued

SEEN_EVERY = 10.0
"""Seconds between signs of life."""

log = get_logger("headway.scheduler")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a scheduler works."""

    name: str | None = None
    code_version: str | None = None
    retention: Retention = Retention()
    poll: float = POLL


class SchedulerService:
    """A scheduler with all that belongs to it. Its id is new with each start."""

    def __init__(
        self,
        clock: Clock,
        options: Options,
        *,
        on_rescued: Callable[[list[Rescued]], None] = lambda jobs: None,
        new_id: Callable[[], UUID] = uuid7,
    ) -> None:
        self.id = new_id()
        self.scheduler = Scheduler(clock, poll=options.poll)
        self._clock = clock
        self._options = options
        self._seen = clock.monotonic()
        self._tending = Tending(self.id, clock, retention=options.retention, ended=lambda: 0, on_rescued=on_rescued)

    @property
    def silent(self) -> float:
        """Seconds since the last sign of life that the store has taken."""
        return self._clock.monotonic() - self._seen

    def info(self) -> WorkerInfo:
        """How other processes see it: as a worker without queues."""
        return WorkerInfo(
            id=self.id,
            name=self._options.name or f"{socket.gethostname()}-{os.getpid()}",
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=(),
            slots=0,
            fires=True,
            code_version=self._options.code_version,
        )

    async def serve(self, store: Store) -> None:
        """Fire until `stop`, and end with the tick under way."""
        log.info("scheduler.started", scheduler=str(self.id))
        beside = [asyncio.create_task(self._be_seen(store)), asyncio.create_task(self._tending.run(store))]
        watch = series.heartbeat_age.watch(lambda: [((process_name(),), self.silent)])
        try:
            await self.scheduler.run(store)
        finally:
            watch()
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)
        await self._leave(store)
        log.info("scheduler.stopped", scheduler=str(self.id), jobs=self.scheduler.jobs)

    def stop(self) -> None:
        self.scheduler.stop()

    async def _be_seen(self, store: Store) -> None:
        while True:
            try:
                await store.renew(self.info(), SEEN_EVERY, [], held=[])
                self._seen = self._clock.monotonic()
            except StoreUnavailable as error:
                log.warning("scheduler.unseen", error=str(error))
            except Exception:
                log.exception("scheduler.unseen")
            await sleep(self._clock, SEEN_EVERY)

    async def _leave(self, store: Store) -> None:
        try:
            await store.leave(self.id)
        except StoreUnavailable as error:
            log.warning("scheduler.farewell_failed", error=str(error))
