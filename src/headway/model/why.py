"""Why a job is not running now: from facts to one sentence, and what to do about it. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

import msgspec

from headway.model.facts import AHEAD_LIMIT, Facts, FullLimit
from headway.model.job import NOT_HERE, SUSPECT_LOSSES, JobRecord
from headway.model.states import NO_CODE, PARENT_FAILED, Outcome, State
from headway.model.words import ago, count, dated, duration, listed

CANCEL_PATIENCE = 60.0
"""Seconds after which a cancel that was not carried out deserves a warning."""
_WAITING = frozenset({State.CREATING, State.SCHEDULED, State.BLOCKED})
_SOON = 3600.0


class Reason(StrEnum):
    """What a job waits for, for programs."""

    ON_HOLD = "on_hold"
    NOT_SUBMITTED = "not_submitted"
    NOT_DUE = "not_due"
    SNOOZED = "snoozed"
    RETRY = "retry"
    LOST = "lost"
    PARKED = "parked"
    PAUSED = "paused"
    NO_WORKER = "no_worker"
    BUSY = "busy"
    NEXT = "next"
    LIMIT = "limit"
    OTHER_JOB = "other_job"
    PARENT_FAILED = "parent_failed"
    EXPIRED = "expired"
    RUNNING = "running"
    LEASE_LAPSED = "lease_lapsed"
    CANCELLING = "cancelling"
    ENDED = "ended"


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: for programs, for people, what to do, and what else is worth knowing."""

    reason: Reason
    sentence: str
    advice: str | None = None
    warnings: tuple[str, ...] = ()


def explain(facts: Facts) -> Why:
    """Why the job is not running now, or that it is, or how it ended."""
    reason, sentence, advice = _reason(facts)
    return Why(reason=reason, sentence=sentence, advice=advice, warnings=tuple(_warnings(facts, reason)))


_Told = tuple[Reason, str, str | None]


def _reason(facts: Facts) -> _Told:
    state = facts.job.state
    match state:
        case State.COMPLETED | State.FAILED | State.CANCELLED:
            return _ended(facts)
        case State.RUNNING:
            return _running(facts)
        case State.CANCELLING:
            return _cancelling(facts)
        case State.CREATING:
            return _expired(facts) or _creating(facts)
        case State.BLOCKED:
            return _expired(facts) or _blocked(facts)
        case State.SCHEDULED:
            return _expired(facts) or _later(facts) or _due(facts)
        case _:
            assert_never(state)


def _ended(facts: Facts) -> _Told:
    job, command = facts.job, f"To run it again: headway jobs retry {facts.job.id}"
    when = dated(job.finished_at or facts.now, facts.now)
    if job.outcome is Outcome.EXPIRED:
        limit = f" by {dated(job.expires_at, facts.now)}" if job.expires_at else ""
        return Reason.EXPIRED, f"The job expired: it had not begun{limit}.", command
    if job.state is State.COMPLETED:
        return Reason.ENDED, f"The job completed at {when} with attempt {job.attempt}{_ran(job)}.", None
    asked = f" on request of {facts.cancel.by}" if facts.cancel and facts.cancel.by else ""
    tried = f" with attempt {job.attempt}{_ran(job)}" if job.attempt else " before it began"
    words = "was cancelled" if job.state is State.CANCELLED else f"ended as failed, outcome {job.outcome},"
    return Reason.ENDED, f"The job {words}{asked} at {when}{tried}{_because(job)}.", command


def _running(facts: Facts) -> _Told:
    job, since = facts.job, facts.job.started_at or facts.job.claimed_at or facts.now
    if facts.lease_until is None or facts.lease_until <= facts.now:
        lapsed = f"lapsed {ago(facts.lease_until, facts.now)}" if facts.lease_until else "is gone"
        told = f"The job ran on worker {_worker(facts)}, whose lease {lapsed}: it crashed, was killed, or froze."
        return Reason.LEASE_LAPSED, told, "Any live worker takes the job back within seconds; see that one runs."
    verb = "runs on" if job.started_at else "is in the hands of"
    told = f"The job {verb} worker {_worker(facts)} since {dated(since, facts.now)}, attempt {job.attempt}"
    return Reason.RUNNING, f"{told}{_progress(job)}.", None


