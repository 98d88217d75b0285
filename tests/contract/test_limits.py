"""Limits that hold for the whole cluster."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from headway.model.job import Claim, Release
from headway.model.limits import Limit, QueueSettings, Rate
from headway.model.states import State
from tests.contract.house import House, ids


async def limit_queue(house: House, **limits: Any) -> None:
    await house.store.set_queue(QueueSettings(name="default", **limits))


async def submit_many(house: House, count: int, key: str | None = None, **options: Any) -> list[UUID]:
    jobs = [house.job(key=key, **options) for _ in range(count)]
    await house.store.submit(jobs)
    return [job.id for job in jobs]


async def running_now(house: House, queue: str = "default") -> int:
    return (await house.store.counts())[queue].get(State.RUNNING, 0)


async def test_settings_are_stored_and_read_back(house: House) -> None:
    settings = QueueSettings(
        name="mail",
        paused=True,
        max_running=5,
        rate=Rate.parse("10/s"),
        key_max_running=1,
        key_rate=Rate.parse("5/10s"),
        keep_completed=10.0,
        keep_failed=20.0,
    )
    await house.store.set_queue(settings)
    await house.store.set_key_limit("vip", Limit(max_running=2, rate=Rate.parse("100/m")))
    limits = await house.store.limits()
    assert limits.queues == {"mail": settings}
    assert limits.keys == {"vip": Limit(max_running=2, rate=Rate.parse("100/m"))}
    await house.store.set_key_limit("vip", None)
    assert (await house.store.limits()).keys == {}


# A queue's own limits


async def test_a_queue_runs_no_more_than_its_limit(house: House) -> None:
    await limit_queue(house, max_running=3)
    jobs = await submit_many(house, 5)
    first = await house.claim(10)
    assert ids(first) == jobs[:3]
    assert await house.claim(10) == []
    await house.complete(first[0])
    assert ids(await house.claim(10)) == [jobs[3]]
    assert await running_now(house) == 3


async def test_whatever_ends_an_attempt_frees_its_slot(house: House) -> None:
    await limit_queue(house, max_running=1)

    async def lose_in_cancelling(claim: Claim) -> None:
        await house.cancel(claim.id)
        await house.lose(claim)

    ends: list[Callable[[Claim], Awaitable[object]]] = [
        house.complete,
        house.fail,
        house.give_up,
        house.lose,
        lose_in_cancelling,
        lambda claim: house.retry_later(claim, 100),
        lambda claim: house.release(Release.snooze(claim, 0.5, 100)),
        lambda claim: house.release(Release.give_back(claim)),
        lambda claim: house.release(Release.parked(claim, 100)),
    ]
    await submit_many(house, len(ends))
    for end in ends:
        [claim] = await house.claim(5)
        assert await house.claim(5) == []
        await end(claim)
    assert len(await house.claim(5)) == 1


async def test_a_queue_starts_no_more_than_its_rate(house: House) -> None:
    await limit_queue(house, rate=Rate(2, 10.0))
    jobs = await submit_many(house, 6)
    assert ids((await house.ask(10)).claims) == jobs[:2]
    asked = await house.ask(10)
    assert asked.claims == []
    assert asked.retry_in == 5.0
    house.clock.advance(4.9)
    assert (await house.ask(10)).claims == []
    house.clock.advance(0.1)
    assert ids((await house.ask(10)).claims) == jobs[2:3]
    house.clock.advance(1000)
    assert ids((await house.ask(10)).claims) == jobs[3:5]


async def test_order_holds_under_a_limit(house: House) -> None:
    await limit_queue(house, max_running=1)
    low, high = await house.submit(priority=-1), await house.submit(priority=1)
    first = await house.claim(10)
    assert ids(first) == [high]
    await house.complete(*first)
    assert ids(await house.claim(10)) == [low]


# Limits of keys


async def test_each_key_of_a_queue_runs_no_more_than_its_limit(house: House) -> None:
    await limit_queue(house, key_max_running=1)
    a, b = await submit_many(house, 3, key="a"), await submit_many(house, 2, key="b")
    first = await house.claim(10)
    assert set(ids(first)) == {a[0], b[0]}
    assert await house.claim(10) == []
    assert await house.states(*a, *b) == ["running", "blocked", "blocked", "running", "blocked"]
    await house.complete(next(claim for claim in first if claim.id == a[0]))
    assert ids(await house.claim(10)) == [a[1]]


async def test_a_key_runs_no_more_than_its_limit_over_all_queues(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=2))
    mail = await submit_many(house, 2, key="vip", queue="mail")
    sms = await submit_many(house, 2, key="vip", queue="sms")
    other = await house.submit(queue="sms")
    [first, _] = await house.claim(10, queue="mail")
    assert ids(await house.claim(10, queue="sms")) == [other]
    assert await house.states(*mail, *sms) == ["running", "running", "blocked", "blocked"]
    await house.complete(first)
    assert ids(await house.claim(10, queue="sms")) == [sms[0]]


async def test_blocked_jobs_are_promoted_in_order(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    await submit_many(house, 1, key="vip", priority=100)
    low = await submit_many(house, 2, key="vip", priority=-1)
    high = await submit_many(house, 2, key="vip", priority=1)
    claims = await house.claim(10)
    assert len(claims) == 1
    for expected in (*high, *low):
        await house.complete(*claims)
        claims = await house.claim(10)
        assert ids(claims) == [expected]


async def test_blocked_jobs_say_why_and_leave_no_trace_when_promoted(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    _, second = await submit_many(house, 2, key="vip")
    [claim] = await house.claim(10)
    job = await house.get(second)
    assert (job.state, job.wait_reason) == (State.BLOCKED, "limit")
    await house.complete(claim)
    job = await house.get(second)
    assert (job.state, job.wait_reason) == (State.SCHEDULED, None)


async def test_jobs_of_a_full_key_hold_up_nobody_behind_them(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    vip = await submit_many(house, 50, key="vip", priority=10)
    other = await house.submit()
    claimed: list[UUID] = []
    for _ in range(4):
        claimed += ids((await house.ask(5)).claims)
    assert claimed == [vip[0], other]


async def test_a_full_key_in_one_queue_does_not_hold_back_the_same_key_in_another(house: House) -> None:
    await limit_queue(house, key_max_running=1)
    await house.store.set_queue(QueueSettings(name="free", max_running=100))
    await submit_many(house, 3, key="k")
    free = await submit_many(house, 3, key="k", queue="free")
    await house.claim(10)
    assert ids(await house.claim(10, queue="free")) == free


async def test_a_job_under_two_limits_passes_only_where_both_have_room(house: House) -> None:
    await limit_queue(house, key_max_running=2, max_running=3)
    await house.store.set_key_limit("a", Limit(max_running=1))
    a, b = await submit_many(house, 2, key="a"), await submit_many(house, 3, key="b")
    claims = await house.claim(10)
    claims += await house.claim(10)
    assert set(ids(claims)) == {a[0], b[0], b[1]}
    await house.complete(*claims)
    assert set(ids(await house.claim(10))) == {a[1], b[2]}


async def test_a_key_starts_no_more_than_its_rate_and_goes_on_by_time(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(rate=Rate(2, 10.0)))
    jobs = await submit_many(house, 5, key="vip")
    first = (await house.ask(10)).claims
    assert ids(first) == jobs[:2]
    await house.complete(*first)
    assert await house.store.reopen_gates() == 5.0
    assert (await house.ask(10)).claims == []
    house.clock.advance(5)
    await house.store.reopen_gates()
    assert ids((await house.ask(10)).claims) == jobs[2:3]
    house.clock.advance(10)
    await house.store.reopen_gates()
    assert ids((await house.ask(10)).claims) == jobs[3:5]
    assert await house.store.reopen_gates() is None


async def test_a_raised_limit_lets_more_in(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    jobs = await submit_many(house, 4, key="vip")
    await house.claim(10)
    await house.store.set_key_limit("vip", Limit(max_running=3))
    await house.store.reopen_gates()
    assert ids(await house.claim(10)) == jobs[1:3]
    assert await running_now(house) == 3


async def test_a_lifted_limit_lets_all_in(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    jobs = await submit_many(house, 4, key="vip")
    await house.claim(10)
    await house.store.set_key_limit("vip", None)
    await house.store.reopen_gates()
    assert ids(await house.claim(10)) == jobs[1:]


async def test_a_lowered_limit_lets_none_in_before_enough_have_ended(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=3))
    jobs = await submit_many(house, 5, key="vip")
    claims = await house.claim(10)
    await house.store.set_key_limit("vip", Limit(max_running=1))
    for claim in claims[:2]:
        await house.complete(claim)
        assert await house.claim(10) == []
    await house.complete(claims[2])
    assert ids(await house.claim(10)) == [jobs[3]]


async def test_a_promoted_job_that_is_cancelled_gives_its_turn_to_the_next(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    jobs = await submit_many(house, 3, key="vip")
    [claim] = await house.claim(10)
    await house.complete(claim)
    await house.cancel(jobs[1])
    await house.store.reopen_gates()
    assert ids(await house.claim(10)) == [jobs[2]]


async def test_a_blocked_job_may_be_cancelled_and_deleted(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    jobs = await submit_many(house, 4, key="vip")
    [claim] = await house.claim(10)
    await house.cancel(jobs[1])
    await house.delete(jobs[2])
    await house.complete(claim)
    assert ids(await house.claim(10)) == [jobs[3]]


async def test_a_deleted_running_job_frees_its_slot(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    jobs = await submit_many(house, 2, key="vip")
    [claim] = await house.claim(10)
    await house.delete(jobs[0])
    assert await house.claim(10) == []
    await house.give_up(claim)
    assert ids(await house.claim(10)) == [jobs[1]]


async def test_two_claimers_together_never_exceed_a_limit(shared: House) -> None:
    other = await shared.second()
    await limit_queue(shared, max_running=4)
    await shared.store.set_key_limit("vip", Limit(max_running=2))
    await submit_many(shared, 20, key="vip")
    await submit_many(shared, 20)

    async def work(house: House) -> int:
        done = 0
        for _ in range(12):
            claims = (await house.ask(3)).claims
            assert await running_now(shared) <= 4
            await house.complete(*claims)
            done += len(claims)
        return done

    done = sum(await asyncio.gather(work(shared), work(other)))
    for _ in range(30):
        claims = await shared.claim(10)
        assert len(claims) <= 4
        assert sum(claim.name == "mail" for claim in claims) == len(claims)
        await shared.complete(*claims)
        done += len(claims)
    assert done == 40


async def test_who_comes_to_wait_in_the_moment_a_slot_is_freed_is_called(shared: House) -> None:
    """Nobody looks after the gates here: whoever is forgotten stays so."""
    other = await shared.second()
    await shared.store.set_key_limit("vip", Limit(max_running=1))
    for _ in range(40):
        await submit_many(shared, 2, key="vip")
        [first] = await shared.claim(1)
        _, met = await asyncio.gather(shared.complete(first), other.ask(1))
        [second] = met.claims or await other.claim(1)
        await other.complete(second)
