"""CLAIM → RUN → FINISH: what workers do to jobs. Every write but the claim carries the claim's token."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, itemgetter
from uuid import UUID

import msgspec

from headway.model.job import CHUNK, OUTLIVING, Chunk, Claim, Ended, Finish, Release, Report
from headway.model.states import Outcome, State
from headway.model.submission import INLINE_LIMIT
from headway.model.worker import WorkerInfo
from headway.store.scripts import alerts, gates, settle
from headway.store.scripts.rows import attempt_row, hush, ids, later
from headway.store.scripts.walk import Walk
from headway.store.statements import Row, Script, many, one

OTHERS_WALK = 0.1
"""Seconds until a claim asks again, where another one is just looking from the start."""


class Want(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker asks for: at most `limit` due jobs of a queue, held under a new lease."""

    worker_id: UUID
    queue: str
    limit: int
    lease_id: UUID
    ttl: float
    hush: bool = False
    """Whether to tell other workers when this takes the last ones: they have heard the same ring."""


class Claimed(msgspec.Struct, frozen=True):
    """What it got, in the order to run them."""

    claims: list[Claim]
    waited: Sequence[float] = ()
    """For how many seconds each had been due."""
    retry_in: float | None = None
    """When a limit withheld jobs, or not all places were looked at: after how many seconds to ask again."""


class Renewal(msgspec.Struct, frozen=True):
    """What is left of a worker's leases, and which of its jobs are to be cancelled."""

    leases: frozenset[UUID]
    cancels: frozenset[UUID]
    crowd: int = 1
    """How many workers there are, where it matters."""


def claim(want: Want, *, rescan: bool = False) -> Script[Claimed]:
    """The most urgent due jobs, held by one new lease; where the dialect can, in one statement, which goes on where
    others have ended. If that brings fewer than asked for, there may be more before that place: ask for a `rescan`. One
    that goes on there all the same has found somebody else at it."""
    rows = yield one(
        "claim_due",
        queue=want.queue,
        limit=want.limit,
        lease_id=want.lease_id,
        worker_id=want.worker_id,
        ttl=want.ttl,
        rescan=rescan,
        hush=hush(want.queue, want.worker_id) if want.hush else None,
    )
    behind = bool(rows) and rows[0]["behind"]
    rows = rows if rows and rows[0][0] else []
    if rows and not rows[0]["leased"]:
        yield from _hold(want, rows)
    claimed = _in_order(want, rows)
    if behind and len(rows) < want.limit:
        return msgspec.structs.replace(claimed, retry_in=OTHERS_WALK if rescan else 0.0)
    return claimed


def claim_limited(want: Want, limits: gates.Limits, walk: Walk) -> Script[Claimed]:
    """The same where limits hold: only those that may start now."""
    passed = yield from gates.choose(want.queue, want.limit, limits, walk)
    rows: list[Row] = []
    if passed.job_ids:
        rows = yield many(
            "claim_jobs",
            ids(passed.job_ids),
            lease_id=want.lease_id,
            worker_id=want.worker_id,
            gated=bool(passed.slots),
        )
        if passed.slots:
            yield many("take_slots", passed.slots)
        yield from _hold(want, rows)
    return msgspec.structs.replace(_in_order(want, rows), retry_in=passed.retry_in)


def claim_again(want: Want) -> Script[Claimed]:
    """What the claim under this lease has brought, if its commit did get through."""
    rows = yield one("claimed_under", lease_id=want.lease_id)
    return _in_order(want, rows)


def renew(worker: WorkerInfo, ttl: float, done: Sequence[UUID], held: Sequence[UUID]) -> Script[Renewal]:
    """Hold on to what is left, let go of leases whose jobs are all done, and show that the worker lives."""
    if done:
        yield many("drop_leases", ids(done))
    rows = (yield many("renew_leases", ids(sorted(held)), ttl=ttl)) if held else []
    [seen] = yield one(
        "touch_worker",
        worker_id=worker.id,
        name=worker.name,
        host=worker.host,
        pid=worker.pid,
        queues=msgspec.json.encode(worker.queues).decode(),
        slots=worker.slots,
        fires=worker.fires,
        code_version=worker.code_version,
    )
    return Renewal(
        frozenset(row["id"] for row in rows),
        frozenset(job_id for row in rows for job_id in row["cancels"]),
        seen["crowd"],
    )


