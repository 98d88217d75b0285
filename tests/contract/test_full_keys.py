"""Jobs of a key that may run no more of them: aside from the start, or moved there, and back in order."""

import asyncio
from typing import Any
from unittest.mock import patch
from uuid import UUID

import asyncpg

from headway.model.filters import JobFilter
from headway.model.job import Claim
from headway.model.limits import Limit, QueueSettings, Rate
from headway.model.states import State
from headway.model.submission import Dedupe
from headway.store.postgres.dialing import SERVER_SETTINGS
from headway.store.postgres.driver import PostgresDriver
from headway.store.postgres.foreign import run_asyncpg
from headway.store.scripts.gates import BACKLOG_STEP, FEW_OTHERS, Limits, choose
from headway.store.scripts.submit import whole
from headway.store.scripts.walk import WALK_AGAIN, Walk
from headway.store.sql import Lane
from headway.store.statements import Script, Statement, one
from tests.contract.house import House, accepted, ids
from tests.contract.test_limits import limit_queue, running_now, submit_many

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
    assert [(await house.accept(job)).repeated for _ in range(2)] == [False, True]
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


async def test_the_submit_function_blocks_at_a_full_key_too(on_postgres: House) -> None:
    running = await full_key(on_postgres)
    driver = on_postgres.store._driver
    assert isinstance(driver, PostgresDriver)
    connection = await asyncpg.connect(driver._url)
    job_id = await connection.fetchval("select headway.submit('vip', created_by => 'ann')")
    await connection.close()
    job = await on_postgres.get(job_id)
    assert (job.state, job.wait_reason) == (State.BLOCKED, "limit")
    [line] = await on_postgres.store.history(job_id)
    assert (line.what, line.by, line.detail) == ("blocked", "ann", "submitted at the full key:vip")
    await on_postgres.complete(running)
    assert ids(await on_postgres.claim(10)) == [job_id]


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
    assert asked <= len(backlog) / BACKLOG_STEP + 1
    assert await in_the_way(house) == 0
    await house.complete(first)
    assert ids((await house.ask(5)).claims) == [backlog[1]]


async def test_a_backlog_leaves_the_way_while_other_keys_fill_and_empty(house: House) -> None:
    """What is full now was not a moment ago: every claim looks from the start."""
    await submit_many(house, 1300, key="vip")
    for key in ("vip", "odd", "even"):
        await house.store.set_key_limit(key, Limit(max_running=1))
    house.clock.advance(60)
    assert len((await house.ask(5)).claims) == 1
    held: dict[str, list[Claim]] = {}
    for turn in range(2 * 7):
        key = ("odd", "even")[turn % 2]
        await house.complete(*held.pop(key, []))
        await submit_many(house, 2, key=key)
        held[key] = (await house.ask(5)).claims
    assert await in_the_way(house) <= 2


async def backlogs(house: House, *keys: str) -> list[Claim]:
    """Queues full of jobs of these keys, each with the one that may run (returned); claims have not looked further."""
    for key in keys:
        await submit_many(house, 300, key=key)
        await house.store.set_key_limit(key, Limit(max_running=1))
    house.clock.advance(60)
    claims: list[Claim] = []
    while len(claims) < len(keys):
        claims += (await house.ask(100)).claims
    return claims


async def test_the_few_others_among_a_backlog_are_found_whatever_their_keys(house: House) -> None:
    await backlogs(house, "g", "p")
    behind, first, between, urgent = [
        await house.submit(key=key, priority=priority) for key, priority in (("z", 0), ("a", 0), ("k", 0), ("q", 5))
    ]
    await house.submit(key="b", delay=100)
    await house.submit(key="c", queue="mail")
    await house.submit(key="d", hold=True)
    await house.submit(key="l", expires_in=1)
    house.clock.advance(WALK_AGAIN + 1)
    assert ids((await house.ask(3)).claims) == [urgent, behind, first]
    assert ids((await house.ask(3)).claims) == [between]


async def test_of_as_many_others_as_are_no_longer_few_the_most_urgent_come_first(house: House) -> None:
    for others in (FEW_OTHERS - 1, FEW_OTHERS):
        await backlogs(house, f"full-{others}")
        await house.store.submit([house.job(key=f"other-{number:03}") for number in range(others - 1)])
        last = await house.submit(key="other-999", priority=1)
        house.clock.advance(WALK_AGAIN + 1)
        assert ids((await house.ask(1)).claims) == [last]
        rest = await house.claim(others)
        assert len(rest) == others - 1
        await house.complete(*rest)


async def test_few_others_are_found_without_a_walk_past_the_backlog(on_postgres: House) -> None:
    """Whatever the planner knew of the table when the claim's plan was made."""
    settings = QueueSettings(name="default", key_max_running=1)
    await on_postgres.store.set_queue(settings)
    await on_postgres.ask(5)
    await submit_many(on_postgres, 3000, key="vip")
    await on_postgres.ask(5)
    job = await on_postgres.submit(key="single")
    driver = on_postgres.store._driver
    assert isinstance(driver, PostgresDriver)
    seen = "select idx_tup_fetch from pg_stat_xact_user_tables where relname = 'job'"
    driver._statements["seen"] = Statement("seen", seen, (), ())

    def choose_and_look() -> Script[tuple[list[UUID], int]]:
        [before] = yield one("seen")
        passed = yield from choose("default", 5, Limits(queues={"default": settings}), Walk(0))
        [after] = yield one("seen")
        return passed.job_ids, after[0] - before[0]

    found, fetched = await driver.run(choose_and_look, Lane.CLAIM)
    assert found == [job]
    assert fetched < 3 * BACKLOG_STEP


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
    try:
        hold = outsider.transaction()
        await hold.start()
        # The same id in a transaction that is open: whoever submits it waits for the end of that.
        await run_asyncpg(outsider, whole([slow]))
        with patch.dict(SERVER_SETTINGS, lock_timeout="60s"):
            patient = await house.second()
            submitting = asyncio.create_task(patient.store.submit([stranded, slow]))
            while not await outsider.fetchval("select count(*) from pg_locks where not granted"):
                assert not submitting.done()
        await other.complete(running)
        await hold.rollback()
        answers = [accepted(answer).state for answer in await submitting]
    finally:
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
