"""What only a store on PostgreSQL has to promise: plans, HOT updates, locks of others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, patch

import asyncpg
import msgspec
import pytest

import headway
from headway.clock import FakeClock
from headway.duties.tending import Tending
from headway.model.errors import KeyBusy, NotStorable
from headway.model.filters import JobFilter
from headway.model.limits import Retention
from headway.model.states import State
from headway.model.submission import Accepted, OnConflict
from headway.model.worker import FunctionInfo
from headway.store import migrations
from headway.store.postgres import dialing, postgres_store
from headway.store.postgres.dialing import SERVER_SETTINGS
from headway.store.postgres.driver import AT_REST, PostgresDriver
from headway.store.scripts import tend, work
from headway.store.scripts.rows import hush
from headway.store.scripts.work import Claimed, Want
from headway.store.sql import Lane
from headway.store.statements import Query, Script, Statement, load, one
from tests.contract.house import House, accepted
from tests.contract.test_lists import a_mixed_lot
from tests.servers import Postgres, database_of
from tests.unit.test_statements import ONLY_POSTGRES


@pytest.fixture
async def outsider(migrated_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of somebody else."""
    connection = await asyncpg.connect(migrated_url)
    yield connection
    await connection.close()


async def hold_key(connection: asyncpg.Connection, key: str) -> None:
    """Hold a key as a transaction of another process does while it decides about it."""
    await connection.execute("begin")
    await connection.execute("select pg_advisory_xact_lock(hashtextextended($1, 0))", f"headway:key {key}")


async def drain(house: House, limit: int) -> int:
    done = 0
    while claims := (await house.ask(limit)).claims:
        await house.complete(*claims)
        done += len(claims)
    return done


STATEMENTS = load("headway.store.postgres.sql", "$")


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_every_declared_parameter_is_used(statement: Statement) -> None:
    declared = statement.row_parameters + statement.parameters
    used = {int(number) for number in re.findall(r"\$(\d+)", statement.text)}
    assert used == set(range(1, len(declared) + 1))


def test_both_dialects_have_the_same_statements() -> None:
    sqlite = load("headway.store.sqlite.sql", "?")
    shared = set(STATEMENTS) - ONLY_POSTGRES
    assert shared <= set(sqlite)
    assert {name for name in shared if STATEMENTS[name].row_parameters != sqlite[name].row_parameters} == set()


def test_every_statement_is_used() -> None:
    sources = "".join(path.read_text() for path in Path(headway.__path__[0]).rglob("*.py"))
    assert [name for name in STATEMENTS if f'"{name}"' not in sources] == []


async def test_a_plain_submit_sends_one_command_to_the_server(on_postgres: House) -> None:
    await on_postgres.submit()
    driver = on_postgres.store._driver
    assert isinstance(driver, PostgresDriver)
    connection = driver._lanes[Lane.WRITE].connection
    assert connection is not None
    sent: list[str] = []
    with connection.query_logger(lambda record: sent.append(record.query)):
        await on_postgres.submit()
        # The driver reports to its loggers at the loop's next turn.
        await asyncio.sleep(0)
    assert len(sent) == 1


