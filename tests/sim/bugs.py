"""The checker proves itself: each of these bugs, planted in the engine, must be found.

A bug is a statement changed or a method replaced, in ways in which a person might have got it wrong. Some of them the
simulation has found in earnest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any
from unittest.mock import patch
from uuid import UUID

import msgspec

from headway.model.errors import StoreUnavailable
from headway.model.job import Ended, Finish, Release
from headway.model.limits import Limit
from headway.model.states import State
from headway.model.submission import Accepted, Submission
from headway.scheduler import Scheduler
from headway.store import statements
from headway.store.scripts import gates, ledger, settle, submit, work
from headway.store.sql import Lane, SqlStore
from headway.store.statements import Script, Statement, one
from headway.worker.attempt import Attempt, Stop
from headway.worker.finisher import Finisher
from headway.worker.tally import Entry
from tests.sim.loop import START

Plant = Callable[[], AbstractContextManager[object]]

_background: set[asyncio.Future[Any]] = set()


@contextmanager
def _statement(name: str, change: Callable[[str], str]) -> Iterator[None]:
    """A statement with another text."""
    real = statements.load

    def load(package: str, placeholder: str) -> dict[str, Statement]:
        found = real(package, placeholder)
        found[name] = msgspec.structs.replace(found[name], text=change(found[name].text))
        return found

    with patch("headway.store.sqlite.driver.load", load):
        yield


def _changed(name: str, old: str, new: str = "") -> AbstractContextManager[None]:
    """A statement with other words in it."""

    def change(text: str) -> str:
        assert old in text, f"{name} has no {old!r} any more: mend this planted bug"
        return text.replace(old, new)

    return _statement(name, change)


def _instead(name: str, text: str) -> AbstractContextManager[None]:
    return _statement(name, lambda _: text)


async def _answer_first(self: SqlStore, batch: Sequence[Submission], *, partial: bool = True) -> list[submit.Answer]:
    """Acknowledge, then commit."""
    script = submit.plain(batch) if all(job.plain for job in batch) else submit.keyed(batch)
    _background.add(asyncio.ensure_future(self._driver.run(lambda: script, Lane.KEYED)))
    return [Accepted(job_id=job.id, state=State.SCHEDULED, run_at=START, created_at=START) for job in batch]


async def _shrug(self: SqlStore, moves: Sequence[Finish]) -> list[Ended]:
    """A store that can't be reached is no reason to try again."""
    try:
        return await _real_finish(self, moves)
    except StoreUnavailable:
        return [Ended(None) for _ in moves]


async def _keep_the_unbegun(self: SqlStore, moves: Sequence[Release]) -> list[Ended]:
    """What a stopping worker gives back is taken for lost."""
    real = [move for move in moves if move.reason != "give_back"]
    ends = iter(await _real_release(self, real) if real else [])
    return [Ended(None) if move.reason == "give_back" else next(ends) for move in moves]


async def _see_nothing(self: SqlStore, queues: Sequence[str]) -> dict[str, float]:
    """The look that should find what no wake-up told."""
    return {}


def _stop_again(self: Attempt, reason: Stop) -> None:
    """Every renewal repeats the order, and interrupts what the first one set going."""
    if self._stop is None or reason is Stop.LEASE_LOST:
        self._stop = reason
    if self.context is not None:
        self.context.ask_to_stop()
    if self.task is not None:
        self.task.cancel()


class _WideGate(gates.Gate):
    """One more than allowed."""

    def __init__(self, limit: Limit, row: Any) -> None:
        wide = limit.max_running and limit.max_running + 1
        super().__init__(msgspec.structs.replace(limit, max_running=wide), row)


def _nobody_waits(ended: Sequence[UUID]) -> Script[None]:
    """What hangs on a job's end is left to the sweep."""
    yield from ()


@contextmanager
def _renewing_all() -> Iterator[None]:
    """Renew every lease of the worker, also those it doesn't know of."""

    def renew(worker: Any, ttl: float, done: Sequence[UUID], held: object) -> Script[work.Renewal]:
        return _real_renew(worker, ttl, done, [worker.id])

    with _changed("renew_leases", "where id = ?1", "where worker_id = ?1"), patch.object(work, "renew", renew):
        yield


def _first_in_order(others: list[Any]) -> list[UUID]:
    """Wait for one other job of the key, whoever else there is."""
    return [other.id for other in others[-1:]]


async def _report_first(self: Attempt, clock: Any, random: Any) -> Any:
    """Say that a job has ended, and run it then."""
    _background.add(asyncio.ensure_future(_real_run(self, clock, random)))
    await asyncio.sleep(0)
    return self.stopped()


def _short_claim(want: work.Want) -> Script[work.Claimed]:
    """The answer to a claim that got through unheard: that there was none, and its lease is dropped."""
    yield statements.many("drop_leases", [(want.lease_id,)])
    yield one("claimed_under", lease_id=want.lease_id)
    return work.Claimed([])


