"""What bears on the question why a job is not running, as a store gathers it in one transaction."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from headway.model.job import Change, JobRecord
from headway.model.limits import Limit
from headway.model.overview import Pause, WorkerStats
from headway.model.states import State

AHEAD_LIMIT = 10_000
"""Those before a job are counted up to here."""


class Other(msgspec.Struct, frozen=True):
    """Another job that stands in the way; without a state it is gone."""

    id: UUID
    name: str | None = None
    state: State | None = None

    def __str__(self) -> str:
        return f"job {self.id} ({self.name}, {self.state})" if self.state else f"job {self.id}, which is gone"


class FullLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that lets nobody in now. `opens_in`: seconds until its rate does, None when only an end can."""

    place: str
    """`the key vip`, `the queue mail`."""
    limit: Limit
    running: int = 0
    opens_in: float | None = None
    holders: tuple[Other, ...] = ()
    before: int = 0
    """Jobs that will be let in earlier."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All that bears on the question, as of one moment."""

    job: JobRecord
    now: datetime
    worker: str | None = None
    """The name of the worker that holds or held the job."""
    lease_until: datetime | None = None
    doomed: bool = False
    cancel: Change | None = None
    """The last cancel that was asked for."""
    snoozed: bool = False
    pause: Pause | None = None
    workers: tuple[WorkerStats, ...] = ()
    """Workers that have the job's queue on their list, silent ones too."""
    ahead: int = 0
    """Due jobs of the queue whose turn comes earlier, up to `AHEAD_LIMIT`."""
    full: tuple[FullLimit, ...] = ()
    waits_for: tuple[Other, ...] = ()
    function: str | None = None
    """The function that the job calls, if it is a call."""
    announced: datetime | None = None
    """When a worker last announced that function."""

    @property
    def serving(self) -> list[WorkerStats]:
        return [worker for worker in self.workers if worker.alive]
