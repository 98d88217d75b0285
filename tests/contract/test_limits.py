"""Limits that hold for the whole cluster."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import asyncpg

from headway.model.filters import JobFilter
from headway.model.job import Claim, Dedupe, Release
from headway.model.limits import Limit, QueueSettings, Rate
from headway.model.states import State
from headway.store.postgres.driver import PostgresDriver
from headway.store.postgres.foreign import run_asyncpg
from headway.store.scripts.submit import whole
from headway.store.sql import Lane
from headway.store.statements import Script, one
from tests.contract.house import House, accepted, ids


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


# Submitted while a key is full


async def full_key(house: House, **limit: Any) -> Claim:
    """A key `vip` whose gate is closed: one job runs (returned), another waits."""
    await house.store.set_key_limit("vip", Limit(**(limit or {"max_running": 1})))
    await submit_many(house, 2, key="vip")
    [claim] = await house.claim(10)
    return claim


async def in_the_way(house: House, queue: str = "default") -> int:
    """How many jobs of the queue a claim may meet."""
    return (await house.store.counts())[queue].get(State.SCHEDULED, 0)


async def test_a_job_submitted_to_a_full_key_is_blocked_at_once(house: House) -> None:
    await full_key(house)
    job = house.job("vip")
    assert job.plain
    answer = await house.accept(job)
    assert answer.state is State.BLOCKED
    stored = await house.get(job.id)
    assert (stored.state, stored.wait_reason) == (State.BLOCKED, "limit")
    assert [what for _, what in await house.told(job.id)] == ["blocked"]
    assert await in_the_way(house) == 0


async def test_a_keyed_submission_to_a_full_key_is_blocked_at_once(house: House) -> None:
    await full_key(house)
    answer = await house.accept(house.job(key="vip", dedupe=Dedupe(key="d", window=60)))
    assert answer.state is State.BLOCKED
    assert [what for _, what in await house.told(answer.job_id)] == ["blocked"]


async def test_only_due_jobs_are_blocked_at_once(house: House) -> None:
    await full_key(house)
    later = await house.accept(house.job(key="vip", delay=10))
    past = await house.accept(house.job(key="vip", run_at=house.after(-10)))
    held = await house.accept(house.job(key="vip", hold=True))
    assert [later.state, past.state, held.state] == [State.SCHEDULED, State.BLOCKED, State.CREATING]


async def test_a_full_key_blocks_only_its_own_submissions(house: House) -> None:
    await limit_queue(house, key_max_running=1)
    await submit_many(house, 2, key="a")
    await house.claim(10)
    same = await house.accept(house.job(key="a"))
    other = await house.accept(house.job(key="b"))
    elsewhere = await house.accept(house.job(key="a", queue="mail"))
    assert [same.state, other.state, elsewhere.state] == [State.BLOCKED, State.SCHEDULED, State.SCHEDULED]


async def test_a_job_submitted_to_two_full_gates_is_stored_once_and_runs(house: House) -> None:
    await limit_queue(house, key_max_running=1)
    await submit_many(house, 2, key="vip")
    [first] = await house.claim(10)
    await house.store.set_key_limit("vip", Limit(max_running=1))
    await house.store.set_queue(QueueSettings(name="mail", max_running=100))
    await submit_many(house, 3, key="vip", queue="mail")
    [second] = await house.claim(10, queue="mail")
    last = await house.accept(house.job(key="vip"))
    assert last.state is State.BLOCKED
    assert [what for _, what in await house.told(last.job_id)] == ["blocked"]
    await house.complete(first, second)
    seen: set[UUID] = set()
    for _ in range(20):
        await house.store.reopen_gates()
        claims = await house.claim(10) + await house.claim(10, queue="mail")
        assert len(claims) <= 1
        seen |= set(ids(claims))
        await house.complete(*claims)
    assert last.job_id in seen
    assert len(seen) == 4


async def test_the_history_of_a_job_blocked_at_once_begins_with_it(house: House) -> None:
    running = await full_key(house)
    job_id = await house.submit(key="vip", created_by="ann")
    submitted = house.now
    await house.complete(running)
    [other] = await house.claim(10)
    await house.complete(other)
    promoted = house.now
    [claim] = await house.claim(10)
    await house.complete(claim)
    assert claim.id == job_id
    assert await house.told(job_id) == [
        (submitted, "blocked"),
        (promoted, "scheduled"),
        (house.now, "running"),
        (house.now, "completed"),
    ]
    [first, *_] = await house.store.history(job_id)
    assert (first.by, first.detail) == ("ann", "submitted at the full key:vip")


async def test_the_history_of_a_job_blocked_by_a_claim_begins_before_it(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    _, job_id = await submit_many(house, 2, key="vip")
    await house.claim(10)
    assert [what for _, what in await house.told(job_id)] == ["scheduled", "blocked"]


async def test_jobs_blocked_by_a_claim_and_at_once_are_promoted_in_one_order(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    await submit_many(house, 1, key="vip", priority=100)
    met = [await house.submit(key="vip", priority=priority) for priority in (-1, 1)]
    claims = await house.claim(10)
    at_once = [await house.submit(key="vip", priority=priority) for priority in (-1, 0, 1, 2)]
    past = await house.submit(key="vip", run_at=house.after(-100))
    for expected in (at_once[3], met[1], at_once[2], past, at_once[1], met[0], at_once[0]):
        await house.complete(*claims)
        claims = await house.claim(10)
        assert ids(claims) == [expected]


async def test_a_repeat_of_a_submission_to_a_full_key_leaves_no_second_line(house: House) -> None:
    await full_key(house)
    job = house.job("vip")
    assert await house.accept(job) == await house.accept(job)
    assert [what for _, what in await house.told(job.id)] == ["blocked"]


async def test_when_the_last_in_line_was_let_in_jobs_are_scheduled_again(house: House) -> None:
    running = await full_key(house)
    await house.complete(running)
    assert (await house.accept(house.job(key="vip"))).state is State.SCHEDULED


async def test_whoever_waits_at_a_gate_is_looked_after(house: House) -> None:
    running = await full_key(house)
    assert (await house.store.look()).closed
    await house.complete(running)
    assert not (await house.store.look()).closed


async def test_a_gate_whose_line_was_cancelled_opens(house: House) -> None:
    running = await full_key(house)
    waiting = await house.submit(key="vip")
    for job in await house.store.find(JobFilter(states=("blocked",))):
        await house.cancel(job.id)
    await house.complete(running)
    assert await house.state(waiting) is State.CANCELLED
    assert (await house.accept(house.job(key="vip"))).state is State.SCHEDULED
    assert len(await house.claim(10)) == 1


async def test_a_lifted_limit_lets_all_in_that_were_submitted_meanwhile(house: House) -> None:
    await full_key(house)
    jobs = await submit_many(house, 1200, name="vip")
    assert await in_the_way(house) == 0
    await house.store.set_key_limit("vip", None)
    turns = 0
    while await house.store.reopen_gates() == 0.0:
        turns += 1
    assert turns == 2, "a long line goes on at once, step by step"
    assert set(jobs) <= set(ids(await house.claim(2000)))


async def test_a_rate_lets_in_those_that_were_blocked_at_once(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(rate=Rate(1, 10.0)))
    await submit_many(house, 2, key="vip")
    await house.claim(10)
    late = await house.accept(house.job(key="vip"))
    assert late.state is State.BLOCKED
    claimed: list[UUID] = []
    for _ in range(2):
        house.clock.advance(10)
        await house.store.reopen_gates()
        claimed += ids((await house.ask(10)).claims)
    assert claimed[-1] == late.job_id


async def test_never_more_than_the_limit_run_of_those_met_and_those_blocked_at_once(house: House) -> None:
    await limit_queue(house, key_max_running=2)
    await house.store.set_key_limit("vip", Limit(max_running=3))
    everyone = await submit_many(house, 10, name="vip")
    ended: list[UUID] = []
    for turn in range(40):
        if turn < 10:
            everyone += await submit_many(house, 2, name="vip", priority=turn % 3)
            everyone += await submit_many(house, 1, key="vip", queue="mail")
        claims = await house.claim(10) + await house.claim(10, queue="mail")
        assert await running_now(house) <= 2
        assert sum(states.get(State.RUNNING, 0) for states in (await house.store.counts()).values()) <= 3
        await house.complete(*claims)
        ended += ids(claims)
        await house.store.reopen_gates()
    assert sorted(ended) == sorted(everyone)


# A backlog that stood in the queue before its key was full


async def test_a_backlog_leaves_the_way_step_by_step_while_others_go_on(house: House) -> None:
    backlog = await submit_many(house, 1300, key="vip")
    await house.store.set_key_limit("vip", Limit(max_running=1))
    house.clock.advance(60)
    [first] = (await house.ask(5)).claims
    assert first.id == backlog[0]
    asked = 0
    while True:
        other = await house.submit(priority=asked % 2)
        got = await house.ask(5)
        assert ids(got.claims) == [other]
        await house.complete(*got.claims)
        asked += 1
        if got.retry_in is None:
            break
    assert asked == 2
    assert await in_the_way(house) == 0
    await house.complete(first)
    assert ids((await house.ask(5)).claims) == [backlog[1]]


async def test_promoted_jobs_are_found_among_a_backlog(house: House) -> None:
    backlog = await submit_many(house, 1300, key="vip")
    await house.store.set_key_limit("vip", Limit(max_running=1))
    house.clock.advance(60)
    claims = (await house.ask(5)).claims
    for expected in backlog[1:4]:
        assert (await house.ask(5)).claims == []
        await house.complete(*claims)
        claims = (await house.ask(5)).claims
        assert ids(claims) == [expected]


async def test_a_backlog_goes_on_when_its_limit_is_raised(house: House) -> None:
    await submit_many(house, 1300, key="vip")
    await house.store.set_key_limit("vip", Limit(max_running=1))
    house.clock.advance(60)
    await house.ask(5)
    await house.ask(5)
    await house.store.set_key_limit("vip", Limit(max_running=2000))
    for _ in range(10):
        await house.store.reopen_gates()
        await house.claim(500)
    assert await running_now(house) == 1300


async def test_a_job_put_before_the_place_a_claim_has_reached_is_found(house: House) -> None:
    await submit_many(house, 3000, key="vip")
    await house.store.set_key_limit("vip", Limit(max_running=1))
    house.clock.advance(60)
    await house.ask(5)
    await house.ask(5)
    early = await house.submit(run_at=house.after(-50))
    assert (await house.ask(5)).claims == []
    house.clock.advance(2.5)
    assert ids((await house.ask(5)).claims) == [early]


# A gate that opens while a job relies on its being closed


async def submitted_while_the_gate_opens(house: House, other: House) -> UUID:
    """A job whose submission relies on a closed gate, and ends after the gate has opened."""
    running = await full_key(house)
    stranded, slow = house.job("vip"), house.job()
    driver = house.store._driver
    assert isinstance(driver, PostgresDriver)
    outsider = await asyncpg.connect(driver._url)
    hold = outsider.transaction()
    await hold.start()
    # The same id in a transaction that is open: whoever submits it waits for the end of that.
    await run_asyncpg(outsider, whole([slow]))
    submitting = asyncio.create_task(house.store.submit([stranded, slow]))
    while not await outsider.fetchval("select count(*) from pg_locks where not granted"):
        assert not submitting.done()
    await other.complete(running)
    await hold.rollback()
    answers = [accepted(answer).state for answer in await submitting]
    await outsider.close()
    assert answers == [State.BLOCKED, State.SCHEDULED]
    assert not await closed_gates(other)
    return stranded.id


async def closed_gates(house: House) -> list[str]:
    def script() -> Script[list[str]]:
        return [row["name"] for row in (yield one("closed_gates"))]

    return await house.store._driver.run(script, Lane.READ)


async def test_a_job_stored_while_its_gate_opens_is_found_by_the_next_idle_claim(on_postgres: House) -> None:
    other = await on_postgres.second()
    stranded = await submitted_while_the_gate_opens(on_postgres, other)
    claimed = [claim for claim in await other.claim(10) if claim.id != stranded]
    assert len(claimed) == 2
    await other.complete(*claimed)
    assert ids((await other.ask(10)).claims) == [stranded]


async def test_a_job_stored_while_its_gate_opens_is_found_by_the_next_look(on_postgres: House) -> None:
    other = await on_postgres.second()
    stranded = await submitted_while_the_gate_opens(on_postgres, other)
    assert (await other.store.look()).closed
    await other.store.reopen_gates()
    assert await other.state(stranded) is State.SCHEDULED
    claimed = await other.claim(10)
    await other.complete(*claimed)
    assert ids(await other.claim(10)) == [stranded]
    assert not (await other.store.look()).closed


async def test_two_processes_that_submit_and_end_at_a_full_key_strand_nobody(shared: House) -> None:
    other = await shared.second()
    await shared.store.set_key_limit("vip", Limit(max_running=1))
    everyone = [await other.submit("vip")]
    ended: list[UUID] = []

    async def submit() -> None:
        for _ in range(60):
            everyone.append(await other.submit("vip"))

    async def work(house: House) -> None:
        for _ in range(60):
            claims = (await house.ask(3)).claims
            assert await running_now(house) <= 1
            await house.complete(*claims)
            ended.extend(ids(claims))

    await asyncio.gather(submit(), work(shared), work(other))
    for _ in range(70):
        await shared.store.reopen_gates()
        claims = await shared.claim(3)
        await shared.complete(*claims)
        ended += ids(claims)
    assert sorted(ended) == sorted(everyone)
