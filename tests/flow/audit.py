"""The count after a fault: what was accepted has finished, and one attempt's result was taken for each."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from headway import Headway, Job
from headway.model.states import Outcome, State


class Audit(msgspec.Struct, frozen=True):
    """Figures of one run, to be printed."""

    accepted: int
    finished: int
    attempts: int
    lost: int


async def audit(app: Headway, jobs: Sequence[Job[list[int]]], patience: float = 60) -> Audit:
    """Wait for all jobs, and check each one's record: functions return `[attempt, token]` of the run they were.

    The result must be that of the last attempt, and no other attempt may count as a success.
    """
    attempts = lost = 0
    for job in jobs:
        done = await job.finished(patience)
        assert (done.state, done.outcome) == (State.COMPLETED, Outcome.SUCCEEDED), done.error
        tried = await app.client.call(lambda store, job_id=done.id: store.attempts(job_id))  # type: ignore[misc]
        assert [attempt.number for attempt in tried] == list(range(1, done.attempt + 1))
        assert [attempt.outcome for attempt in tried].count(Outcome.SUCCEEDED) == 1
        assert done.result == [done.attempt, done.record.token], "the result is that of the attempt that was accepted"
        attempts += len(tried)
        lost += sum(attempt.outcome is Outcome.LOST for attempt in tried)
    found = {job.id for job in jobs}
    assert len(found) == len(jobs)
    return Audit(accepted=len(jobs), finished=len(found), attempts=attempts, lost=lost)


async def nothing_waits(app: Headway, known: set[UUID]) -> None:
    """No job that was ever stored, told of or not, is left behind."""
    for queue, states in (await app.client.call(lambda store: store.counts())).items():
        open_ = {state: count for state, count in states.items() if not state.terminal and count}
        assert not open_, f"queue {queue}: {open_}"
    assert known