def report(news: Sequence[Report]) -> Script[set[UUID]]:
    """News of running jobs; returns those that are still this worker's."""
    rows = yield many("report", [(r.job_id, r.token, r.ran, r.progress) for r in news])
    return {row["id"] for row in rows}


def note(lines: Sequence[tuple[Claim, str, str]]) -> Script[list[bool]]:
    """Lines in the histories of running jobs; False where one is no longer this worker's."""
    held = yield from report([Report(job_id=claim.id, token=claim.token, ran=0.0) for claim, _, _ in lines])
    kept = [(claim.id, what, None, detail) for claim, what, detail in lines if claim.id in held]
    if kept:
        yield many("add_history", kept)
    return [claim.id in held for claim, _, _ in lines]


def append(parcels: Sequence[tuple[Claim, Sequence[Chunk]]]) -> Script[list[bool]]:
    """Output of running jobs; False where one is no longer this worker's."""
    chunks = [(claim.id, claim.token, c.stream, c.seq, c.data) for claim, some in parcels for c in some]
    taken = {row["job_id"] for row in (yield many("append_chunks", chunks))}
    return [claim.id in taken for claim, _ in parcels]


def complete(moves: Sequence[Finish]) -> Script[bool]:
    """Plain successes on which nothing hangs, in one statement; whether that is all of them. If not, `finish` has a
    look at each: those that this has recorded are repeats to it."""
    rows = [(move.job_id, move.token, move.ran) for move in sorted(moves, key=_job_id)]
    [counted] = yield many("complete_untied", rows)
    return bool(counted[0] == len(moves))


def completed(moves: Sequence[Finish]) -> list[Ended]:
    """The answers to moves that `complete` has taken."""
    return [_COMPLETED] * len(moves)


def finish(moves: Sequence[Finish]) -> Script[list[Ended]]:
    """Ends as the workers saw them; a move with an old token is refused."""
    ordered = sorted(moves, key=_job_id)
    completed = yield from _complete([m for m in ordered if m.state is State.COMPLETED])
    others = yield from _end([m for m in ordered if m.state is not State.COMPLETED])
    taken = {(row[0], row[1]): _COMPLETED for row in completed} | _taken(others)
    yield from _keep_results([m for m in ordered if m.result is not None and (m.job_id, m.token) in taken])
    yield from alerts.note_failed([row["id"] for row in others if row["state"] == State.FAILED])
    tied = [row["id"] for row in completed + others if row["tied"]]
    if tied:
        yield from settle.settle(tied)
    return (yield from _answers(moves, taken))


def _complete(moves: Sequence[Finish]) -> Script[list[Row]]:
    """Nearly all jobs end like this: every column less counts."""
    return (yield many("complete_jobs", [(m.job_id, m.token, m.ran) for m in moves])) if moves else []


def _end(moves: Sequence[Finish]) -> Script[list[Row]]:
    rows = [(m.job_id, m.token, m.state, m.outcome, m.ran, m.error) for m in moves]
    return (yield many("finish_jobs", rows)) if rows else []


def release(moves: Sequence[Release]) -> Script[list[Ended]]:
    """Back to wait for the next attempt; attempts that say something are archived, the others leave a line."""
    ordered = sorted(moves, key=_job_id)
    rows = yield many(
        "release_jobs",
        [(m.job_id, m.token, m.reason, m.wait, m.ran, m.outcome, m.error) for m in ordered],
        outliving=OUTLIVING,
    )
    tried = [attempt_row(row) for row in rows if row["reason"] in {"retry", "lost"} and row["state"] == State.SCHEDULED]
    if tried:
        yield many("archive_attempts", tried)
    yield from _tell_uncharged([row for row in rows if row["reason"] in {"snooze", "give_back"}])
    yield from _after_release(rows)
    return (yield from _answers(moves, _taken(rows)))


