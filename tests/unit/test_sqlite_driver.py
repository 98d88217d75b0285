"""The driver under SQLite: group commit, errors that name what to do, the doorbell between processes, the clock."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from headway.clock import FakeClock
from headway.model.errors import ConfigurationError, SchemaError, StoreUnavailable
from headway.model.job import Claim
from headway.model.submission import Accepted, Submission
from headway.model.worker import WorkerInfo
from headway.store.scripts.work import Want
from headway.store.sql import Lane, SqlStore
from headway.store.sqlite import InlineRunner, SqliteDriver, ThreadRunner, session, sqlite_store, wake
from headway.store.sqlite.rows import Plan, microseconds
from headway.store.sqlite.session import Session, connect
from headway.store.sqlite.wake import LONGEST_PATH, make_private, wake_directory
from headway.store.statements import Query, Script, Statement, load, many, one

WORKER = WorkerInfo(id=uuid4(), name="w", host="h", pid=1, queues=("default",), slots=4)


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator[SqliteDriver]:
    driver = SqliteDriver(tmp_path / "jobs.db")
    await driver.open()
    yield driver
    await driver.close()


def job(name: str = "greet", **more: object) -> Submission:
    return Submission(**{"id": uuid4(), "kind": "call", "name": name, "payload": "{}"} | more)  # type: ignore[arg-type]


def want(limit: int = 10, *, ttl: float = 30.0, queue: str = "default") -> Want:
    return Want(worker_id=WORKER.id, queue=queue, limit=limit, lease_id=uuid4(), ttl=ttl)


async def claims(store: SqlStore, limit: int = 10, *, ttl: float = 30.0) -> list[Claim]:
    return (await store.claim(want(limit, ttl=ttl))).claims


# Transactions


class CountingRunner(ThreadRunner):
    """Holds the writer up until told, so that calls pile up behind it, and counts the batches."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.batches: list[int] = []

    async def hold_up(self) -> None:
        begun = threading.Event()

        def hold(_: Session) -> None:
            begun.set()
            self.go.wait(30)

        self._holding = asyncio.ensure_future(self.write(hold))
        await asyncio.to_thread(begun.wait, 30)


async def test_calls_made_meanwhile_share_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CountingRunner()
    write = Session.write

    def counted(session: Session, operations: list[object]) -> object:
        runner.batches.append(len(operations))
        return write(session, operations)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "write", counted)
    store = sqlite_store(tmp_path / "jobs.db", runner=runner)
    await store.open()
    await runner.hold_up()
    runner.batches.clear()
    submits = [asyncio.ensure_future(store.submit([job()])) for _ in range(100)]
    await asyncio.sleep(0)
    runner.go.set()
    answers = await asyncio.gather(*submits)
    assert all(isinstance(answer, Accepted) for [answer] in answers)
    assert runner.batches == [100]
    assert sum((await store.counts())["default"].values()) == 100
    await store.close()


async def test_an_operation_that_fails_undoes_itself_alone(tmp_path: Path) -> None:
    runner = CountingRunner()
    driver = SqliteDriver(tmp_path / "jobs.db", runner=runner)
    await driver.open()
    rung: list[str] = []
    await driver.listen(rung.append)

    def put(name: str, *, fail: bool) -> Script[str]:
        yield one("put_key_limit", key=name, max_running=1, rate=None)
        yield one("wake", wake=[name])
        if fail:
            raise ZeroDivisionError(name)
        return name

    await runner.hold_up()
    runs = [driver.run(lambda n=n: put(f"k{n}", fail=n == 3), Lane.WRITE) for n in range(6)]  # type: ignore[misc]
    gathered = asyncio.gather(*runs, return_exceptions=True)
    await asyncio.sleep(0)
    runner.go.set()
    results = await gathered
    assert [r if isinstance(r, str) else type(r).__name__ for r in results] == [
        "k0", "k1", "k2", "ZeroDivisionError", "k4", "k5",
    ]  # fmt: skip
    assert await _keys(driver) == ["k0", "k1", "k2", "k4", "k5"]
    assert rung == ["k0", "k1", "k2", "k4", "k5"]
    await driver.close()


