"""WHERE: what every store promises. One method = one transaction = one arrow; batches are the normal case.

Each method either happens as a whole or not at all, and may be repeated after a failure: an id, a token or a lease
tells a repeat from a second act. Grouped by who uses it; `Store` is all of them. What the service keeps besides jobs
(people, secrets, targets, alerts) is in `service.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from headway.model.events import Event, Transition
from headway.model.filters import JobFilter
from headway.model.findings import Finding
from headway.model.history import Row as HistoryRow
from headway.model.job import (
    Artifact,
    Attempt,
    Change,
    Chunk,
    ChunkSize,
    Claim,
    Ended,
    Finish,
    JobRecord,
    Release,
    Report,
)
from headway.model.limits import Limit, QueueSettings, Retention
from headway.model.overview import QueueStats, Upkeep, WorkerStats
from headway.model.result import ResultMeta, Stored
from headway.model.states import State
from headway.model.submission import Edit, Submission
from headway.model.why import Why
from headway.model.worker import FunctionInfo, WorkerInfo
from headway.store.scripts.cancel import Verdict
from headway.store.scripts.dispatch import Outstanding
from headway.store.scripts.fire import Fired, ScheduleStats
from headway.store.scripts.gates import Limits
from headway.store.scripts.ledger import Line
from headway.store.scripts.schedules import Draft, Found, ScheduleFilter, ScheduleRecord
from headway.store.scripts.submit import Answer
from headway.store.scripts.tend import Due, Rescued, Step
from headway.store.scripts.work import Claimed, Renewal, Want
from headway.store.service import Access, Alerts, Targets, Vault

Heard = Callable[[Sequence[Event]], None]


class Jobs(Protocol):
    """For those who submit jobs and change them."""

    async def submit(self, batch: Sequence[Submission], *, partial: bool = True) -> list[Answer]:
        """Store jobs, durably; one answer each, in order. Plain ones are one statement. Not `partial`: all or none,
        and the first error is raised."""

    async def cancel(self, job_ids: Sequence[UUID], *, by: str | None, reason: str) -> list[Verdict]:
        """Waiting jobs end at once, running ones go `cancelling`, ended ones stay as they are."""

    async def retry(self, job_ids: Sequence[UUID], *, by: str | None) -> list[Verdict]:
        """Ended jobs run again, same id."""

    async def schedule(self, job_ids: Sequence[UUID], run_at: datetime | None, *, by: str | None) -> list[Verdict]:
        """Jobs on hold go on."""

    async def edit(
        self, job_id: UUID, edit: Edit, *, by: str | None, expected: Callable[[JobRecord], bool] | None = None
    ) -> JobRecord:
        """Change a job that nobody has begun. With `expected`: only if that holds of it, judged in the transaction.
        Raises JobNotFound, IllegalMove, JobChanged."""

    async def delete(self, job_ids: Sequence[UUID], *, by: str | None) -> list[Verdict]:
        """Jobs are gone, with result, output and place in de-duplication; running ones once seen stopped."""


class Work(Protocol):
    """For workers. Every write carries the claim's token and is refused when it is not the current one."""

    async def claim(self, want: Want) -> Claimed:
        """The most urgent due jobs of a queue, by priority, then time, then id."""

    async def peek(self, queues: Sequence[str]) -> dict[str, float]:
        """Seconds until the first job of each queue is due; queues without a job are left out."""

    async def renew(self, worker: WorkerInfo, ttl: float, done: Sequence[UUID], *, held: Sequence[UUID]) -> Renewal:
        """Prolong the leases that the worker holds; drop those that are done. One that it doesn't know of (of a claim
        whose answer it never got) is left to lapse."""

    async def report(self, news: Sequence[Report]) -> set[UUID]:
        """Start times and progress of running jobs; returns the ids still held."""

    async def note(self, lines: Sequence[tuple[Claim, str, str]]) -> list[bool]:
        """Add to the histories of running jobs, each of which is named once: what happened, and more about it. False
        where a job is no longer held."""

    async def append(self, parcels: Sequence[tuple[Claim, Sequence[Chunk]]]) -> list[bool]:
        """Output of running jobs, each of which is named once; False where one is no longer held."""

    async def trim(self, claim: Claim, first: int, last: int) -> None:
        """Take chunks out of the output of a running job again."""

    async def put_artifacts(self, claim: Claim, artifacts: Sequence[Artifact]) -> bool:
        """Files that a running job leaves; False when it is no longer held."""

    async def finish(self, moves: Sequence[Finish]) -> list[Ended]:
        """Jobs end; those that wait for them go on, in the same transaction. Answers in the order of the moves."""

    async def release(self, moves: Sequence[Release]) -> list[Ended]:
        """Jobs go back to wait: for a retry, later, or for another worker."""

    async def leave(self, worker_id: UUID) -> None:
        """The worker has stopped."""

    async def listen(self, on_wake: Callable[[str], None]) -> Callable[[], None]:
        """Call `on_wake(queue)` when jobs of a queue may have become claimable. A hint: may be missed or repeated.
        Returns what ends it."""