def _cancelling(facts: Facts) -> _Told:
    asked, since = facts.cancel, ""
    if asked is not None:
        since = f" since {dated(asked.at, facts.now)}, asked by {asked.by or 'a program'} because: {asked.detail}"
    told = f"The job is being cancelled{since}; worker {_worker(facts)} has not reported its end yet"
    told += f"{_progress(facts.job)}."
    advice = (
        "A coroutine stops at its next await, a thread when it looks at current().cancelled, a child process at once."
    )
    return Reason.CANCELLING, told, advice


def _creating(facts: Facts) -> _Told:
    if facts.job.hold:
        told = f"The job is on hold since {dated(facts.job.created_at, facts.now)} until it is scheduled."
        return Reason.ON_HOLD, told, f"To let it go: headway jobs release {facts.job.id}"
    told = f"The job was stored {ago(facts.job.created_at, facts.now)} and is not submitted for processing yet."
    return Reason.NOT_SUBMITTED, told, "Its SCHEDULE message is on its way; after 5 s a worker's sweep does it."


def _blocked(facts: Facts) -> _Told:
    job, others = facts.job, listed([str(other) for other in facts.waits_for])
    if job.wait_reason == PARENT_FAILED:
        told = f"The job was to run after {others or 'another'}, which did not complete, and is held back."
        return Reason.PARENT_FAILED, told, f"Decide: headway jobs release {job.id}, or headway jobs cancel {job.id}"
    if facts.waits_for:
        role = "in its line of the key " + job.key if job.wait_reason != "after" else "after which it is to run"
        return Reason.OTHER_JOB, f"The job waits for {others}, {role}.", "It goes on by itself when that has ended."
    if facts.full:
        return _limited(facts.full[0])
    told = "The job waits for nothing any more and will be let go by the next look of a worker."
    return Reason.NEXT, told, None if facts.serving else _start_worker(facts)


def _later(facts: Facts) -> _Told | None:
    job, when = facts.job, dated(facts.job.run_at, facts.now)
    if job.wait_reason == NO_CODE:
        told = f"The job is parked: no worker that took it has {_code(facts)}.{_lacking(job)}"
        return Reason.PARKED, told, _start_worker(facts)
    if job.run_at <= facts.now:
        return None
    now = f"To run it now: headway jobs release {job.id} --at now"
    if facts.snoozed:
        return Reason.SNOOZED, f"The job asked to be run later: it is due again at {when}.", now
    if job.outcome is Outcome.LOST:
        told = f"The job lost its worker {count(job.losses, 'time')} and is tried again at {when}"
        alone = ", alone in a process of its own" if job.losses >= SUSPECT_LOSSES else ""
        return Reason.LOST, f"{told}{alone}.", now
    if job.failures:
        most = f" of {job.retry.max_attempts}" if job.retry else ""
        return Reason.RETRY, f"The job is tried again at {when} after failure {job.failures}{most}{_because(job)}.", now
    return Reason.NOT_DUE, f"The job is not due until {when}.", now


def _due(facts: Facts) -> _Told:
    queue = facts.job.queue
    if facts.pause is not None:
        since = f" since {dated(facts.pause.since, facts.now)}" if facts.pause.since else ""
        by = f" by {facts.pause.by}" if facts.pause.by else ""
        return Reason.PAUSED, f"The queue {queue} is paused{since}{by}.", f"To go on: headway queues resume {queue}"
    if not facts.serving:
        last = min(facts.workers, key=lambda worker: worker.silent, default=None)
        seen = f" (the last one, {last.info.name}, was seen {duration(last.silent)} ago)" if last else ""
        return Reason.NO_WORKER, f"No worker serves the queue {queue}{seen}.", _start_worker(facts)
    if facts.full:
        return _limited(facts.full[0])
    return _in_line(facts)


def _in_line(facts: Facts) -> _Told:
    queue, workers, ahead = facts.job.queue, facts.serving, _ahead(facts.ahead)
    slots, held = sum(worker.info.slots for worker in workers), sum(worker.held for worker in workers)
    who = f"the worker that serves the queue {queue}"
    if len(workers) > 1:
        who = f"the {len(workers)} workers that serve the queue {queue}"
    more = f"Wait, give it a higher priority, or start more workers or slots: headway worker … --queue {queue}=N"
    if held >= slots:
        busy = f"All {slots} slots of {who} are busy" if slots > 1 else f"The only slot of {who} is busy"
        return Reason.BUSY, f"{busy}, and {ahead} before it.", more
    shared = sorted({name for worker in workers for name in worker.info.queues if len(worker.info.queues) > 1})
    if held and shared:
        # Workers tell the slots of all their queues in one number.
        told = f"The job is due and {ahead} before it; {who}, with {slots} slots for {listed(shared)} together,"
        return Reason.BUSY, f"{told} {'holds' if len(workers) == 1 else 'hold'} {count(held, 'job')}.", more
    told = f"The job is due, {ahead} before it, and {who} should take it at once."
    return Reason.NEXT, told, "If it stays like this for more than a few seconds: headway doctor"


