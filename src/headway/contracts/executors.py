"""What every executor promises: `from headway.contracts.executors import *` in a test file runs it all.

Bring two fixtures: `executor`, the one under test, not yet started; and `trial`, the jobs that it is to be given. One
that keeps something in the store is made with the fixture `store`.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from headway.clock import SystemClock, sleep
from headway.contracts.waiting import until
from headway.executors.contract import (
    Answer,
    Cancelled,
    Completed,
    Context,
    Defaults,
    Ending,
    Executor,
    Failed,
    Running,
    Scheduled,
    TimedOut,
)
from headway.model.job import Claim, JobRecord
from headway.model.retry import Retry
from headway.model.states import State
from headway.model.submission import Submission
from headway.store.contract import Store
from headway.worker.parts import Options, Parts
from headway.worker.worker import Worker

PATIENCE = 60.0
CLOCK = SystemClock()


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """Payloads of jobs for an executor under test, as its kind stores them."""

    good: str
    """Is done within seconds."""
    bad: str
    """Can be begun, and fails."""
    endless: str | None = None
    """Goes on until it is stopped; None where there is no such job."""


def a_claim(executor: Executor, payload: str) -> Claim:
    return Claim(
        id=uuid7(),
        token=1,
        lease_id=uuid7(),
        kind=executor.kind,
        name="trial",
        queue="default",
        payload=payload,
        attempt=1,
        failures=0,
        losses=0,
        timeout=None,
        retry=None,
        correlation_id=None,
        traceparent=None,
    )


async def run(executor: Executor, payload: str) -> Ending:
    """A job from its begin to its end, as a worker sees to it."""
    claim = a_claim(executor, payload)
    context = Context(claim, timeout=executor.defaults.timeout, emit=lambda news: None)
    answer: Answer = await executor.submit(claim, context)
    try:
        while isinstance(answer, Running | Scheduled):
            if isinstance(answer, Running):
                await sleep(CLOCK, answer.every)
                answer = await executor.poll(claim, context)
            else:
                await sleep(CLOCK, answer.delay)
                answer = await executor.submit(claim, context)
    except asyncio.CancelledError:
        await executor.cancel(claim, context)
        raise
    return answer


async def completes(executor: Executor, trial: Trial) -> Completed:
    answer = await asyncio.wait_for(run(executor, trial.good), PATIENCE)
    assert isinstance(answer, Completed), answer
    return answer


def test_it_says_what_it_is_for_and_what_holds_by_default(executor: Executor) -> None:
    assert executor.kind
    assert isinstance(executor.defaults, Defaults)
    assert executor.defaults.timeout is None or executor.defaults.timeout > 0
    assert executor.defaults.retry.max_attempts >= 1


async def test_a_job_that_can_be_done_is_completed(executor: Executor, trial: Trial) -> None:
    await executor.start()
    answer = await completes(executor, trial)
    if answer.about is None and answer.result is not None:
        msgspec.json.decode(answer.result)
    await executor.close()


async def test_a_job_that_fails_is_an_answer_with_its_reason(executor: Executor, trial: Trial) -> None:
    await executor.start()
    answer = await asyncio.wait_for(run(executor, trial.bad), PATIENCE)
    assert isinstance(answer, Failed | TimedOut), answer
    assert answer.error.type
    assert answer.error.message
    await completes(executor, trial)
    await executor.close()


async def test_a_payload_of_another_kind_completes_nothing_and_spoils_nothing(executor: Executor, trial: Trial) -> None:
    await executor.start()
    for payload in ("[]", "not even JSON"):
        [answer] = await asyncio.gather(run(executor, payload), return_exceptions=True)
        assert isinstance(answer, Exception) or not isinstance(answer, Completed), answer
    await completes(executor, trial)
    await executor.close()


async def test_jobs_at_the_same_time_all_end(executor: Executor, trial: Trial) -> None:
    await executor.start()
    await asyncio.gather(*(completes(executor, trial) for _ in range(10)))
    await executor.close()


async def test_a_job_that_is_told_to_stop_stops_and_the_next_one_runs(executor: Executor, trial: Trial) -> None:
    if trial.endless is None:
        return
    await executor.start()
    task = asyncio.ensure_future(run(executor, trial.endless))
    await asyncio.wait([task], timeout=0.5)
    assert not task.done(), "it is to go on until it is stopped"
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE)
    assert task.cancelled() or isinstance(task.result(), Cancelled)
    await completes(executor, trial)
    await executor.close()


async def test_a_worker_brings_its_jobs_to_their_ends(executor: Executor, trial: Trial, store: Store) -> None:
    def job(payload: str) -> Submission:
        return Submission(id=uuid7(), kind=executor.kind, name="trial", payload=payload, retry=Retry(max_attempts=1))

    async def ended(job_id: UUID) -> JobRecord | None:
        [record] = await store.get([job_id])
        return record if record is not None and record.finished_at is not None else None

    good, bad = job(trial.good), job(trial.bad)
    await executor.start()
    worker = Worker(Parts(store=store, executors={executor.kind: executor}, stores=None), Options())
    await worker.start()
    await store.submit([good, bad])
    done = await until(lambda: ended(good.id), "the good one to end", PATIENCE)
    failed = await until(lambda: ended(bad.id), "the bad one to end", PATIENCE)
    await worker.stop()
    await executor.close()
    assert (done.state, failed.state) == (State.COMPLETED, State.FAILED)
    assert failed.error is not None
