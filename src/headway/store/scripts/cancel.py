"""CANCEL, RETRY, DELETE, SCHEDULE: what people ask of a job that is there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from headway.model.errors import Conflict, HeadwayError, IllegalMove, JobNotFound, KeyBusy
from headway.model.job import OUTLIVING, ErrorInfo, encode
from headway.model.states import Outcome, State
from headway.model.submission import Moved, OnConflict
from headway.store.scripts import settle
from headway.store.scripts.news import changes_of, tell
from headway.store.scripts.rows import attempt_row, ids
from headway.store.statements import Row, Script, many, one

Verdict = Moved | HeadwayError
"""The job's state before and after the act, or why it couldn't be done."""
RETRIED = "retried"
"""The `wait_reason` of a job that a person's retry put into its key's line: its age doesn't tell its place there."""


def cancel(
    job_ids: Sequence[UUID], *, by: str | None, reason: str, component: str | None = None
) -> Script[list[Verdict]]:
    """Waiting jobs are cancelled at once; running ones go `cancelling` and their worker is told; those of which an
    earlier attempt may still run somewhere go `cancelling` until a worker has seen them stopped. `component`: in
    whose name the log tells of it, unless the verdicts come to somebody who does."""
    error = encode(ErrorInfo("Cancelled", reason))
    before = yield from _lock(job_ids)
    begun = yield many("cancel_outliving", ids(job_ids), outliving=OUTLIVING)
    waiting = yield many("cancel_waiting", [(job_id, Outcome.CANCELLED.value, error) for job_id in job_ids])
    running = yield many("cancel_running", ids(job_ids))
    if running:
        yield many("tell_leases", [(row["lease_id"], row["id"]) for row in running])
        yield one("wake", wake=sorted({worker_channel(row["worker_id"]) for row in running}))
    if begun:
        yield one("wake", wake=sorted({row["queue"] for row in begun}))
    asked = (*waiting, *running, *begun)
    lines: list[tuple[object, ...]] = [(row["id"], "cancel", by, reason) for row in asked]
    lines += [(row["id"], State.CANCELLING.value, None, None) for row in (*running, *begun)]
    if lines:
        yield many("add_history", lines)
        yield from tell(changes_of(asked, before), component)
    tied = [row["id"] for row in waiting if row["tied"]]
    if tied:
        yield from settle.settle(tied)
    states = yield from _states(job_ids)
    # A job that its deletion has waited for is gone by now.
    return [
        Moved(before[job_id], states.get(job_id, State.CANCELLED)) if job_id in before else JobNotFound(job_id)
        for job_id in job_ids
    ]


def delete(job_ids: Sequence[UUID], *, by: str | None) -> Script[list[Verdict]]:
    """Remove jobs with all that belongs to them; running ones are cancelled first and go once seen stopped."""
    states = yield from _lock(job_ids)
    known = [job_id for job_id in job_ids if job_id in states]
    yield many("doom_jobs", ids(known))
    yield from cancel(known, by=by, reason="deleted")
    ended = [job_id for job_id in known if states[job_id].terminal]
    if ended:
        yield from settle.settle(ended)
    after = yield from _states(known)
    return [
        Moved(states[job_id], after.get(job_id, State.CANCELLED)) if job_id in states else JobNotFound(job_id)
        for job_id in job_ids
    ]


def retry(job_ids: Sequence[UUID], *, by: str | None) -> Script[list[Verdict]]:
    """Ended jobs run again under the same id: failures count from 0, attempts go on, conflicts are judged anew."""
    found: dict[UUID, Row] = {row["id"]: row for row in (yield many("ended_jobs", ids(job_ids)))}
    verdicts: dict[UUID, Verdict] = {}
    for job_id in job_ids:
        row = found.get(job_id)
        if row is None:
            verdicts[job_id] = JobNotFound(job_id)
        elif not State(row["state"]).terminal:
            verdicts[job_id] = IllegalMove(f"job {job_id} is {row['state']}: only a job that has ended can be retried")
        else:
            verdicts[job_id] = yield from _reopen(row, by)
    return [verdicts[job_id] for job_id in job_ids]