def _tell_uncharged(rows: Sequence[Row]) -> Script[None]:
    """An attempt that isn't charged leaves no row of its own, so that it ran and went back is told here. Parked jobs
    leave nothing: they come by every few seconds."""
    if not rows:
        return
    yield many("stamp_history", [(row["id"], row["claimed_at"], State.RUNNING.value, None, None) for row in rows])
    lines = [(row["id"], row["reason"], None, None) for row in rows]
    lines += [(row["id"], State.SCHEDULED.value, None, None) for row in rows if row["state"] == State.SCHEDULED]
    yield many("add_history", lines)


def _after_release(rows: Sequence[Row]) -> Script[None]:
    """Slots are freed whatever comes next; a cancel that was pending ends here."""
    cancelled = [row["id"] for row in rows if row["tied"] and row["state"] == State.CANCELLED]
    if cancelled:
        yield from settle.settle(cancelled)
    waiting = [row["id"] for row in rows if row["tied"] and row["state"] in _AGAIN]
    if waiting:
        yield from gates.leave(waiting)
    rings = {
        row["queue"] if row["reason"] in {"give_back", "lost"} else later(row["queue"])
        for row in rows
        if row["state"] in _AGAIN
    }
    if rings:
        yield one("wake", wake=sorted(rings))


_AGAIN = {State.SCHEDULED, State.CANCELLING}
"""Where a job may be after its release that waits for a worker."""
_Taken = dict[tuple[UUID, int], Ended]
"""By job and token: two attempts at a job may end in one batch, one of them lost long ago."""


def _taken(rows: Sequence[Row]) -> _Taken:
    return {(row["id"], row["token"]): Ended(_STATES[row["state"]], _OUTCOMES[row["outcome"]]) for row in rows}


def _answers(moves: Sequence[Finish] | Sequence[Release], taken: _Taken) -> Script[list[Ended]]:
    """What became of each move. One that matched nothing was either recorded before (a repeat after an unknown commit)
    or is fenced off."""
    missing = [move.job_id for move in moves if (move.job_id, move.token) not in taken]
    if missing:
        taken |= _taken((yield many("read_states", ids(missing))))
    return [taken.get((move.job_id, move.token), _REFUSED) for move in moves]


def _hold(want: Want, rows: Sequence[Row]) -> Script[None]:
    if rows:
        yield one(
            "hold_lease",
            lease_id=want.lease_id,
            worker_id=want.worker_id,
            ttl=want.ttl,
            jobs=[row[0] for row in rows],
            keys=[row[_KEY] for row in rows],
        )


def _in_order(want: Want, rows: Sequence[Row]) -> Claimed:
    """RETURNING promises no order. By position: this is done for every claimed row."""
    ordered = sorted(rows, key=_ORDER)
    shared = (want.lease_id, want.queue)
    claims = [Claim(*(row[:_CLAIM_FIELDS] + shared)) for row in ordered]
    return Claimed(claims, [-row[_DUE] for row in ordered])


def _keep_results(moves: Sequence[Finish]) -> Script[None]:
    if not moves:
        return
    yield many("put_results", [_result_row(m) for m in moves])
    chunks = [
        (m.job_id, seq, piece) for m in moves if not _inline(m) for seq, piece in enumerate(split(m.result or b""))
    ]
    if chunks:
        yield many("put_result_chunks", chunks)


def _result_row(move: Finish) -> tuple[object, ...]:
    data = move.result or b""
    return (move.job_id, move.content_type, len(data), data if _inline(move) else None, move.meta, move.source)


def _inline(move: Finish) -> bool:
    return len(move.result or b"") <= INLINE_LIMIT


def split(data: bytes) -> list[bytes]:
    """Data in pieces that fit a chunk."""
    return [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]


_job_id = attrgetter("job_id")
# A claim's fields but the last two are the first columns that every claim statement returns, in this order.
_CLAIM_FIELDS = len(Claim.__struct_fields__) - 2
_KEY, _RANK, _DUE = range(_CLAIM_FIELDS, _CLAIM_FIELDS + 3)
_ORDER = itemgetter(_RANK, _DUE, 0)
# Twice as fast as calling the enum; this is done for every job.
_STATES = {state.value: state for state in State}
_COMPLETED = Ended(State.COMPLETED, Outcome.SUCCEEDED)
_REFUSED = Ended(None)
_OUTCOMES: dict[str | None, Outcome | None] = {None: None, **{outcome.value: outcome for outcome in Outcome}}
