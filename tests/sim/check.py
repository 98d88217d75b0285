"""The checker: sees every change of every row, as committed, and knows what may never happen.

It looks at the database by triggers, so no code of the engine has to be trusted to tell. Invariants are named as in
the trust report: I1 no loss, I2 one effect, I3 tokens, I4 fence, I5 attempts, I7 limits and keys, I8 cancel, I9 order,
I11 liveness, I12 each nominal time of a schedule once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from headway.model.due import Occurrence
from headway.model.errors import HeadwayError
from headway.model.job import Ended, Finish, Release
from headway.model.limits import Limit, QueueSettings
from headway.model.retry import Retry
from headway.model.schedule import Schedule
from headway.model.states import HELD, State, may_follow
from headway.model.submission import Accepted, OnConflict, OnParentFailure, Submission
from headway.store.scripts import work
from headway.store.scripts.fire import schedule_job
from headway.store.sqlite.rows import microseconds
from tests.sim.ground import Ground
from tests.sim.ledger import Job, Ledger, Row
from tests.sim.loop import START

T = TypeVar("T")
Run = tuple[str, UUID, int]
"""A job being run: by which process, which job, under which token."""

_COLUMNS = Row.__struct_fields__
_CLAIMS = {"claim", "claim_limited"}
_WORKERS_MOVES = {"complete", "finish", "release"}
_SUBMITS = {"plain", "keyed", "whole", "fire"}
_UNCHARGED = {"snooze", "give_back", "parked"}


class Violation(BaseException):
    """The engine did what it must never do."""


class Rules(msgspec.Struct):
    """The limits in force in one world."""

    queues: dict[str, QueueSettings] = {}
    keys: dict[str, Limit] = {}


class Act(msgspec.Struct):
    """The transaction under way."""

    process: str
    identity: UUID | None
    name: str
    arguments: Mapping[str, Any]
    rows: list[tuple[Any, ...]]
    leases: dict[bytes, int | None]
    """Until when leases hold now; None for those it removed."""


class Checker:
    """Follows one world. Raises `Violation`, at once where it can, at the end where it must."""

    def __init__(self, now: Callable[[], int], rules: Rules) -> None:
        self._now = now
        self._rules = rules
        self.ledger = Ledger()
        self.trace: list[tuple[Any, ...]] = []
        self.counts: dict[str, int] = {}
        self.submissions: dict[UUID, Submission] = {}
        self.acknowledged: set[UUID] = set()
        self.cancel_asked: set[UUID] = set()
        self.delete_asked: set[UUID] = set()
        self.retry_asked: set[UUID] = set()
        self.runs: set[Run] = set()
        self.scheduled: dict[UUID, tuple[Schedule, Submission]] = {}
        """Schedules, with the job that each makes."""
        self.fired: set[tuple[UUID, datetime]] = set()
        """Nominal times of schedules that became jobs."""
        self.violation: str | None = None
        self._act: Act | None = None
        self._last: Act | None = None
        self._unanswered: set[bytes] = set()
        self._parents_failed: list[tuple[UUID, UUID]] = []

    # What it hears

    def watch(self, ground: Ground) -> None:
        """Be told of every change in the database."""
        ground.be_watched(self, _COLUMNS)

    def tell(self, *event: Any) -> None:
        """A line of the trace."""
        if len(event) > 1 and event[1] in {"fault", "crash", "pause"}:
            self.count(event[1])
        self.trace.append((self._now(), *event))

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def begin(self, process: str, identity: UUID | None, name: str, arguments: Mapping[str, Any]) -> None:
        self._act = Act(process, identity, name, dict(arguments), [], {})

    @property
    def last_leases(self) -> Iterable[bytes]:
        """Those that the last transaction has changed."""
        return self._last.leases if self._last is not None else ()

    def unanswered(self, leases: Iterable[bytes]) -> None:
        """Their transaction happened, but whoever asked for it never hears of it."""
        self._unanswered.update(leases)

    def roll_back(self) -> None:
        self._act = None

    def commit(self, result: object) -> None:
        """The transaction is durable: now everything it did is held against the rules."""
        act, self._act = self._act, None
        assert act is not None
        self._last = act
        self.count("commits")
        if act.rows or act.name not in {"peek", "script", "limits"}:
            self.tell(act.process, act.name, [_brief(row) for row in act.rows])
        if act.name == "retry":
            self._replaced_by_retry(act.arguments["job_ids"])
        for kind, *values in act.rows:
            self._changed(act, kind, Row(*values))
        for parent, child in self._parents_failed:
            self._parent_failed(parent, child)
        self._parents_failed.clear()
        self._check_leases(act)
        if act.name == "complete" and result:
            result = work.completed(act.arguments["moves"])
        if act.name in _WORKERS_MOVES and isinstance(result, list):
            self._answered(act, result)
        if act.name == "sweep" and result:
            self.fail("sweep", f"the sweep had to mend {result}")

    def _check_leases(self, act: Act) -> None:
        for lease_id, until in act.leases.items():
            if until is not None:
                self.ledger.leases[lease_id] = until
                continue
            self.ledger.leases.pop(lease_id, None)
            for job in self.ledger.jobs.values():
                if job.held and job.row.lease_id == lease_id:
                    self.fail("I11", f"{act.name} dropped the lease of {job.row.id}: nobody will ever rescue it")

    def run_began(self, run: Run) -> None:
        self.tell(run[0], "run", str(run[1])[-6:], run[2])
        self.count("runs")
        self.runs.add(run)

    def run_ended(self, run: Run) -> None:
        self.runs.discard(run)

    def answered(self, job: Submission, answer: Accepted | HeadwayError) -> None:
        """A submitter was answered: what it was told must be true."""
        if isinstance(answer, HeadwayError):
            self.count("refused")
            return
        self.acknowledged.add(answer.job_id)
        if answer.job_id not in self.ledger.jobs and answer.job_id not in self.ledger.gone:
            self.fail("I1", f"acknowledged but not stored: {answer.job_id}")
        if not answer.deduplicated and answer.job_id != job.id:
            self.fail("I1", f"{job.id} was answered with {answer.job_id}")

    def left(self, worker: UUID, *, running: int) -> None:
        """A worker has stopped in good order: nothing may be in its hands."""
        held = [job.row for job in self.ledger.jobs.values() if job.row.worker_id == worker and job.held]
        held = [row for row in held if self.ledger.leases.get(row.lease_id or b"", 0) > self._now()]
        known = [row.id for row in held if row.lease_id not in self._unanswered]
        if len(known) > running:
            self.fail("drain", f"worker {worker} stopped in good order, but holds {known}")

    # What it holds against it

    def fail(self, rule: str, message: str) -> None:
        """The first violation counts; what follows from it is noise."""
        self.tell("VIOLATION", rule, message)
        self.violation = self.violation or f"{rule}: {message}"
        raise Violation(self.violation)

    def row(self, kind: str, *values: Any) -> None:
        if self._act is not None:
            self._act.rows.append((kind, *values))

    def lease(self, lease_id: bytes, until: int | None) -> None:
        if self._act is not None:
            self._act.leases[lease_id] = until

    def _changed(self, act: Act, kind: str, row: Row) -> None:
        self.count(f"job {kind}")
        job = self.ledger.jobs.get(row.id)
        if kind == "delete":
            self._deleted(row)
        elif job is None:
            self._inserted(act, row)
        else:
            old, job.row = job.row, row
            self._moved(act, job, old)
        if kind != "delete":
            self._consistent(row)

    def _inserted(self, act: Act, row: Row) -> None:
        if act.name not in _SUBMITS:
            self.fail("I1", f"{act.name} made a job")
        if act.name == "fire":
            self._fired(row)
        submission = self.submissions[row.id]
        job = self.ledger.add(row, submission)
        self._judge_conflict(job, submission.on_conflict)
        job.parents = {parent for parent in submission.after if self.ledger.is_open(parent)}
        self._take_window(job, submission)

    def _fired(self, row: Row) -> None:
        """A schedule made this job: of a time that has come, and of none that had its job before."""
        if row.schedule_id is None or row.nominal_at is None:
            self.fail("I12", f"{row.id} was fired by no schedule")
            return
        nominal = START + timedelta(microseconds=row.nominal_at - microseconds(START))
        schedule, template = self.scheduled[row.schedule_id]
        if row.nominal_at > self._now():
            self.fail("I12", f"{schedule.name} fired {nominal} before its time")
        if (row.schedule_id, nominal) in self.fired:
            self.fail("I12", f"{schedule.name} fired {nominal} twice")
        self.fired.add((row.schedule_id, nominal))
        occurrence = Occurrence(nominal, schedule.run_at(nominal))
        self.submissions[row.id] = schedule_job(schedule, template, row.id, occurrence)

    def _judge_conflict(self, job: Job, policy: str) -> None:
        """Whom the job must wait for, by its key."""
        others = self.ledger.open_of_key(job.row.key) - {job.row.id}
        if policy in {OnConflict.REJECT, OnConflict.SKIP} and others:
            self.fail("I7", f"{job.row.id} was let in beside {others} with {policy}")
        if policy == OnConflict.WAIT:
            job.previous = others
        if policy == OnConflict.REPLACE:
            job.previous = {other for other in others if self.ledger.jobs[other].held}
            self.cancel_asked |= others

    def _replaced_by_retry(self, job_ids: list[UUID]) -> None:
        """A person's retry judges conflicts anew, and `replace` may end others before the job itself comes back."""
        for job in (self.ledger.jobs[job_id] for job_id in job_ids if job_id in self.ledger.jobs):
            if job.row.on_conflict == OnConflict.REPLACE and not job.open:
                self.cancel_asked |= self.ledger.open_of_key(job.row.key)
                self.cancel_asked.update(job_ids)

    def _take_window(self, job: Job, submission: Submission) -> None:
        if not submission.dedupe or submission.run_at or submission.delay or submission.hold:
            return
        holder = self.ledger.windows.get(submission.dedupe.key)
        if holder and holder[1] > self._now():
            self.fail("I13", f"{job.row.id} and {holder[0]} within one window of {submission.dedupe.key}")
        self.ledger.windows[submission.dedupe.key] = (
            job.row.id,
            self._now() + round(submission.dedupe.window * 1_000_000),
        )

    def _deleted(self, row: Row) -> None:
        if row.id not in self.delete_asked:
            self.fail("I1", f"{row.id} vanished, and nobody asked for it")
        if row.state in HELD:
            self.fail("I8", f"{row.id} was deleted while it was {row.state}")
        if self.ledger.jobs[row.id].open:
            self._ended(self.ledger.jobs[row.id], completed=False)
        self.ledger.remove(row.id)

    def _moved(self, act: Act, job: Job, old: Row) -> None:
        new = job.row
        if new.token < old.token:
            self.fail("I3", f"the token of {new.id} went back from {old.token} to {new.token}")
        if old.state == new.state:
            self._stayed(act, old, new)
            return
        if not may_follow(State(old.state), State(new.state)):
            self.fail("I2", f"{new.id} went from {old.state} to {new.state} by {act.name}")
        if new.state == State.RUNNING:
            self._claimed(act, job, old)
        elif old.state in HELD and new.state != State.CANCELLING:
            self._let_go(act, job, old)
        elif State(old.state).terminal:
            self._reopened(act, job)
        if State(new.state).terminal:
            self._check_end(job)
            self._ended(job, completed=new.state == State.COMPLETED)

    def _stayed(self, act: Act, old: Row, new: Row) -> None:
        if State(new.state).terminal and (old.finished_token, old.finished_at, old.outcome, old.token) != (
            new.finished_token,
            new.finished_at,
            new.outcome,
            new.token,
        ):
            self.fail("I2", f"{new.id} was ended a second time by {act.name}")
        if new.state in HELD and old.token != new.token:
            self.fail("I3", f"{new.id} changed hands while {new.state}, by {act.name}")
        if (old.failures, old.attempt, old.losses) != (new.failures, new.attempt, new.losses):
            self.fail("I5", f"{act.name} changed the counts of {new.id}")

    def _claimed(self, act: Act, job: Job, old: Row) -> None:
        row, now = job.row, self._now()
        self.count("claims")
        if act.name not in _CLAIMS or row.worker_id != act.identity:
            self.fail("I3", f"{act.name} of {act.process} gave {row.id} to {row.worker_id}")
        if row.token <= old.token or row.token <= job.highest:
            self.fail("I3", f"{row.id} was claimed under the token {row.token}, used before")
        job.highest = row.token
        if row.run_at > now:
            self.fail("time", f"{row.id} began {(row.run_at - now) / 1e6} s before its time")
        if row.expires_at is not None and row.expires_at <= now:
            self.fail("time", f"{row.id} began after its time was over")
        if job.previous or job.parents:
            self.fail("I9", f"{row.id} began before {job.previous or job.parents} ended")
        if row.attempt != old.attempt + 1:
            self.fail("I5", f"the claim of {row.id} was not counted as an attempt")
        self._check_limits(row)

    def _check_limits(self, row: Row) -> None:
        settings = self._rules.queues.get(row.queue, QueueSettings(name=row.queue))
        held = [job.row for job in self.ledger.jobs.values() if job.held]
        of_queue = [other for other in held if other.queue == row.queue]
        of_both = [other for other in of_queue if other.key == row.key]
        of_key = [other for other in held if other.key == row.key]
        for name, running, limit in (
            (f"queue {row.queue}", of_queue, settings.max_running),
            (f"key {row.key} in queue {row.queue}", of_both, settings.key_max_running),
            (f"key {row.key}", of_key, self._rules.keys.get(row.key, Limit()).max_running),
        ):
            if limit is not None and len(running) > limit:
                self.fail("I7", f"{len(running)} jobs of {name} at once, the limit is {limit}")

    def _let_go(self, act: Act, job: Job, old: Row) -> None:
        """A held job leaves its worker's hands: by the holder's own move, or because its lease lapsed."""
        row = job.row
        if act.name in _WORKERS_MOVES:
            named = [move for move in act.arguments["moves"] if move.job_id == row.id]
            current = [move for move in named if move.token == old.token]
            self._check_move(act, row, old, next(iter(current or named), None))
        elif act.name == "rescue":
            self.count("rescues")
            if self.ledger.leases.get(old.lease_id or b"", 0) > self._now():
                self.fail("I3", f"{row.id} was taken from {old.worker_id}, whose lease had not lapsed")
            if row.token <= old.token:
                self.fail("I4", f"{row.id} was taken back, but its token lives on")
        else:
            self.fail("I2", f"{act.name} took {row.id} from its worker")

    def _check_move(self, act: Act, row: Row, old: Row, move: Finish | Release | None) -> None:
        if move is None:
            self.fail("I4", f"{act.name} of {act.process} moved {row.id}, which it did not name")
            return
        if move.token != old.token or old.worker_id != act.identity:
            self.fail("I4", f"{act.process} moved {row.id} by the token {move.token}, the current is {old.token}")
        if (act.process, row.id, move.token) in self.runs:
            self.fail("I8", f"{act.process} ended {row.id} while it still ran there")
        if row.finished_token != move.token:
            self.fail("I4", f"{row.id} does not remember who ended it")
        if isinstance(move, Release):
            if row.token <= old.token:
                self.fail("I4", f"{row.id} was given back, but its token lives on")
            if row.attempt != old.attempt - (move.reason in _UNCHARGED):
                self.fail("I5", f"{row.id}: {move.reason} left {row.attempt} attempts of {old.attempt}")
            if row.failures != old.failures + (move.reason == "retry"):
                self.fail("I5", f"{row.id}: {move.reason} left {row.failures} failures of {old.failures}")

    def _reopened(self, act: Act, job: Job) -> None:
        if act.name != "retry" or job.row.id not in self.retry_asked:
            self.fail("I2", f"{act.name} brought {job.row.id} back, and nobody asked for it")
        self.count("person's retries")
        job.parents = set()
        job.previous = set()
        self._judge_conflict(job, job.row.on_conflict)

    def _check_end(self, job: Job) -> None:
        """It ended as it may: not cancelled unless somebody wished it, not failed unless it did."""
        row, submission = job.row, self.submissions[job.row.id]
        self.count(f"ended {row.outcome}")
        most = (submission.retry or Retry()).max_attempts
        if row.failures > most:
            self.fail("I5", f"{row.id} failed {row.failures} times of {most}")
        if row.outcome == "failed" and row.failures < most and '"doom"' not in submission.payload:
            self.fail("I5", f"{row.id} was given up after {row.failures} failures of {most}")
        wished = '"own_wish"' in submission.payload or row.id in self.cancel_asked | self.delete_asked
        if row.outcome == "cancelled" and not wished and not job.parent_failed:
            self.fail("I8", f"{row.id} was cancelled, and nobody asked for it")

    def _ended(self, job: Job, *, completed: bool) -> None:
        """Those that wait for it need wait no more; those that need its success are to be cancelled."""
        row = job.row
        for other in self.ledger.jobs.values():
            other.previous.discard(row.id)
            if row.id in other.parents:
                other.parents.discard(row.id)
                if not completed:
                    other.parent_failed = True
                    self._parents_failed.append((row.id, other.row.id))
        if not completed:
            self.ledger.free_window(row.id)

    def _parent_failed(self, parent: UUID, child: UUID) -> None:
        job = self.ledger.jobs.get(child)
        if job and job.open and job.row.on_parent_failure == OnParentFailure.CANCEL:
            self.fail("after", f"{child} is {job.row.state} although {parent} did not complete")

    def _answered(self, act: Act, answers: list[Ended]) -> None:
        """Refused is what is stale, and nothing else; accepted is what is stored."""
        for move, answer in zip(act.arguments["moves"], answers, strict=True):
            job = self.ledger.jobs.get(move.job_id)
            recorded = job is not None and job.row.finished_token == move.token
            rightful = job is not None and job.held and job.row.token == move.token
            if not answer.accepted:
                self.count("fenced")
                if recorded or rightful:
                    self.fail("I4", f"a rightful {act.name} of {move.job_id} was refused")
            elif job is not None and not recorded:
                self.fail("I4", f"the {act.name} of {move.job_id} was accepted, but is not stored")

    def _consistent(self, row: Row) -> None:
        waiting = {State.SCHEDULED: 1, State.BLOCKED: 2, State.CREATING: 2}.get(State(row.state), 0)
        if row.waiting != waiting or (row.finished_at is not None) != State(row.state).terminal:
            self.fail("row", f"{row.id} is {row.state} with waiting {row.waiting}, finished_at {row.finished_at}")


def _brief(values: tuple[Any, ...]) -> str:
    kind, job_id, state, token, *_ = values
    return f"{kind} {job_id.hex()[-6:]} {state} {token}"