class Watching(Protocol):
    """For those who want to hear what becomes of jobs, whichever process changes them."""

    async def watch(self, heard: Heard, *, everything: bool = True) -> Callable[[], None]:
        """Call `heard` with events, on the loop that runs now, behind the commits that they tell of. At most once each;
        none at all means that some were missed: look again. Without `everything` workers needn't tell what they claim
        and end. Returns what ends it."""

    async def tell(self, changes: Sequence[Transition]) -> None:
        """News that the store doesn't tell by itself: what workers claim and end. None at all: some were left out."""


class Tending(Protocol):
    """For the duties that keep a store in order; any number of processes may do them at once."""

    async def look(self) -> Due:
        """Whether rescue, expire, reopen_gates and take_up have anything to do."""

    async def rescue(self, limit: int = 100) -> list[Rescued]:
        """Take back the jobs of lapsed leases."""

    async def take_up(self, grace: float = 5.0, limit: int = 500) -> list[UUID]:
        """Let jobs go on that a message created, and whose SCHEDULE has not come for `grace` seconds."""

    async def expire(self, limit: int = 500) -> list[UUID]:
        """Cancel jobs that did not begin in time."""

    async def reopen_gates(self) -> float | None:
        """Promote jobs blocked at limits that have room again; seconds until the next look is due."""

    async def sweep(self, grace: float = 5.0, limit: int = 500) -> int:
        """The net under promotion; returns how much had to be mended."""

    async def prune(self, retention: Retention, after_id: UUID | None, limit: int = 1000) -> Step:
        """One step of removing old ended jobs."""

    async def bury(self, age: float) -> Sequence[str]:
        """Forget workers not seen for `age` seconds."""

    async def take_duty(self, name: str, holder: UUID, ttl: float) -> bool:
        """Whether `holder` is the one to carry out this duty for the next `ttl` seconds."""

    async def add_figures(self, line_id: UUID, rows: Sequence[HistoryRow]) -> None:
        """What queues did in a minute, as one process saw it; a repeat with the same id adds nothing."""

    async def gather_figures(self) -> None:
        """Bring the lines of all processes together, those long over into longer steps, and remove the oldest."""

    async def vacuum(self) -> None:
        """Clear away what updates left behind, where the engine needs to be told."""


class Views(Protocol):
    """For those who look."""

    async def get(self, job_ids: Sequence[UUID]) -> list[JobRecord | None]: ...
    async def find(self, wanted: JobFilter) -> list[JobRecord]: ...
    async def attempts(self, job_id: UUID) -> list[Attempt]: ...
    async def children(self, job_id: UUID, limit: int = 100) -> list[UUID]:
        """Jobs that were asked to run after this one, the earliest first."""

    async def history(self, job_id: UUID) -> list[Change]: ...
    async def result(self, job_id: UUID) -> Stored | None: ...
    async def result_metas(self, job_ids: Sequence[UUID]) -> dict[UUID, ResultMeta]:
        """What is known of results, without their content; jobs without one are left out."""

    async def latest_result_of(self, source: str) -> tuple[UUID, ResultMeta] | None:
        """The newest job whose result is the content of this source; None when there is none (any more)."""

    async def chunks(
        self, job_id: UUID, attempt: int, *, stream: str | None = None, after_seq: int = -1, limit: int = 100
    ) -> list[Chunk]: ...
    async def chunk_sizes(self, job_id: UUID, attempt: int) -> list[ChunkSize]:
        """Which pieces there are, in order, without reading them."""

    async def open_job(self, key: str) -> UUID | None:
        """Any job of this key that has not ended."""

    async def ahead(self, job: JobRecord, limit: int = 1000) -> int | None:
        """How many due jobs of its queue come before this one, which is due too; None: many, or it isn't in line."""

    async def artifacts(self, job_id: UUID) -> list[Artifact]:
        """Files of a job, those of its last attempt first."""

    async def workers(self) -> list[WorkerInfo]: ...
    async def functions(self) -> list[FunctionInfo]: ...
    async def counts(self) -> dict[str, dict[State, int]]:
        """Reads every job there is: for tests. People look at `queue_stats`."""

    async def outstanding(self, limit: int = 1000, without: Sequence[str] = ()) -> Outstanding:
        """Unclaimed due jobs of all queues, up to `limit` of each and priority, and when the next is due."""

    async def now(self) -> datetime: ...
    async def queue_stats(self) -> list[QueueStats]:
        """Queues with open jobs, workers or settings. Ended jobs, however many, cost nothing."""

    async def worker_stats(self) -> list[WorkerStats]: ...
    async def ids_starting(self, prefix: str, limit: int = 10) -> list[UUID]:
        """Jobs whose id begins with these hexadecimal digits."""

    async def why(self, job_id: UUID) -> Why | None:
        """Why the job is not running now; None for an unknown one."""

    async def figures(self, since: datetime, queue: str | None = None) -> list[HistoryRow]:
        """What queues did since then, in steps of a minute or more."""

    async def upkeep(self, retention: Retention, cancel_patience: float = 60.0) -> Upkeep:
        """What the duties have left undone."""

    async def examine(self) -> list[Finding]:
        """What the engine and its settings mean for our promises."""