async def test_a_connection_knows_the_types_of_all_statements(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncpg would ask the server for those that it doesn't know."""
    told = await asyncpg.connect(migrated_url)
    connection = await dialing.Dialer(migrated_url).dial()
    asking = AsyncMock(side_effect=AssertionError("asked for types"))
    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", asking)
    for statement in STATEMENTS.values():
        await connection.prepare(statement.text)
    monkeypatch.undo()
    arrays = "select array[$1], array[$2::bigint], array[$3::timestamptz, null], array[$4::bytea], array[$5::json]"
    values = ("ä", -1, datetime(2030, 1, 1, tzinfo=UTC), b"\0", '{"a": 1}')
    assert await connection.fetchrow(arrays, *values) == await told.fetchrow(arrays, *values)
    # What isn't known is still asked for.
    assert await connection.fetchval("select array[point(1, 2)]") == [(1, 2)]
    await connection.close()
    await told.close()


async def test_most_completions_are_hot(on_postgres: House, outsider: asyncpg.Connection) -> None:
    figures = "select n_tup_hot_upd, n_tup_upd from pg_stat_user_tables where relname = 'job'"
    busy = await on_postgres.second()
    for _ in range(4):
        await busy.store.submit([busy.job(payload='{"args": [1, 2, 3]}') for _ in range(1000)])
    # A claim changes the index and so can't be HOT; what is HOT are the completions.
    assert await drain(busy, limit=20) == 4000
    # A server process tells its figures at the latest when it ends, which is a moment after we hang up.
    await busy.store.close()
    hot, updates = 0, 0
    async with asyncio.timeout(30):
        while updates < 8000:
            await outsider.execute("select pg_sleep(0.01)")
            [(hot, updates)] = await outsider.fetch(figures)
    assert hot >= 0.8 * 4000, f"{hot} of 4000 completions were HOT"


async def test_plans_made_on_an_empty_table_stay_index_scans(on_postgres: House) -> None:
    assert (await on_postgres.ask()).claims == []
    for start in range(0, 50_000, 5_000):
        await on_postgres.store.submit(
            [on_postgres.job(priority=number % 3, delay=1e6) for number in range(start, start + 5_000)]
        )
    due = await on_postgres.submit(priority=-100)
    driver = on_postgres.store._driver
    assert isinstance(driver, PostgresDriver)
    seen = "select seq_tup_read, idx_tup_fetch from pg_stat_xact_user_tables where relname = 'job'"
    driver._statements["seen"] = Statement("seen", seen, (), ())
    lease = on_postgres.new_id()
    want = Want(worker_id=on_postgres.worker.id, queue="default", limit=10, lease_id=lease, ttl=30)

    def claim_and_look() -> Script[tuple[Claimed, int, int]]:
        claimed = yield from work.claim(want)
        [row] = yield one("seen")
        return claimed, row["seq_tup_read"], row["idx_tup_fetch"]

    claimed, scanned, fetched = await driver.run(claim_and_look, Lane.CLAIM)
    assert [claim.id for claim in claimed.claims] == [due]
    assert scanned == 0
    assert fetched < 100


async def test_vacuum_takes_no_lock_that_stops_others(on_postgres: House, outsider: asyncpg.Connection) -> None:
    """It would, to give back room at the end of a table: here all of it, since all jobs are gone."""
    size = "select pg_relation_size('headway.job')"
    await on_postgres.store.submit([on_postgres.job() for _ in range(2000)])
    full = await outsider.fetchval(size)
    await outsider.execute("delete from headway.job")
    await on_postgres.store.vacuum()
    assert await outsider.fetchval(size) == full


@pytest.mark.parametrize(
    "duty", [tend.look, lambda: tend.expire(10), lambda: tend.sweep(5.0, 10)], ids=["look", "expire", "sweep"]
)
async def test_statistics_of_a_quiet_hour_lead_no_duty_through_the_backlog(
    on_postgres: House, outsider: asyncpg.Connection, duty: Callable[[], Script[Any]]
) -> None:
    """A planner that believes that nothing waits takes the wide indexes of waiting jobs for the cheapest ones."""
    await on_postgres.store.submit([on_postgres.job() for _ in range(1000)])
    assert await drain(on_postgres, limit=500) == 1000
    await outsider.execute("vacuum analyze headway.job")
    await on_postgres.store.submit([on_postgres.job() for _ in range(1000)])
    driver = on_postgres.store._driver
    assert isinstance(driver, PostgresDriver)
    indexes = "pg_index where indrelid = 'headway.job'::regclass"
    seen = f"select sum(pg_stat_get_xact_tuples_returned(indexrelid)) from {indexes}"
    driver._statements["seen"] = Statement("seen", seen, (), ())

    def do_and_look() -> Script[int]:
        [before] = yield one("seen")
        yield from duty()
        [after] = yield one("seen")
        return int(after[0] - before[0])

    assert await driver.run(do_and_look, Lane.WRITE) < 50


@pytest.mark.parametrize(
    "name",
    [
        *("claim_due", "due_candidates", "complete_untied", "complete_jobs", "finish_jobs"),
        *("renew_leases", "all_open", "peek"),
    ],
)
async def test_hot_statements_never_read_a_whole_table(migrated_url: str, name: str) -> None:
    connection = await asyncpg.connect(migrated_url, server_settings=SERVER_SETTINGS)
    statement = STATEMENTS[name]
    count = len(statement.row_parameters) + len(statement.parameters)
    prepared = await connection.prepare(statement.text)
    types = ", ".join(
        kind.schema + "." + kind.name if kind.kind != "array" else kind.name for kind in prepared.get_parameters()
    )
    await connection.execute(f"prepare plan ({types}) as {statement.text}")
    plan = await connection.fetch(f"explain execute plan({', '.join(['null'] * count)})")
    await connection.close()
    scans = [row[0].strip() for row in plan if "Seq Scan on" in row[0]]
    assert not [scan for scan in scans if "Seq Scan on job" in scan], plan


async def test_a_key_held_by_a_foreign_transaction_stops_nobody_else(
    on_postgres: House, outsider: asyncpg.Connection
) -> None:
    await hold_key(outsider, "x")
    clock = asyncio.get_running_loop().time
    began = clock()
    refused = await on_postgres.refuse(on_postgres.job("x", on_conflict=OnConflict.REJECT))
    batch = await on_postgres.batch(
        on_postgres.job("x", on_conflict=OnConflict.WAIT), on_postgres.job("y", on_conflict=OnConflict.WAIT)
    )
    for _ in range(20):
        await on_postgres.submit()
        await on_postgres.accept(on_postgres.job("z", on_conflict=OnConflict.WAIT))
    assert isinstance(refused, KeyBusy)
    assert [type(answer).__name__ for answer in batch] == ["KeyBusy", "Accepted"]
    # Two waits of 2 s each would be the least.
    assert clock() - began < 4.0, "somebody waited for the held key"
    await outsider.execute("rollback")
    await on_postgres.accept(on_postgres.job("x", on_conflict=OnConflict.REJECT))


async def test_a_retry_does_not_wait_for_a_held_key_either(on_postgres: House, outsider: asyncpg.Connection) -> None:
    claim = await on_postgres.running("x", on_conflict=OnConflict.WAIT)
    await on_postgres.fail(claim)
    await hold_key(outsider, "x")
    assert isinstance(await on_postgres.retry(claim.id), KeyBusy)
    assert await on_postgres.state(claim.id) is State.FAILED
    await outsider.execute("rollback")
    assert await on_postgres.retry(claim.id) is State.SCHEDULED


async def test_a_row_locked_by_a_foreign_transaction_stops_no_other_claim(
    on_postgres: House, outsider: asyncpg.Connection
) -> None:
    first, second = await on_postgres.submit(), await on_postgres.submit()
    await outsider.execute("begin")
    await outsider.execute("select from headway.job where id = $1 for update", first)
    assert [claim.id for claim in await on_postgres.claim(5)] == [second]
    await outsider.execute("rollback")
    assert [claim.id for claim in await on_postgres.claim(5)] == [first]


async def test_the_same_keys_in_opposite_order_do_not_deadlock(on_postgres: House) -> None:
    other = await on_postgres.second()

    async def submit(house: House, keys: list[str]) -> None:
        for _ in range(10):
            waiting = [house.job(key, on_conflict=OnConflict.WAIT) for key in keys]
            while waiting:
                answers = await house.store.submit(waiting)
                busy = [isinstance(answer, KeyBusy) for answer in answers]
                assert all(isinstance(answer, Accepted | KeyBusy) for answer in answers)
                waiting = [job for job, again in zip(waiting, busy, strict=True) if again]

    keys = [f"key {number}" for number in range(10)]
    await asyncio.wait_for(asyncio.gather(submit(on_postgres, keys), submit(other, keys[::-1])), 60)
    counts = (await on_postgres.store.counts())["default"]
    assert counts == {State.SCHEDULED: 10, State.BLOCKED: 190}


async def test_opposite_orders_of_ends_and_cancels_do_not_deadlock(on_postgres: House) -> None:
    other = await on_postgres.second()
    for _ in range(5):
        jobs = [on_postgres.job() for _ in range(50)]
        await on_postgres.store.submit(jobs)
        claims = await on_postgres.claim(50)
        await asyncio.gather(
            on_postgres.complete(*claims), other.store.cancel([job.id for job in reversed(jobs)], by=None, reason="")
        )
    assert (await on_postgres.store.counts())["default"] == {State.COMPLETED: 250}


async def test_concurrent_rejects_of_one_key_let_one_in(on_postgres: House) -> None:
    other = await on_postgres.second()
    for number in range(10):
        jobs = [house.job(f"k{number}", on_conflict=OnConflict.REJECT) for house in (on_postgres, other)]
        answers = await asyncio.gather(on_postgres.store.submit(jobs[:1]), other.store.submit(jobs[1:]))
        assert sum(isinstance(answer, Accepted) for [answer] in answers) == 1


async def test_the_same_submission_from_two_processes_at_once_is_one_job(on_postgres: House) -> None:
    other = await on_postgres.second()
    parent = await on_postgres.submit()
    both: tuple[dict[str, Any], ...] = ({}, {"after": (parent,)})
    for options in both:
        for _ in range(10):
            job = on_postgres.job(**options)
            answers = await asyncio.gather(on_postgres.store.submit([job]), other.store.submit([job]))
            assert {accepted(answer).job_id for [answer] in answers} == {job.id}


async def test_without_an_injected_clock_the_server_decides_what_is_due(migrated_url: str) -> None:
    store = postgres_store(migrated_url)
    house = House(store, FakeClock(), lambda: pytest.fail("one is enough"))
    await store.open()
    job_id = await house.submit(delay=3600)
    assert (await house.ask()).claims == []
    assert abs(((await house.get(job_id)).run_at - await store.now()).total_seconds() - 3600) < 60
    await store.close()


async def test_a_worker_announces_what_is_known_without_waiting_for_others_that_do(
    on_postgres: House, outsider: asyncpg.Connection
) -> None:
    known = FunctionInfo(name="f", queue="default", defaults={"timeout": 3}, parameters={"type": "object"})
    await on_postgres.store.announce([known])
    await outsider.execute("begin")
    await outsider.execute("select * from headway.function for update")
    await asyncio.wait_for(on_postgres.store.announce([known]), 1.0)
    await outsider.execute("rollback")
    changed = msgspec.structs.replace(known, queue="mail")
    await on_postgres.store.announce([changed])
    assert [info.queue for info in await on_postgres.store.functions()] == ["mail"]


async def test_whoever_takes_the_last_jobs_tells_the_others(on_postgres: House) -> None:
    heard: list[str] = []
    other = await on_postgres.second()
    stop = await other.store.listen(heard.append)
    heard.clear()

    async def claim(limit: int) -> int:
        want = Want(
            worker_id=on_postgres.worker.id,
            queue="default",
            limit=limit,
            lease_id=on_postgres.new_id(),
            ttl=30,
            hush=True,
        )
        on_postgres.clock.advance(1)
        taken = len((await on_postgres.store.claim(want)).claims)
        # By the connection that listens: what was rung before comes before its answer.
        await other.store.peek(["default"])
        return taken

    await on_postgres.batch(*(on_postgres.job() for _ in range(3)))
    assert await claim(2) == 2
    assert heard == ["default"], "there may be more"
    assert await claim(2) == 1
    assert heard == ["default", hush("default", on_postgres.worker.id)]
    assert await claim(2) == 0
    assert len(heard) == 2, "somebody else has told them"
    stop()


async def test_workers_learn_how_many_they_are(on_postgres: House) -> None:
    other = await on_postgres.second()
    for house, crowd in ((on_postgres, 1), (other, 2), (on_postgres, 2)):
        renewal = await house.store.renew(house.worker, 30, [], held=[])
        assert renewal.crowd == crowd
    elsewhere = msgspec.structs.replace(other.worker, id=other.new_id(), queues=("mail",))
    assert (await other.store.renew(elsewhere, 30, [], held=[])).crowd == 1, "it serves other queues"
    assert (await other.store.renew(other.worker, 30, [], held=[])).crowd == 2
    on_postgres.clock.advance(61)
    assert (await other.store.renew(other.worker, 30, [], held=[])).crowd == 1


async def test_the_ledgers_forget_what_is_deleted(on_postgres: House, outsider: asyncpg.Connection) -> None:
    made = await a_mixed_lot(on_postgres)
    assert await outsider.fetchval("select count(*) from headway.arrival") > 0
    assert await outsider.fetchval("select count(*) from headway.ended") > 0
    for claim in await on_postgres.claim(limit=100):
        await on_postgres.complete(claim)
    for job_id in made:
        await on_postgres.delete(job_id)
    left = await outsider.fetch("select jobs from headway.arrival union all select jobs from headway.ended")
    running = {job.id for job in await on_postgres.store.find(JobFilter(states=("cancelling",)))}
    assert {job_id for row in left for job_id in row["jobs"]} <= running


@contextmanager
def before(house: House, statement: str, act: Callable[[], Awaitable[object]]) -> Iterator[None]:
    """Somebody else does something at the very moment at which the house's store is about to send this statement."""
    driver = house.store._driver
    assert isinstance(driver, PostgresDriver)
    real, acts = driver._fetch, [act]

    async def fetch(connection: dialing.Connection, query: Query, now: object) -> list[Any]:
        if query.name == statement and acts:
            await acts.pop()()
        return await real(connection, query, now)

    with patch.object(driver, "_fetch", fetch):
        yield
    assert not acts, f"{statement} was never sent"


async def test_prune_leaves_a_job_that_was_retried_at_that_very_moment(on_postgres: House) -> None:
    other = await on_postgres.second()
    claim = await on_postgres.running()
    await on_postgres.fail(claim)
    on_postgres.clock.advance(100)
    with before(on_postgres, "delete_jobs", lambda: other.retry(claim.id)):
        step = await on_postgres.store.prune(Retention(completed=10, failed=10), None)
    assert step.removed == 0
    assert await on_postgres.state(claim.id) is State.SCHEDULED
    assert [attempt.number for attempt in await on_postgres.store.attempts(claim.id)] == [1]


async def test_a_retry_waits_for_no_job_that_ends_at_that_very_moment(on_postgres: House) -> None:
    other = await on_postgres.second()
    failed = await on_postgres.running("x", on_conflict=OnConflict.WAIT)
    await on_postgres.fail(failed)
    running = await on_postgres.running("x", on_conflict=OnConflict.WAIT)
    with before(on_postgres, "lock_jobs", lambda: other.complete(running)):
        assert await on_postgres.retry(failed.id) is State.SCHEDULED
    assert [claim.id for claim in await on_postgres.claim()] == [failed.id]


async def test_a_row_locked_by_a_foreign_transaction_stops_no_other_rescue(
    on_postgres: House, outsider: asyncpg.Connection
) -> None:
    jobs = [await on_postgres.submit() for _ in range(3)]
    first, second = await on_postgres.claim(2)
    [third] = await on_postgres.claim(1)
    await outsider.execute("begin")
    await outsider.execute("select from headway.job where id = $1 for update", first.id)
    on_postgres.clock.advance(60)
    assert [rescue.job_id for rescue in await on_postgres.store.rescue()] == [second.id, third.id]
    assert not (await on_postgres.store.look()).lapsed, "what is in other hands is not asked for again at once"
    on_postgres.clock.advance(2)
    assert await on_postgres.store.rescue() == []
    await outsider.execute("rollback")
    on_postgres.clock.advance(2)
    assert [rescue.job_id for rescue in await on_postgres.store.rescue()] == [first.id]
    assert {(await on_postgres.get(job_id)).losses for job_id in jobs} == {1}
    assert await outsider.fetchval("select count(*) from headway.lease") == 0


async def test_duties_leave_leases_in_other_hands_alone(on_postgres: House, outsider: asyncpg.Connection) -> None:
    claim = await on_postgres.running()
    expiring = await on_postgres.submit(expires_in=30.0)
    await outsider.execute("begin")
    await outsider.execute("select from headway.lease for update")
    on_postgres.clock.advance(60)
    tending = Tending(
        on_postgres.worker.id,
        on_postgres.clock,
        retention=Retention(),
        ended=lambda: 0,
        on_rescued=lambda _: pytest.fail("somebody else is at it"),
    )
    await asyncio.wait_for(tending.look(on_postgres.store), 30)
    assert await on_postgres.state(expiring) is State.CANCELLED, "the other duties are done"
    assert await on_postgres.state(claim.id) is State.RUNNING


async def test_text_that_the_server_cannot_take_is_refused_as_such(on_postgres: House) -> None:
    with pytest.raises(NotStorable, match="can't take this"):
        await on_postgres.submit(correlation_id="nul\0")
    assert await on_postgres.state(await on_postgres.submit()) is State.SCHEDULED


@pytest.mark.parametrize("way", ["", "?pooler=transaction"])
async def test_what_is_accepted_is_on_disk_whatever_the_database_is_set_to(migrated_url: str, way: str) -> None:
    outsider = await asyncpg.connect(migrated_url)
    await outsider.execute(f"alter database {database_of(migrated_url)} set synchronous_commit = off")
    await outsider.close()
    store = postgres_store(migrated_url + way)
    driver = store._driver
    assert isinstance(driver, PostgresDriver)
    shown = "select current_setting('synchronous_commit') as it"
    driver._statements["shown"] = Statement("shown", shown, (), ())

    def script() -> Script[str]:
        [row] = yield one("shown")
        return str(row["it"])

    assert {await driver.run(script, lane) for lane in Lane} == {"on"}
    await store.close()


async def test_a_step_of_a_migration_may_take_as_long_as_it_likes(postgres: Postgres) -> None:
    url = postgres.create_database()
    slow = migrations.Migration(number=1, name="0001_slow", sql="select pg_sleep(1)", breaking=False)
    with patch.object(dialing, "COMMAND_PATIENCE", 0.2), patch.object(migrations, "load", lambda _: [slow]):
        store = postgres_store(url)
        assert await store.migrate() == ["0001_slow"]
        await store.close()
    postgres.drop_database(url)


async def test_who_looks_at_the_time_now_and_then_needs_no_connection_for_it(on_postgres: House) -> None:
    driver = on_postgres.store._driver
    assert isinstance(driver, PostgresDriver)
    assert driver.connections() == 1
    await on_postgres.store.now()
    assert driver.connections() == 1


async def test_a_connection_that_is_seldom_used_is_given_back(on_postgres: House, clock: FakeClock) -> None:
    driver = on_postgres.store._driver
    assert isinstance(driver, PostgresDriver)
    await on_postgres.store.limits()
    clock.advance(AT_REST - 1)
    await on_postgres.store.limits()
    clock.advance(AT_REST - 1)
    await asyncio.sleep(0.1)
    assert driver.connections() == 2
    clock.advance(1)
    async with asyncio.timeout(30):
        while driver.connections() > 1:
            await asyncio.sleep(0.01)
    await on_postgres.store.limits()
    assert driver.connections() == 2