def _write_nothing(lines: Sequence[Any]) -> Script[None]:
    """What became of nominal times is not recorded."""
    yield from ()


def _tell_no_skips(found: Any, schedule: Any, reason: str | None = None) -> list[Any]:
    """Only jobs are worth a line."""
    return []


def _sleep_on(self: Scheduler, fired: Any, asked: float) -> float:
    """Somebody will ring."""
    return 1_000.0


def _blame_the_job(self: Finisher, entry: Entry, error: Exception) -> None:
    """Whatever the store says, the job must have been at fault."""
    _background.add(asyncio.ensure_future(self._give_up(entry, error)))


async def _give_in(loop: Callable[[], Awaitable[None]], clock: Any, name: str) -> None:
    """A loop that has failed stays where it fell."""
    with suppress(Exception):
        await loop()


_real_renew = work.renew
_real_run = Attempt.run
_real_finish = SqlStore.finish
_real_release = SqlStore.release
_FENCE = " and token = ?2 and finished_token is not ?2"
_BATCH_FENCE = " and headway_job.token = batch.token and finished_token is not batch.token"
_UNCHARGED = "attempt = attempt - (?3 in ('snooze', 'give_back', 'parked'))"

BUGS: dict[str, Plant] = {
    "finish asks for no token": lambda: _changed("complete_untied", _BATCH_FENCE),
    "a second look at an end asks for no token": lambda: _changed("complete_jobs", _BATCH_FENCE),
    "release asks for no token": lambda: _changed("release_jobs", _FENCE),
    "claim does not raise the token": lambda: _changed("claim_due", "token = token + 1", "token = max(token, 1)"),
    "rescue does not raise the token": lambda: _changed("rescue_jobs", "token = token + 1,"),
    "rescue does not wait for the lease": lambda: _changed("lapsed_leases", "until <= ?2", "until <= ?2 + 2500000"),
    "rescue takes what is held under another lease": lambda: _changed("rescue_jobs", " and lease_id = ?2"),
    "renewal keeps leases that nobody knows of": _renewing_all,
    "claim looks at no clock": lambda: _changed("claim_due", " and j.run_at <= ?5"),
    "claim takes expired jobs": lambda: _changed("claim_due", "and (j.expires_at is null or j.expires_at > ?5)"),
    "an unheard claim is taken as none": lambda: patch.object(work, "claim_again", _short_claim),
    "a child goes with its first parent": lambda: _changed(
        "free_children", "not exists (select 1 from headway_edge e where e.child_id = ?1)", "1"
    ),
    "a cancelled waiter hands nothing on": lambda: _instead("inherit_edges", "select 1 where ?1 is null"),
    "a waiter waits for one only": lambda: patch.object(submit, "_line_up", _first_in_order),
    "children are forgotten": lambda: patch.object(settle, "settle", _nobody_waits),
    "conflicts are not judged": lambda: _changed("all_open", "where key = ?1", "where key = ?1 and false"),
    "waiting jobs are not given back": lambda: patch.object(SqlStore, "release", _keep_the_unbegun),
    "submit is answered before it is stored": lambda: patch.object(SqlStore, "submit", _answer_first),
    "a failed write is dropped": lambda: patch.object(SqlStore, "finish", _shrug),
    "an error of the store is taken for the job's": lambda: patch.object(Finisher, "_postpone", _blame_the_job),
    "a loop that fails is over": lambda: patch("headway.worker.worker.endure", _give_in),
    "a repeated finish is refused": lambda: _changed("read_states", "finished_token as token", "null as token"),
    "nobody looks without a wake-up": lambda: patch.object(SqlStore, "peek", _see_nothing),
    "one more than the limit": lambda: patch.object(gates, "Gate", _WideGate),
    "slots are not freed": lambda: _instead("free_slots", "select '' as gate where ?1 is null"),
    "a retry counts no failure": lambda: _changed("release_jobs", "failures + (?3 = 'retry')", "failures"),
    "a snooze is charged": lambda: _changed("release_jobs", _UNCHARGED, "attempt = attempt"),
    "cancel ends running jobs at once": lambda: _changed("cancel_waiting", "waiting > 0", "state <> 'completed'"),
    "an end is told before it came": lambda: patch.object(Attempt, "run", _report_first),
    "a schedule that has fired stays where it was": lambda: _changed(
        "advance_schedules", "where id = ?1", "where id = ?1 and false"
    ),
    "what has fired is not recorded": lambda: patch.object(ledger, "record", _write_nothing),
    "what was skipped is not recorded": lambda: patch.object(ledger, "skip_lines", _tell_no_skips),
    "schedulers look only when somebody rings": lambda: patch.object(Scheduler, "_until_next", _sleep_on),
}

RARE_BUGS: dict[str, Plant] = {
    "a stop is ordered again and again": lambda: patch.object(Attempt, "stop", _stop_again),
}
"""Seen in one world of some hundreds."""
