"""Schedules, queues and workers as the API shows them. Jobs: `components/shapes.py`."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from headway.api.masking import masked
from headway.model.overview import QueueStats, WorkerStats
from headway.model.schedule import Misfire, Origin, Overlap
from headway.model.timetable import Fold, Gap
from headway.schedules import schedule_shape
from headway.store.scripts.schedules import Found


class ScheduleShape(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule: its body, and where it stands. One that this version can't read has `id`, `name`, `problem` only."""

    id: UUID
    name: str
    problem: str | UnsetType = UNSET
    schedule: str | dict[str, Any] | UnsetType = UNSET
    timezone: str | UnsetType = UNSET
    gap: Gap | UnsetType | None = UNSET
    fold: Fold | UnsetType | None = UNSET
    description: str | UnsetType | None = UNSET
    job: dict[str, Any] | UnsetType = UNSET
    misfire: Misfire | UnsetType = UNSET
    misfire_limit: int | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    jitter: float | UnsetType = UNSET
    start: datetime | UnsetType | None = UNSET
    end: datetime | UnsetType | None = UNSET
    paused: bool | UnsetType = UNSET
    pause_reason: str | UnsetType | None = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET
    source: str | UnsetType | None = UNSET
    code_version: str | UnsetType | None = UNSET
    next_at: datetime | UnsetType | None = UNSET
    last_at: datetime | UnsetType | None = UNSET
    ended: bool | UnsetType = UNSET
    version: int | UnsetType = UNSET
    created_at: datetime | UnsetType = UNSET
    updated_at: datetime | UnsetType = UNSET
    updated_by: str | UnsetType | None = UNSET
    warnings: tuple[str, ...] = ()


def shape_of(found: Found, warnings: tuple[str, ...] = ()) -> ScheduleShape:
    """The schedule as it is shown."""
    shape = schedule_shape(found)
    if "job" in shape:
        shape = {**shape, "job": masked(shape["job"])}
    return ScheduleShape(**shape, warnings=warnings)


class QueueShape(msgspec.Struct, frozen=True, kw_only=True):
    """A queue: what is in it, who serves it, which limits hold. Ended jobs are not counted."""

    name: str
    waiting: int
    due: int
    running: int
    cancelling: int
    blocked: int
    on_hold: int
    oldest_due: float | None
    workers: tuple[str, ...]
    paused: bool
    paused_at: datetime | None
    paused_by: str | None
    max_running: int | None
    rate: str | None
    key_max_running: int | None
    key_rate: str | None
    keep_completed: float | None
    keep_failed: float | None


def queue_shape(queue: QueueStats) -> QueueShape:
    settings, pause = queue.settings, queue.pause
    return QueueShape(
        name=queue.name,
        waiting=queue.waiting,
        due=queue.due,
        running=queue.running,
        cancelling=queue.cancelling,
        blocked=queue.blocked,
        on_hold=queue.on_hold,
        oldest_due=queue.oldest_due,
        workers=queue.workers,
        paused=settings.paused,
        paused_at=pause.since if pause else None,
        paused_by=pause.by if pause else None,
        max_running=settings.max_running,
        rate=str(settings.rate) if settings.rate else None,
        key_max_running=settings.key_max_running,
        key_rate=str(settings.key_rate) if settings.key_rate else None,
        keep_completed=settings.keep_completed,
        keep_failed=settings.keep_failed,
    )


class WorkerShape(msgspec.Struct, frozen=True, kw_only=True):
    """A worker, or a process that fires schedules: where it runs, what it serves, when it was last seen."""

    id: UUID
    name: str
    host: str
    pid: int
    queues: tuple[str, ...]
    slots: int
    fires: bool
    code_version: str | None
    started_at: datetime | None
    seen_at: datetime | None
    held: int
    silent: float
    alive: bool


def worker_shape(worker: WorkerStats) -> WorkerShape:
    return WorkerShape(
        **msgspec.structs.asdict(worker.info), held=worker.held, silent=round(worker.silent, 3), alive=worker.alive
    )
