"""Why a job is not running: every store gathers the same facts, for every reason there is."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from headway.model.job import Claim, Release
from headway.model.limits import Limit, QueueSettings, Rate
from headway.model.retry import Retry
from headway.model.states import Outcome, State
from headway.model.submission import OnConflict, OnParentFailure
from headway.model.why import Reason, Why
from headway.model.worker import FunctionInfo, WorkerInfo
from tests.contract.house import TTL, House


async def why(house: House, job_id: UUID) -> Why:
    answer = await house.store.why(job_id)
    assert answer is not None
    return answer


async def reason(house: House, job_id: UUID) -> Reason:
    return (await why(house, job_id)).reason


async def sentence(house: House, job_id: UUID) -> str:
    return (await why(house, job_id)).sentence


async def serve(house: House, **changes: Any) -> WorkerInfo:
    """The house's worker is seen, with such queues and slots."""
    house.worker = msgspec.structs.replace(house.worker, **changes)
    await house.renew()
    return house.worker


async def test_an_unknown_job_has_no_why(house: House) -> None:
    assert await house.store.why(house.new_id()) is None


# Waiting for its time


async def test_a_job_that_is_not_due(house: House) -> None:
    await serve(house)
    answer = await why(house, await house.submit(delay=11_100))
    assert answer.reason is Reason.NOT_DUE
    assert answer.sentence == "The job is not due until 2030-01-01 03:05:00 UTC (in 3 h 5 min)."
    assert answer.warnings == ()


async def test_a_job_that_is_to_be_retried(house: House) -> None:
    claim = await house.running(retry=Retry(max_attempts=5, wait=60))
    await house.retry_later(claim, wait=60)
    told = await sentence(house, claim.id)
    assert await reason(house, claim.id) is Reason.RETRY
    assert "after failure 1 of 5: ValueError: it broke." in told
    assert "(in 1 min)" in told


async def test_a_job_that_snoozes(house: House) -> None:
    claim = await house.running()
    await house.release(Release.snooze(claim, 0.5, 100))
    assert await reason(house, claim.id) is Reason.SNOOZED
    assert "(in 1 min 40 s)" in await sentence(house, claim.id)
    house.clock.advance(100)
    await house.retry_later(await house.claim_one(), wait=60)
    assert await reason(house, claim.id) is Reason.RETRY


async def test_a_suspect_that_waits(house: House) -> None:
    claim = await house.running()
    for _ in range(3):
        await house.lose(claim)
        if (await house.get(claim.id)).run_at <= house.now:
            claim = await house.claim_one()
    answer = await why(house, claim.id)
    assert answer.reason is Reason.LOST
    assert "lost its worker 3 times" in answer.sentence
    assert "alone in a process of its own" in answer.sentence
    assert "its worker was lost 3 times" in answer.warnings


async def test_a_parked_job(house: House) -> None:
    await serve(house)
    payload = '{"function": "shop.sell", "args": []}'
    known = FunctionInfo(name="shop.sell", queue="default", defaults={}, parameters={})
    claim = await house.running(payload=payload)
    await house.release(Release.parked(claim, 15))
    answer = await why(house, claim.id)
    assert answer.reason is Reason.PARKED
    assert "the code for the function shop.sell (never announced); the next try is in 15 s" in answer.sentence
    await house.store.announce([known])
    house.clock.advance(5)
    assert "shop.sell (last announced 5 s ago); the next try is in 10 s" in await sentence(house, claim.id)
    strange = await house.running("far", kind="http")
    await house.release(Release.parked(strange, 15, "the key of the vault is missing here"))
    assert "the code for jobs of kind http" in await sentence(house, strange.id)
    assert "The last one said: the key of the vault is missing here." in await sentence(house, strange.id)


# Waiting for its turn


async def test_a_paused_queue_tells_since_when_and_by_whom(house: House) -> None:
    await serve(house)
    job_id = await house.submit()
    await house.store.change_queue("default", {"paused": True}, by="ann")
    house.clock.advance(30)
    await house.store.change_queue("default", {"max_running": 5}, by="bob")
    answer = await why(house, job_id)
    assert answer.reason is Reason.PAUSED
    assert answer.sentence == "The queue default is paused since 2030-01-01 00:00:00 UTC (30 s ago) by ann."
    assert answer.advice == "To go on: headway queues resume default"
    later = await why(house, await house.submit(delay=100))
    assert later.reason is Reason.NOT_DUE
    assert later.warnings == ("the queue default is paused",)
    await house.store.change_queue("default", {"paused": False}, by="ann")
    assert await reason(house, job_id) is Reason.NEXT
    await house.store.set_queue(QueueSettings(name="default", paused=True))
    assert await sentence(house, job_id) == "The queue default is paused since 2030-01-01 00:00:30 UTC (0 s ago)."