async def test_a_failing_commit_fails_the_whole_batch(driver: SqliteDriver, tmp_path: Path) -> None:
    def crowd_out(session: Session) -> None:
        session.connection.execute("pragma max_page_count = 1")

    def fill() -> Script[None]:
        rows = [(uuid4(), n, b"x" * 60_000) for n in range(50)]
        yield many("put_result_chunks", rows)

    await driver._runner.write(crowd_out)
    with pytest.raises(StoreUnavailable, match=r"jobs\.db.*disk is full") as caught:
        await driver.run(fill, Lane.WRITE)
    assert str(tmp_path) in str(caught.value)


async def test_a_write_lock_held_elsewhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = SqliteDriver(tmp_path / "jobs.db", runner=InlineRunner())
    await driver.open()
    monkeypatch.setattr(session, "LOOKS", 10)
    other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(StoreUnavailable, match="another process has held its write lock"):
        await driver.run(lambda: _limit("k"), Lane.WRITE)
    other.execute("rollback")
    await driver.run(lambda: _limit("k"), Lane.WRITE)
    assert await _keys(driver) == ["k"]
    other.close()
    await driver.close()


async def test_a_write_lock_that_is_let_go_is_taken_within_milliseconds(driver: SqliteDriver, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    waits = []
    for _ in range(5):
        other.execute("begin immediate")
        writing = asyncio.create_task(driver.run(lambda: _limit("k"), Lane.WRITE))
        # By now SQLite itself would look every tenth of a second only.
        await asyncio.sleep(0.4)
        other.execute("rollback")
        let_go = time.monotonic()
        await writing
        waits.append(time.monotonic() - let_go)
    assert min(waits) < 0.02
    other.close()


async def test_reads_do_not_wait_for_a_writer_elsewhere(driver: SqliteDriver, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    other.execute("begin immediate")
    assert await asyncio.wait_for(_keys(driver), 5) == []
    other.execute("rollback")
    other.close()


async def test_a_store_serves_several_loops_and_threads(driver: SqliteDriver) -> None:
    def elsewhere(n: int) -> None:
        asyncio.run(driver.run(lambda: _limit(f"k{n}"), Lane.WRITE))

    await asyncio.gather(*(asyncio.to_thread(elsewhere, n) for n in range(8)))
    assert await _keys(driver) == [f"k{n}" for n in range(8)]


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    for runner in (ThreadRunner(), InlineRunner()):
        driver = SqliteDriver(tmp_path / "jobs.db", runner=runner)
        await driver.open()
        await driver.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await driver.run(lambda: _limit("k"), Lane.WRITE)


async def test_the_inline_runner_awaits_its_hooks_around_each_operation() -> None:
    seen: list[str] = []

    async def note(what: str) -> None:
        seen.append(what)

    store = sqlite_store(":memory:", runner=InlineRunner(lambda: note("before"), lambda: note("after")))
    await store.open()
    threads = threading.active_count()
    await store.submit([job()])
    assert seen == ["before", "after"] * 2
    assert threading.active_count() == threads
    await store.close()


# Paths and schema


async def test_a_path_in_a_missing_directory_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no directory .*/absent: create it"):
        await SqliteDriver(tmp_path / "absent" / "jobs.db").open()


async def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"is a directory: name a file in it"):
        await SqliteDriver(tmp_path).open()


async def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ConfigurationError, match=r"jobs\.db can't be written to by this user"):
        await SqliteDriver(tmp_path / "jobs.db").open()


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").write_text("Dear diary, today I learned about headers. " * 50)
    with pytest.raises(StoreUnavailable, match=r"jobs\.db: it is not an SQLite database"):
        await SqliteDriver(tmp_path / "jobs.db").open()


async def test_a_newer_breaking_schema_is_refused(tmp_path: Path) -> None:
    await _make(tmp_path / "jobs.db")
    _add_migration(tmp_path / "jobs.db", breaking=1)
    with pytest.raises(SchemaError, match="upgrade headway"):
        await SqliteDriver(tmp_path / "jobs.db").open()


async def test_a_newer_schema_that_breaks_nothing_is_accepted(tmp_path: Path) -> None:
    await _make(tmp_path / "jobs.db")
    _add_migration(tmp_path / "jobs.db", breaking=0)
    await _make(tmp_path / "jobs.db")