class Settings(Protocol):
    """For those who configure."""

    async def limits(self) -> Limits: ...
    async def set_queue(self, queue: QueueSettings, *, by: str | None = None) -> None:
        """All settings of a queue at once."""

    async def change_queue(self, name: str, changes: Mapping[str, Any], *, by: str | None) -> QueueSettings:
        """Some settings of a queue (fields of `QueueSettings`), the others stay; returns what holds now."""

    async def set_key_limit(self, key: str, limit: Limit | None) -> None: ...
    async def announce(self, functions: Sequence[FunctionInfo]) -> None: ...


class Schedules(Protocol):
    """For those who keep schedules, and for schedulers."""

    async def create_schedule(self, draft: Draft, *, by: str | None) -> ScheduleRecord:
        """A repeat is told by its id and fingerprint. Raises NameTaken, IdTaken."""

    async def change_schedule(self, draft: Draft, version: int | None, *, by: str | None) -> ScheduleRecord:
        """With a version: only if the schedule is still at it. Raises VersionConflict, NameTaken, ScheduleNotFound."""

    async def pause_schedule(self, schedule_id: UUID, *, by: str | None, reason: str | None) -> ScheduleRecord: ...
    async def resume_schedule(self, schedule_id: UUID, *, by: str | None) -> ScheduleRecord:
        """Go on from now; the ledger tells what was missed."""

    async def run_schedule(self, schedule_id: UUID, job_id: UUID, *, by: str | None) -> Answer:
        """One job of it at once."""

    async def delete_schedule(self, schedule_id: UUID, version: int | None = None) -> None:
        """With a version: only if the schedule is still at it. Raises VersionConflict, ScheduleNotFound."""

    async def declare_schedules(self, drafts: Sequence[Draft], source: str, code_version: str | None) -> list[str]:
        """What an app's code says; returns what was left alone, as sentences."""

    async def schedules(self, schedule_ids: Sequence[UUID]) -> list[Found | None]: ...
    async def find_schedules(self, wanted: ScheduleFilter) -> list[Found]: ...
    async def occurrences(self, schedule_id: UUID, *, before: datetime | None = None, limit: int = 100) -> list[Line]:
        """The ledger, latest first."""

    async def calendar(self, schedule_id: UUID) -> list[Line]:
        """The ledger by days (UTC), latest first: all times of a day that became jobs are one line, with the latest of
        them, and so are all that were skipped for one reason."""

    async def fire(self, *, previous: datetime | None = None, limit: int = 1000) -> Fired:
        """Make the jobs of due schedules, each nominal time once, however many processes do this. Raises NotFired."""

    async def put_aside(self, schedule_id: UUID, seconds: float) -> bool:
        """Leave a due schedule alone for a while, because it can't be fired; whether it still was due."""

    async def realign(self, after_id: UUID | None, limit: int = 500) -> UUID | None:
        """After the clock was set back: one step of bringing schedules back to the present."""

    async def schedulers(self) -> int:
        """How many processes fire schedules, by their signs of life."""

    async def schedule_stats(self) -> ScheduleStats:
        """All schedules at a glance."""

    async def prune_ledger(self, age: float, limit: int = 1000) -> int:
        """Remove lines of the ledger older than `age` seconds; how many went."""


class Store(Jobs, Work, Watching, Tending, Views, Settings, Schedules, Access, Vault, Targets, Alerts, Protocol):
    """The single source of truth."""

    async def open(self, patience: float | None = None) -> None:
        """Connect and check that the schema fits this code. `patience`: seconds to wait for an absent server."""

    async def migrate(self) -> list[str]:
        """Bring the schema up to date; the names of the steps taken."""

    async def close(self) -> None: ...