async def test_a_queue_that_no_worker_serves(house: House) -> None:
    await serve(house, queues=("other",))
    job_id = await house.submit()
    assert await reason(house, job_id) is Reason.NO_WORKER
    await serve(house, queues=("other", "default"))
    assert await reason(house, job_id) is Reason.NEXT
    house.clock.advance(90)
    answer = await why(house, job_id)
    assert answer.reason is Reason.NO_WORKER
    assert "(the last one, worker, was seen 1 min 30 s ago)" in answer.sentence
    assert answer.advice is not None
    assert "--queue default" in answer.advice


async def test_busy_workers_and_those_before_it(house: House) -> None:
    await serve(house, slots=2)
    for _ in range(2):
        await house.running()
    before = [await house.submit() for _ in range(3)]
    job_id = await house.submit()
    await house.submit()
    await house.submit(priority=5, delay=1000)
    urgent = await house.submit(priority=5)
    assert await reason(house, job_id) is Reason.BUSY
    assert await sentence(house, job_id) == (
        "All 2 slots of the worker that serves the queue default are busy, and 4 jobs are before it."
    )
    assert "and no job is before it" in await sentence(house, urgent)
    assert "and 1 job is before it" in await sentence(house, before[0])


async def test_workers_of_several_queues_tell_their_slots_together(house: House) -> None:
    await serve(house, slots=5, queues=("default", "mail"))
    await house.running()
    answer = await why(house, await house.submit())
    assert answer.reason is Reason.BUSY
    assert "with 5 slots for default and mail together, holds 1 job" in answer.sentence


async def test_a_job_whose_turn_it_is(house: House) -> None:
    await serve(house)
    answer = await why(house, await house.submit())
    assert answer.reason is Reason.NEXT
    assert "no job is before it" in answer.sentence


# Limits


async def test_a_full_key(house: House) -> None:
    await serve(house)
    await house.store.set_key_limit("vip", Limit(max_running=1))
    holder = await house.running("sell", key="vip")
    first, second = await house.submit(key="vip"), await house.submit(key="vip")
    assert await house.claim(2) == []
    assert await house.states(first, second) == ["blocked", "blocked"]
    answer = await why(house, second)
    assert answer.reason is Reason.LIMIT
    assert answer.sentence == (
        f"The job waits at the limit of the key vip: max_running 1 is reached by job {holder.id} (sell, running), "
        "1 job is before it there."
    )
    assert "before it" not in await sentence(house, first)
    await house.complete(holder)
    assert await reason(house, first) is Reason.NEXT
    assert await reason(house, second) is Reason.NEXT


async def test_a_key_in_a_queue_that_has_used_up_its_rate(house: House) -> None:
    await serve(house)
    await house.store.set_queue(QueueSettings(name="default", key_rate=Rate(1, 60.0)))
    await house.running(key="vip")
    job_id = await house.submit(key="vip")
    assert await house.claim() == []
    house.clock.advance(20)
    assert await sentence(house, job_id) == (
        "The job waits at the limit of the key vip in the queue default: rate 1/60s is used up and opens again in 39 s."
    )


async def test_a_full_queue(house: House) -> None:
    await serve(house)
    await house.store.set_queue(QueueSettings(name="default", max_running=1))
    holder = await house.running("sell")
    job_id = await house.submit()
    assert await house.claim() == []
    answer = await why(house, job_id)
    assert (await house.get(job_id)).state is State.SCHEDULED
    assert answer.reason is Reason.LIMIT
    assert f"the queue default: max_running 1 is reached by job {holder.id} (sell, running)." in answer.sentence


async def test_a_limit_that_was_lifted_holds_nobody(house: House) -> None:
    await serve(house)
    await house.store.set_key_limit("vip", Limit(max_running=1))
    await house.running(key="vip")
    job_id = await house.submit(key="vip")
    assert await house.claim() == []
    await house.store.set_key_limit("vip", None)
    answer = await why(house, job_id)
    assert answer.reason is Reason.NEXT
    assert "waits for nothing any more" in answer.sentence
    await house.store.reopen_gates()


# Other jobs


