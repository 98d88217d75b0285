"""What the checker remembers: every job as last committed, and whom it waits for."""

from __future__ import annotations

from uuid import UUID

import msgspec

from headway.model.states import HELD, State
from headway.model.submission import Submission

OPEN = frozenset(state for state in State if not state.terminal)


class Row(msgspec.Struct):
    """The columns of a job that rules speak about, in the order in which the triggers tell them."""

    id: UUID
    state: str
    token: int
    finished_token: int | None
    attempt: int
    failures: int
    losses: int
    waiting: int
    run_at: int
    expires_at: int | None
    finished_at: int | None
    key: str
    queue: str
    on_conflict: str
    on_parent_failure: str
    outcome: str | None
    lease_id: bytes | None
    worker_id: UUID | None
    schedule_id: UUID | None
    nominal_at: int | None

    def __post_init__(self) -> None:
        # SQLite tells ids as bytes.
        self.schedule_id = UUID(bytes=self.schedule_id) if isinstance(self.schedule_id, bytes) else self.schedule_id
        self.id = UUID(bytes=self.id) if isinstance(self.id, bytes) else self.id
        self.worker_id = UUID(bytes=self.worker_id) if isinstance(self.worker_id, bytes) else self.worker_id


class Job(msgspec.Struct):
    """A job, and what must have happened before it may begin."""

    row: Row
    previous: set[UUID]
    parents: set[UUID]
    highest: int = 0
    parent_failed: bool = False

    @property
    def open(self) -> bool:
        return self.row.state in OPEN

    @property
    def held(self) -> bool:
        return self.row.state in HELD


class Ledger:
    """All jobs of a world."""

    def __init__(self) -> None:
        self.jobs: dict[UUID, Job] = {}
        self.gone: set[UUID] = set()
        self.leases: dict[bytes, int] = {}
        """Until when each lease holds."""
        self.windows: dict[str, tuple[UUID, int]] = {}

    def add(self, row: Row, submission: Submission) -> Job:
        job = self.jobs[row.id] = Job(row, set(), set(), parent_failed=self._failed_before(submission))
        self.gone.discard(row.id)
        return job

    def remove(self, job_id: UUID) -> None:
        del self.jobs[job_id]
        self.gone.add(job_id)
        self.free_window(job_id)

    def is_open(self, job_id: UUID) -> bool:
        return job_id in self.jobs and self.jobs[job_id].open

    def open_of_key(self, key: str) -> set[UUID]:
        return {job.row.id for job in self.jobs.values() if job.row.key == key and job.open}

    def free_window(self, job_id: UUID) -> None:
        self.windows = {key: holder for key, holder in self.windows.items() if holder[0] != job_id}

    def _failed_before(self, submission: Submission) -> bool:
        parents = [self.jobs[parent].row.state for parent in submission.after if parent in self.jobs]
        return any(state in {State.FAILED, State.CANCELLED} for state in parents)