async def test_migration_happens_once_beside_tables_of_others(tmp_path: Path) -> None:
    own = sqlite3.connect(tmp_path / "app.db")
    own.execute("create table job (id integer)")
    own.close()
    driver = SqliteDriver(tmp_path / "app.db")
    assert (await driver.migrate())[0] == "0001_core"
    assert await driver.migrate() == []
    await driver.close()


async def test_processes_that_open_a_new_file_together_all_succeed(tmp_path: Path) -> None:
    drivers = [SqliteDriver(tmp_path / "jobs.db") for _ in range(8)]
    await asyncio.gather(*(driver.open() for driver in drivers))
    await asyncio.gather(*(driver.close() for driver in drivers))


# Values


async def test_values_come_back_as_they_went_in(driver: SqliteDriver) -> None:
    store = SqlStore(driver, FakeClock())
    first, second = uuid4(), UUID(int=1)
    moment = datetime(2031, 5, 6, 7, 8, 9, 123457, tzinfo=UTC)
    await store.submit([job(id=first, run_at=moment, tags=("a", "b"), metadata={"x": "ü"}), job(id=second)])
    await store.submit([job(id=uuid4(), name="child", after=(first, second))])
    record, _ = await store.get([first, second])
    assert record is not None
    assert (record.id, record.run_at, record.tags, record.metadata) == (first, moment, ("a", "b"), {"x": "ü"})
    assert hash(record.id) == hash(first)
    assert str(record.id) == str(first)
    assert record.id.is_safe is first.is_safe


def test_microseconds_are_exact() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for number in (0, 1, 1_899_999_999_999_999, 253_402_300_799_999_999, -1):
        assert microseconds(epoch + timedelta(microseconds=number)) == number


@pytest.mark.parametrize(("size", "statements"), [(0, 0), (1, 1), (3, 1), (4, 1), (31, 1), (64, 1), (65, 2), (213, 4)])
def test_a_batch_of_any_size_is_stored_whole_by_few_statements(size: int, statements: int) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("create table t (a, b, c)")
    text = (
        "with batch(a, b) as materialized (values (?1, ?2)) insert into t select a, b, ?3 from batch "
        "where batch.a is not null returning a, b, c"
    )
    statement = Statement("t", text, ("a", "b"), ("c",))
    rows = [(n, str(n)) for n in range(size)]
    ran: list[str] = []
    connection.set_trace_callback(ran.append)
    found = Plan(statement).run(connection.cursor(), Query("t", rows, {"c": "same"}), 0)
    assert sorted(tuple(row) for row in found) == [(n, str(n), "same") for n in range(size)]
    assert len(ran) == statements


def test_a_batch_that_returns_nothing_tells_how_many_rows_it_has_changed() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("create table t (a primary key, b)")
    connection.executemany("insert into t values (?, 0)", [(n,) for n in range(100)])
    text = (
        "with batch(a) as materialized (values (?1)) "
        "update t set b = ?2 from batch where t.a = batch.a and t.a % 10 <> 0"
    )
    plan = Plan(Statement("t", text, ("a",), ("b",)))
    assert plan.run(connection.cursor(), Query("t", [(n,) for n in range(150)], {"b": 7}), 0) == [(90,)]
    assert connection.execute("select count(*) from t where b = 7").fetchone() == (90,)


def test_what_a_statement_needs_to_be_undone_is_no_file(tmp_path: Path) -> None:
    connection: sqlite3.Connection = connect(str(tmp_path / "jobs.db"))
    assert connection.execute("pragma temp_store").fetchone() == (2,)
    connection.close()


def test_no_statement_takes_what_fills_up_its_batch_for_a_row() -> None:
    texts = [
        each.text for each in load("headway.store.sqlite.sql", "?").values() if each.text.startswith("with batch(")
    ]
    assert len(texts) == 4
    assert all("= batch.id" in text or "where batch.id is not null" in text for text in texts)


# The doorbell

LISTEN = """
import asyncio, sys, time
from headway.clock import SystemClock
from headway.store.scripts.walk import START
from headway.store.sqlite import SqliteDriver

async def main():
    driver = SqliteDriver(sys.argv[1])
    await driver.open()
    heard = asyncio.Queue()
    await driver.listen(lambda queue: heard.put_nowait((queue, time.time())))
    print("ready", flush=True)
    while True:
        queue, at = await heard.get()
        print(queue, at, flush=True)

asyncio.run(main())
"""


