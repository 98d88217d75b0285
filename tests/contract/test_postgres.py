"""What only a store on PostgreSQL has to promise: plans, HOT updates, locks of others."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

import headway
from headway.clock import FakeClock
from headway.model.errors import KeyBusy
from headway.model.job import Accepted, OnConflict
from headway.model.states import State
from headway.model.worker import FunctionInfo
from headway.store.postgres.dialing import SERVER_SETTINGS
from headway.store.postgres.driver import PostgresDriver
from headway.store.scripts import work
from headway.store.scripts.watermark import Watermark
from headway.store.scripts.work import Claimed, Want
from headway.store.sql import Lane
from headway.store.statements import Script, Statement, load, one
from tests.contract.house import House, accepted
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
        claimed = yield from work.claim(want, Watermark(0))
        [row] = yield one("seen")
        return claimed, row["seq_tup_read"], row["idx_tup_fetch"]

    claimed, scanned, fetched = await driver.run(claim_and_look, Lane.CLAIM)
    assert [claim.id for claim in claimed.claims] == [due]
    assert scanned == 0
    assert fetched < 100


@pytest.mark.parametrize(
    "name", ["claim_due", "due_candidates", "complete_jobs", "finish_jobs", "renew_leases", "all_open", "peek"]
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
    assert clock() - began < 1.5, "somebody waited for the held key"
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
    from headway.store.postgres import postgres_store

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