def schedule(job_ids: Sequence[UUID], run_at: datetime | None, *, by: str | None) -> Script[list[Verdict]]:
    """Let jobs on hold go, at once or at `run_at`; also those held because a parent failed. What has been let go
    before stays as it is, unless it is given another time."""
    before = yield from _lock(job_ids)
    wanted = [job_id for job_id in job_ids if run_at or before.get(job_id) is not State.SCHEDULED]
    moved = (yield many("schedule_jobs", [(job_id, run_at) for job_id in wanted])) if wanted else []
    if moved:
        yield from tell(changes_of(moved, before))
        edited = {job_id for job_id, state in before.items() if state is State.SCHEDULED}
        lines = [(row["id"], "edit" if row["id"] in edited else row["state"], by, None) for row in moved]
        yield many("add_history", lines)
        yield one("wake", wake=sorted({row["queue"] for row in moved}))
    states = yield from _states(job_ids)
    done = {row["id"] for row in moved}.union(before.keys() - wanted)
    return [_scheduled(job_id, before, states, done) for job_id in job_ids]


_TO_WORKER = "\x01"


def key_lock(key: str) -> str:
    """The name under which decisions about a key are made one after another."""
    return f"key {key}"


def worker_channel(worker_id: UUID) -> str:
    """The name under which a worker is woken for itself; no queue can have it."""
    return f"{_TO_WORKER}{worker_id}"


def to_worker(channel: str) -> bool:
    """Whether that is the name of a worker."""
    return channel.startswith(_TO_WORKER)


def _scheduled(job_id: UUID, before: dict[UUID, State], states: dict[UUID, State], done: set[UUID]) -> Verdict:
    if job_id not in states:
        return JobNotFound(job_id)
    if job_id not in done:
        return IllegalMove(f"job {job_id} is {states[job_id]}: only a job on hold can be released")
    return Moved(before[job_id], states[job_id])


def _reopen(row: Row, by: str | None) -> Script[Verdict]:
    others: list[UUID] = []
    policy = OnConflict(row["on_conflict"])
    if policy is not OnConflict.ALLOW:
        if not (yield many("try_keys", [(key_lock(row["key"]),)])):
            return KeyBusy(f"another transaction holds the key {row['key']!r} of job {row['id']}: try again")
        others = yield from _open_others(row["key"])
    if others and policy in {OnConflict.REJECT, OnConflict.SKIP}:
        return Conflict(row["key"], others[-1])
    if others and policy is OnConflict.REPLACE:
        yield from cancel(others, by=by, reason=f"replaced by job {row['id']}", component="schedule")
        others = yield from _open_others(row["key"])
    if row["attempt"]:
        yield many("archive_attempts", [attempt_row(row, row["finished_at"])])
    yield many("drop_result", [(row["id"],)])
    state = State.BLOCKED if others else State.SCHEDULED
    again = yield many("reopen_jobs", [(row["id"], state.value, 2 if others else 1, RETRIED if others else None)])
    yield from tell(changes_of(again, State(row["state"])))
    yield many("stamp_history", [(row["id"], row["finished_at"], row["state"], None, row["outcome"])])
    yield many("add_history", [(row["id"], "retry", by, None), (row["id"], state.value, None, None)])
    if others:
        yield many("insert_edges", [(other, row["id"], "wait") for other in sorted(others)])
        yield many("mark_waiters", ids(sorted(others)))
    else:
        yield one("wake", wake=[row["queue"]])
    return Moved(State(row["state"]), state)


def _open_others(key: str) -> Script[list[UUID]]:
    """The open jobs of a key, locked, so that none of them ends unseen: those that did before are left out."""
    found = [row["id"] for row in (yield many("all_open", [(key,)]))]
    states = (yield from _lock(found)) if found else {}
    return [job_id for job_id in found if job_id in states and not states[job_id].terminal]


def _lock(job_ids: Sequence[UUID]) -> Script[dict[UUID, State]]:
    """The jobs' states, which nobody changes from now on: one that just goes from hand to hand can't slip through."""
    return {row["id"]: State(row["state"]) for row in (yield many("lock_jobs", ids(sorted(job_ids))))}


def _states(job_ids: Sequence[UUID]) -> Script[dict[UUID, State]]:
    if not job_ids:
        return {}
    return {row["id"]: State(row["state"]) for row in (yield many("read_states", ids(job_ids)))}