async def test_a_submit_wakes_another_process(driver: SqliteDriver, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LISTEN, str(tmp_path / "jobs.db"), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await asyncio.wait_for(process.stdout.readline(), 30) == b"ready\n"
        store, delays = SqlStore(driver, FakeClock()), []
        for n in range(30):
            before = time.time()
            await store.submit([job(queue=f"q{n}")])
            queue, at = (await asyncio.wait_for(process.stdout.readline(), 5)).split()
            assert queue.decode() == f"q{n}"
            delays.append(float(at) - before)
        assert sorted(delays)[15] < 0.05
    finally:
        process.kill()
        await process.wait()
    # What it left behind goes with the next ring.
    assert len(list(wake_directory(str(tmp_path / "jobs.db")).iterdir())) == 1
    await store.submit([job()])
    assert list(wake_directory(str(tmp_path / "jobs.db")).iterdir()) == []


async def test_stores_of_one_process_wake_each_other(driver: SqliteDriver, tmp_path: Path) -> None:
    other = SqliteDriver(tmp_path / "jobs.db")
    await other.open()
    heard, own = asyncio.Queue[str](), asyncio.Queue[str]()
    await other.listen(heard.put_nowait)
    await driver.listen(own.put_nowait)
    store = SqlStore(driver, FakeClock())
    for queue in ("mail", "news"):
        await store.submit([job(queue=queue)])
    # Each hears each ring once.
    assert [await asyncio.wait_for(heard.get(), 5) for _ in range(2)] == ["mail", "news"]
    assert [await asyncio.wait_for(own.get(), 5) for _ in range(2)] == ["mail", "news"]
    await other.close()


async def test_a_ring_comes_on_the_loop_that_listens(driver: SqliteDriver) -> None:
    heard = asyncio.Queue[tuple[str, int]]()
    await driver.listen(lambda queue: heard.put_nowait((queue, threading.get_ident())))
    store = SqlStore(driver, FakeClock())
    await asyncio.to_thread(lambda: asyncio.run(store.submit([job(queue="mail")])))
    assert await asyncio.wait_for(heard.get(), 5) == ("mail", threading.get_ident())


async def test_jobs_due_later_ring_nobody(driver: SqliteDriver) -> None:
    rung: list[str] = []
    await driver.listen(rung.append)
    store = SqlStore(driver, FakeClock())
    await store.submit([job(delay=60.0, queue="later")])
    await store.submit([job(queue="now")])
    while not rung:
        await asyncio.sleep(0)
    assert rung == ["now"]


async def test_closing_removes_the_socket(tmp_path: Path) -> None:
    driver = SqliteDriver(tmp_path / "jobs.db")
    await driver.open()
    await driver.listen(lambda _: None)
    directory = wake_directory(str(tmp_path / "jobs.db"))
    assert len(list(directory.iterdir())) == 1
    assert directory.stat().st_mode & 0o777 == 0o700
    other = SqliteDriver(tmp_path / "jobs.db")
    await other.open()
    await other.listen(lambda _: None)
    await driver.close()
    assert len(list(directory.iterdir())) == 1
    await other.close()
    assert not directory.exists()


async def test_a_listener_comes_while_the_last_one_takes_the_directory_along(
    driver: SqliteDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []

    def made_and_gone(directory: Path) -> None:
        make_private(directory)
        if not taken:
            taken.append(directory)
            directory.rmdir()

    monkeypatch.setattr(wake, "make_private", made_and_gone)
    await driver.listen(lambda _: None)
    assert len(list(taken[0].iterdir())) == 1


def test_a_long_path_gets_its_sockets_elsewhere(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90) / "jobs.db"
    directory = wake_directory(str(deep))
    assert directory.parent != deep.parent
    assert len(str(directory / "1234567-123456-abcdef")) <= LONGEST_PATH
    assert directory == wake_directory(str(deep))


async def test_a_call_that_comes_while_the_store_is_being_closed_is_answered(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path / "jobs.db")
    await store.open()
    driver = store._driver
    assert isinstance(driver, SqliteDriver)
    assert isinstance(driver._runner, ThreadRunner)
    desk = driver._runner._writer
    assert desk is not None
    real = desk._calls
    closing = threading.Thread(target=lambda: asyncio.run(desk.close()))

    class Calls:
        """Somebody closes the desk, from another thread, just before a call arrives there."""

        get, get_nowait = real.get, real.get_nowait

        def put(self, call: Any) -> None:
            if call is not None:
                closing.start()
                closing.join(0.2)
            real.put(call)

    desk._calls = Calls()  # type: ignore[assignment]
    [answer] = await asyncio.wait_for(store.submit([job()]), 30)
    assert isinstance(answer, Accepted)
    closing.join()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.submit([job()])
    await store.close()


# The clock


async def test_a_jump_of_the_wall_clock_costs_no_live_worker_its_lease(tmp_path: Path) -> None:
    clock = FakeClock()
    store = sqlite_store(tmp_path / "jobs.db", clock=clock)
    other = sqlite_store(tmp_path / "jobs.db", clock=clock)
    await store.open()
    await other.open()
    await store.submit([job()])
    [claim] = await claims(store)
    clock.step_wall(3600)
    assert await other.rescue() == []
    assert await store.rescue() == []
    renewal = await store.renew(WORKER, 30.0, [], held=[claim.lease_id])
    assert renewal.leases == {claim.lease_id}
    clock.advance(31)
    assert [lost.job_id for lost in await other.rescue()] == [claim.id]
    await store.close()
    await other.close()


async def test_a_jump_revives_no_lapsed_lease(tmp_path: Path) -> None:
    clock = FakeClock()
    store = sqlite_store(tmp_path / "jobs.db", clock=clock)
    await store.open()
    await store.submit([job()])
    [claim] = await claims(store)
    clock.advance(31)
    await store.submit([job()])
    clock.step_wall(3600)
    assert [lost.job_id for lost in await store.rescue()] == [claim.id]
    await store.close()


@pytest.mark.parametrize("lapsed", [0.0, 32.0])
async def test_a_jump_back_of_the_wall_clock_keeps_no_dead_worker_alive(tmp_path: Path, lapsed: float) -> None:
    clock = FakeClock()
    store = sqlite_store(tmp_path / "jobs.db", clock=clock)
    other = sqlite_store(tmp_path / "jobs.db", clock=clock)
    await store.open()
    await other.open()
    await store.submit([job(), job()])
    [dead] = await claims(store, 1)
    clock.advance(lapsed)
    [alive] = await claims(store, 1)
    clock.step_wall(-3600)
    assert len(await store.rescue()) + len(await other.rescue()) == (lapsed > 0)
    clock.advance(20)
    assert (await store.renew(WORKER, 30.0, [], held=[alive.lease_id])).leases == {alive.lease_id}
    clock.advance(11)
    assert (await other.rescue() != []) == (lapsed == 0)
    [record] = await store.get([dead.id])
    assert record is not None
    assert record.losses == 1
    await store.close()
    await other.close()


async def test_what_a_lease_holds_can_be_read_back() -> None:
    store = sqlite_store(":memory:", runner=InlineRunner())
    await store.open()
    await store.submit([job() for _ in range(5)])
    asked = want(5)
    got = (await store.claim(asked)).claims

    def again() -> Script[list[UUID]]:
        return [row["id"] for row in (yield one("claimed_under", lease_id=asked.lease_id))]

    assert await store._driver.run(again, Lane.WRITE) == [claim.id for claim in got]
    await store.cancel([claim.id for claim in got], by="me", reason="enough")
    assert (await store.renew(WORKER, 30.0, [], held=[asked.lease_id])).cancels == {claim.id for claim in got}
    await store.close()


def _limit(key: str) -> Script[None]:
    yield one("put_key_limit", key=key, max_running=1, rate=None)


async def _keys(driver: SqliteDriver) -> list[str]:
    def script() -> Script[list[str]]:
        return [row["key"] for row in (yield one("get_key_limits"))]

    return await driver.run(script, Lane.READ)


async def _make(path: Path) -> None:
    driver = SqliteDriver(path)
    await driver.open()
    await driver.close()


def _add_migration(path: Path, *, breaking: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute(
        "insert into headway_migration (number, name, breaking) values (9000, '9000_future', ?)", (breaking,)
    )
    connection.commit()
    connection.close()