async def test_a_job_that_waits_for_the_one_before_it(house: House) -> None:
    claim = await house.running("import")
    job_id = await house.submit("import", on_conflict=OnConflict.WAIT)
    answer = await why(house, job_id)
    assert answer.reason is Reason.OTHER_JOB
    assert answer.sentence == (f"The job waits for job {claim.id} (import, running), in its line of the key import.")


async def test_a_job_that_runs_after_others(house: House) -> None:
    parents = [await house.submit("import", delay=100) for _ in range(5)]
    answer = await why(house, await house.submit(after=tuple(parents)))
    assert answer.reason is Reason.OTHER_JOB
    assert answer.sentence.startswith(f"The job waits for job {parents[0]} (import, scheduled), job {parents[1]} ")
    assert answer.sentence.endswith(" and 2 more, after which it is to run.")


async def test_a_job_held_back_because_a_parent_failed(house: House) -> None:
    parent = await house.running("import")
    job_id = await house.submit(after=(parent.id,), on_parent_failure=OnParentFailure.HOLD)
    await house.fail(parent)
    answer = await why(house, job_id)
    assert answer.reason is Reason.PARENT_FAILED
    assert f"was to run after job {parent.id} (import, failed), which did not complete" in answer.sentence
    assert answer.advice is not None
    assert f"headway jobs release {job_id}" in answer.advice


async def test_a_job_on_hold(house: House) -> None:
    job_id = await house.submit(hold=True)
    assert await reason(house, job_id) is Reason.ON_HOLD
    assert await house.schedule(job_id) is State.SCHEDULED


# Held and ended


async def test_a_running_job(house: House) -> None:
    await serve(house)
    claim = await house.running()
    house.clock.advance(5)
    answer = await why(house, claim.id)
    assert answer.reason is Reason.RUNNING
    assert answer.sentence == (
        "The job is in the hands of worker worker since 2030-01-01 00:00:01 UTC (5 s ago), attempt 1."
    )


async def test_a_running_job_whose_worker_is_silent(house: House) -> None:
    claim = await house.running()
    house.clock.advance(TTL + 5)
    answer = await why(house, claim.id)
    assert answer.reason is Reason.LEASE_LAPSED
    assert "whose lease lapsed 5 s ago" in answer.sentence


async def test_a_job_that_is_being_cancelled(house: House) -> None:
    claim = await house.running()
    await house.cancel(claim.id, by="ann", reason="wrong address")
    house.clock.advance(70)
    answer = await why(house, claim.id)
    assert answer.reason is Reason.CANCELLING
    assert "(1 min 10 s ago), asked by ann because: wrong address" in answer.sentence
    assert answer.warnings == ("the cancel has not been carried out for 1 min 10 s",)
    await house.delete(claim.id)
    assert "the job is removed as soon as it has ended" in (await why(house, claim.id)).warnings


async def finish(house: House, claim: Claim, outcome: Outcome | None) -> str:
    await (house.complete(claim) if outcome is None else house.fail(claim, outcome=outcome))
    assert await reason(house, claim.id) is Reason.ENDED
    return await sentence(house, claim.id)


async def test_jobs_that_have_ended(house: House) -> None:
    assert "completed at 2030" in await finish(house, await house.running(), None)
    failed = await finish(house, await house.running(), Outcome.TIMED_OUT)
    assert "ended as failed, outcome timed_out, at 2030" in failed
    assert failed.endswith("with attempt 1, after running for 0.5 s: ValueError: it broke.")
    cancelled = await house.submit()
    await house.cancel(cancelled, by="ann", reason="not needed")
    told = await sentence(house, cancelled)
    assert "was cancelled on request of ann at 2030" in told
    assert told.endswith("before it began: Cancelled: not needed.")


async def test_a_job_whose_time_is_over(house: House) -> None:
    job_id = await house.submit(expires_in=10)
    assert (await why(house, job_id)).warnings[-1] == "the job expires in 10 s if it has not begun by then"
    house.clock.advance(11)
    assert await reason(house, job_id) is Reason.EXPIRED
    await house.store.expire()
    assert await reason(house, job_id) is Reason.EXPIRED
    assert "it had not begun by 2030-01-01 00:00:10 UTC" in await sentence(house, job_id)


async def test_a_function_that_nobody_announced_is_warned_of(house: House) -> None:
    await serve(house)
    job_id = await house.submit(payload='{"function": "shop.sell"}')
    assert (await why(house, job_id)).warnings == ("no worker has announced the function shop.sell",)
