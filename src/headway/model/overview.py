"""Queues and workers as they stand at one moment."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from headway.model.limits import QueueSettings
from headway.model.worker import WorkerInfo

SILENT_AFTER = 60.0
"""Seconds without a sign of life after which a worker no longer counts as serving its queues. It gives one at a third
of its lease, and rows of workers that are gone are removed by those that are left."""


class Pause(msgspec.Struct, frozen=True):
    """Since when a queue is paused and by whose word, as far as that was told."""

    since: datetime | None = None
    by: str | None = None


class WorkerStats(msgspec.Struct, frozen=True, kw_only=True):
    """A worker, what it holds, and how long it has been silent."""

    info: WorkerInfo
    held: int
    """Jobs in its hands: running ones, and some that are to begin at once."""
    silent: float

    @property
    def alive(self) -> bool:
        return self.silent <= SILENT_AFTER

    def serves(self, queue: str) -> bool:
        return self.alive and queue in self.info.queues


class QueueStats(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a queue, ended jobs apart: those are history, and counting them would read it all."""

    name: str
    settings: QueueSettings
    waiting: int = 0
    """Jobs that may run by themselves when their time and turn come; due ones among them."""
    due: int = 0
    running: int = 0
    cancelling: int = 0
    blocked: int = 0
    on_hold: int = 0
    oldest_due: float | None = None
    """Seconds since the first of the due jobs became due."""
    pause: Pause | None = None
    workers: tuple[str, ...] = ()
    """Names of the workers that serve it."""

    @property
    def open(self) -> int:
        """Jobs that have not ended."""
        return self.waiting + self.running + self.cancelling + self.blocked + self.on_hold


class Stuck(msgspec.Struct, frozen=True):
    """A job whose cancel was asked for long ago."""

    job_id: UUID
    name: str
    worker: str | None
    seconds: float


class Upkeep(msgspec.Struct, frozen=True, kw_only=True):
    """What workers have to see to, as far as it is left undone."""

    lapsed: int
    """Leases past their end."""
    lapsed_for: float
    """Seconds since the first of them ended."""
    stuck: tuple[Stuck, ...]
    overdue: int
    """Of the oldest jobs, those that should have been removed."""
    oldest_created: datetime | None
