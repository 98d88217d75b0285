"""Claiming: who comes first, who must wait, and that nobody is claimed twice."""

import asyncio
from uuid import UUID

from headway.contracts.stores.house import House, ids
from headway.model.job import Release
from headway.model.limits import QueueSettings
from headway.model.states import Outcome, State


async def test_the_highest_priority_comes_first(house: House) -> None:
    order = [await house.submit(priority=priority) for priority in (0, -100, 5, 100, 5)]
    claimed = ids(await house.claim(5))
    assert claimed == [order[3], order[2], order[4], order[0], order[1]]


async def test_within_a_priority_the_earlier_time_comes_first_and_then_the_smaller_id(house: House) -> None:
    house.clock.advance(100)
    now_first, now_second = await house.submit(), await house.submit()
    earlier = await house.submit(run_at=house.after(-50))
    assert ids(await house.claim(3)) == [earlier, now_first, now_second]


async def test_order_holds_over_many_small_claims(house: House) -> None:
    jobs = [house.job(priority=number % 3) for number in range(30)]
    await house.store.submit(jobs)
    expected = [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.id))]
    claimed: list[UUID] = []
    while claims := (await house.ask(4)).claims:
        claimed += ids(claims)
    assert claimed == expected


async def test_a_more_urgent_job_overtakes_those_that_wait(house: House) -> None:
    for _ in range(3):
        await house.submit()
    await house.claim()
    urgent = await house.submit(priority=50)
    assert (await house.claim_one()).id == urgent


async def test_a_job_is_never_claimed_before_its_time(house: House) -> None:
    job_id = await house.submit(run_at=house.after(60))
    house.clock.advance(59.999)
    assert (await house.ask()).claims == []
    house.clock.advance(0.001)
    assert ids((await house.ask()).claims) == [job_id]


async def test_an_urgent_job_of_the_future_holds_back_nobody(house: House) -> None:
    await house.submit(priority=100, run_at=house.after(60))
    due = await house.submit(priority=-100)
    assert ids(await house.claim(2)) == [due]


async def test_a_claim_brings_no_more_than_was_asked_for(house: House) -> None:
    await house.store.submit([house.job(priority=number % 4) for number in range(12)])
    assert len(await house.claim(5)) == 5
    assert len(await house.claim(100)) == 7
    assert await house.claim(100) == []


async def test_a_claim_takes_from_its_own_queue_only(house: House) -> None:
    mail, sms = await house.submit(queue="mail"), await house.submit(queue="sms")
    assert ids(await house.claim(5, queue="mail")) == [mail]
    assert ids(await house.claim(5, queue="sms")) == [sms]
    assert await house.claim(5, queue="none") == []


async def test_a_claim_hands_over_what_is_needed_to_run_the_job(house: House) -> None:
    job_id = await house.submit("report", payload='{"a":1}', timeout=5.0, correlation_id="c", traceparent="t")
    claim = await house.claim_one()
    assert (claim.id, claim.name, claim.kind, claim.queue, claim.payload) == (
        job_id,
        "report",
        "call",
        "default",
        '{"a":1}',
    )
    assert (claim.attempt, claim.token, claim.failures, claim.losses) == (1, 1, 0, 0)
    assert (claim.timeout, claim.correlation_id, claim.traceparent) == (5.0, "c", "t")
    job = await house.get(job_id)
    assert (job.state, job.worker, job.claimed_at) == (State.RUNNING, str(house.worker.id), house.now)


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(house: House) -> None:
    job_id = await house.submit()
    other = await house.submit(queue="other")
    await house.store.set_queue(QueueSettings(name="default", paused=True))
    assert await house.claim() == []
    assert await house.store.peek(["default"]) == {}
    assert ids(await house.claim(queue="other")) == [other]
    await house.store.set_queue(QueueSettings(name="default"))
    assert ids(await house.claim()) == [job_id]


async def test_a_paused_queue_with_limits_gives_nothing_either(house: House) -> None:
    await house.submit()
    await house.store.set_queue(QueueSettings(name="default", paused=True, max_running=5))
    assert await house.claim() == []


async def test_what_has_begun_expires_no_more(house: House) -> None:
    failed, snoozed, lost, parked = [await house.submit(expires_in=10.0) for _ in range(4)]
    claims = {claim.id: claim for claim in await house.claim(3)}
    await house.retry_later(claims[failed], wait=100)
    await house.release(Release.snooze(claims[snoozed], 0.5, 100))
    await house.release(Release.give_back(await house.claim_one()))
    house.clock.advance(31)
    await house.store.rescue()
    assert await house.store.expire() == [parked], "given back before it began"
    assert await house.states(failed, snoozed, lost) == ["scheduled"] * 3
    error = (await house.get(failed)).error
    assert error is not None
    assert error.message == "it broke"
    house.clock.advance(100)
    assert {claim.id for claim in await house.claim(5)} == {failed, snoozed, lost}


async def test_expired_jobs_are_not_claimed_and_are_cancelled_by_expire(house: House) -> None:
    expiring = await house.submit(expires_in=10)
    lasting = await house.submit(expires_in=1000)
    house.clock.advance(10)
    assert ids(await house.claim(2)) == [lasting]
    assert await house.store.expire() == [expiring]
    job = await house.get(expiring)
    assert (job.state, job.outcome, job.finished_at) == (State.CANCELLED, Outcome.EXPIRED, house.now)
    assert await house.store.expire() == []


async def test_expired_jobs_are_not_claimed_where_limits_hold(house: House) -> None:
    await house.store.set_queue(QueueSettings(name="default", max_running=5))
    await house.submit(expires_in=10)
    house.clock.advance(10)
    assert await house.claim() == []
    assert len(await house.store.expire()) == 1


async def test_jobs_that_began_in_time_do_not_expire(house: House) -> None:
    claim = await house.running(expires_in=10)
    house.clock.advance(20)
    assert await house.store.expire() == []
    await house.complete(claim)


async def test_blocked_and_held_jobs_expire_too(house: House) -> None:
    parent = await house.submit(hold=True)
    blocked = await house.submit(after=(parent,), expires_in=10)
    held = await house.submit(hold=True, expires_in=5)
    house.clock.advance(10)
    assert await house.store.expire() == [held, blocked]


async def test_peek_tells_when_the_first_job_of_each_queue_is_due(house: House) -> None:
    await house.submit(queue="soon", delay=30, priority=-5)
    await house.submit(queue="soon", delay=60, priority=5)
    await house.submit(queue="due")
    house.clock.advance(5)
    assert await house.store.peek(["soon", "due", "empty"]) == {"soon": 25.0, "due": -5.0}


async def test_two_claimers_never_get_the_same_job(shared: House) -> None:
    other = await shared.second()
    await shared.store.submit([shared.job(priority=number % 5) for number in range(200)])

    async def drain(house: House) -> list[UUID]:
        taken: list[UUID] = []
        while claims := (await house.ask(7)).claims:
            taken += ids(claims)
        return taken

    drained = await asyncio.gather(drain(shared), drain(other), drain(shared), drain(other))

    everything = [job_id for taken in drained for job_id in taken]
    everything += [*await drain(shared), *await drain(other)]
    assert len(everything) == len(set(everything)) == 200