def _limited(full: FullLimit) -> _Told:
    before = f", {_ahead(full.before)} before it there" if full.before else ""
    rule = f"max_running {full.limit.max_running} is reached by {listed([str(job) for job in full.holders])}"
    if full.opens_in is not None:
        rule = f"rate {full.limit.rate} is used up and opens again in {duration(full.opens_in)}"
    advice = "It goes on by itself; to change the limit: headway queues set, or app.limit() for a single key"
    return Reason.LIMIT, f"The job waits at the limit of {full.place}: {rule}{before}.", advice


def _expired(facts: Facts) -> _Told | None:
    ends = facts.job.expires_at
    if ends is None or ends > facts.now:
        return None
    told = f"The job expired: it had not begun by {dated(ends, facts.now)}, and the next look of a worker cancels it."
    return Reason.EXPIRED, told, None if facts.serving else _start_worker(facts)


def _warnings(facts: Facts, reason: Reason) -> list[str]:
    job, waits = facts.job, facts.job.state in _WAITING
    asked = (facts.now - facts.cancel.at).total_seconds() if facts.cancel else 0.0
    left = (job.expires_at - facts.now).total_seconds() if job.expires_at else -1.0
    told = [
        (waits and facts.pause is not None and reason is not Reason.PAUSED, f"the queue {job.queue} is paused"),
        (waits and not facts.serving and reason is not Reason.NO_WORKER, f"no worker serves the queue {job.queue}"),
        (
            waits and facts.function is not None and facts.announced is None and reason is not Reason.PARKED,
            f"no worker has announced the function {facts.function}",
        ),
        (waits and 0 < left <= _SOON, f"the job expires in {duration(left)} if it has not begun by then"),
        (not job.state.terminal and job.losses > 0, f"its worker was lost {count(job.losses, 'time')}"),
        (
            job.state is State.CANCELLING and asked > CANCEL_PATIENCE,
            f"the cancel has not been carried out for {duration(asked)}",
        ),
        (facts.doomed, "the job is removed as soon as it has ended"),
    ]
    return [text for holds, text in told if holds]


def _code(facts: Facts) -> str:
    if facts.function is None:
        return f"the code for jobs of kind {facts.job.kind}"
    known = f"last announced {ago(facts.announced, facts.now)}" if facts.announced else "never announced"
    return f"the code for the function {facts.function} ({known}); the next try is {ago(facts.job.run_at, facts.now)}"


def _lacking(job: JobRecord) -> str:
    """What the last worker that took a parked job said about it."""
    return f" The last one said: {job.error.message}." if job.error and job.error.type == NOT_HERE else ""


def _start_worker(facts: Facts) -> str:
    return f"Start a worker that has the code: headway worker --app MODULE:APP --queue {facts.job.queue}"


def _worker(facts: Facts) -> str:
    return facts.worker or facts.job.worker or "unknown"


def _ahead(number: int) -> str:
    if number >= AHEAD_LIMIT:
        return f"more than {AHEAD_LIMIT:,} jobs are"
    return f"{count(number, 'job') if number else 'no job'} {'is' if number < 2 else 'are'}"


def _because(job: JobRecord) -> str:
    return f": {job.error.type}: {job.error.message}" if job.error else ""


def _ran(job: JobRecord) -> str:
    if job.started_at is None or job.finished_at is None:
        return ""
    return f", after running for {duration((job.finished_at - job.started_at).total_seconds())}"


def _progress(job: JobRecord) -> str:
    if job.progress is None:
        return ""
    total = f" of {job.progress.total:g}" if job.progress.total is not None else ""
    text = f" ({job.progress.text})" if job.progress.text else ""
    return f", {job.progress.done:g}{total} done{text}"
