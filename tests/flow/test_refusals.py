"""A server that is there and refuses: read-only after a failover, statements broken off. No job is to blame for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncpg
import pytest

from headway import Headway, Job
from headway.model.errors import StoreUnavailable
from headway.model.states import Outcome, State
from headway.serve import AppWorker
from tests.flow.conftest import migrate
from tests.flow.waiting import until
from tests.logs import captured
from tests.servers import PostgresServer

Refusal = Callable[[str], AbstractAsyncContextManager[None]]
ENOUGH = {"worker.claim_delayed", "worker.finish_delayed"}


@asynccontextmanager
async def read_only(url: str) -> AsyncIterator[None]:
    """No session may write, as on a server that has become a standby."""
    async with _set(url, "default_transaction_read_only", "on"):
        yield


@asynccontextmanager
async def broken_off(url: str) -> AsyncIterator[None]:
    """Whatever changes a job takes too long, and the server breaks it off."""
    async with _set(url, "statement_timeout", "100ms") as connection, connection.transaction():
        await connection.execute("lock table headway.job in exclusive mode")
        yield


@asynccontextmanager
async def _set(url: str, setting: str, value: str) -> AsyncIterator[asyncpg.Connection]:
    """A setting of the whole server, but not of the connection that is given out."""
    mine = {"default_transaction_read_only": "off", "statement_timeout": "0"}
    connection = await asyncpg.connect(url, server_settings=mine)
    await connection.execute(f"alter system set {setting} = '{value}'")
    await connection.execute("select pg_reload_conf()")
    try:
        yield connection
    finally:
        await connection.execute(f"alter system reset {setting}")
        await connection.execute("select pg_reload_conf()")
        await connection.close()


async def test_a_server_that_refuses_for_a_while_makes_no_failures_and_kills_no_loop(
    private_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The worker is not ready meanwhile; nobody waits a minute here to see it.
    monkeypatch.setattr("headway.worker.worker.STALLED", 0.5)
    url = private_postgres.create_database()
    await migrate(url)
    app = Headway(url)
    done = asyncio.Event()

    @app.job(name="held")
    async def held() -> str:
        await done.wait()
        return "done"

    @app.job(name="work")
    async def work() -> str:
        return "done"

    async with app.worker(lease=10) as worker:
        for refusal in (read_only, broken_off):
            await _live_through(app, worker, refusal, url, done)
    await app.aclose()


async def _live_through(app: Headway, worker: AppWorker, refusal: Refusal, url: str, done: asyncio.Event) -> None:
    done.clear()
    held, work = app.function("held"), app.function("work")
    running = await held.asubmit()
    await until(lambda: _is(running.arefresh, State.RUNNING), "the job to begin")
    # Due while the server refuses: the worker looks for it, and can't have it.
    due = [await work.options(delay=0.3).asubmit() for _ in range(2)]
    with captured() as lines:
        async with refusal(url):
            done.set()
            await until(lambda: _refused(work.asubmit), "a submit to be refused")
            await until(lambda: {line["event"] for line in lines} >= ENOUGH, f"{ENOUGH} in the log")
            await until(lambda: "no claim" in (worker.signs.ready() or ""), "the worker to tell that it can't claim")
        jobs = [running, *due, await work.asubmit()]
        ends = [await job.finished(60) for job in jobs]
        await until(lambda: worker.signs.ready() is None, "the worker to be ready again")
    assert [(end.outcome, end.result, end.attempt) for end in ends] == [(Outcome.SUCCEEDED, "done", 1)] * len(jobs)
    assert [line for line in lines if line["level"] in {"error", "critical"}] == []


async def _is(read: Callable[[], Awaitable[Job[Any]]], state: State) -> bool:
    return (await read()).state is state


async def _refused(submit: Callable[[], Awaitable[object]]) -> bool:
    try:
        await submit()
    except StoreUnavailable:
        return True
    return False


async def test_changes_of_jobs_wait_for_a_key_and_for_a_row_in_other_hands(migrated: str) -> None:
    app = Headway(migrated)

    @app.job(name="work")
    async def work() -> None: ...

    other = await asyncpg.connect(migrated)
    held, free = [(await work.options(key=key, on_conflict="wait").asubmit()).id for key in ("held", "free")]
    await other.execute("begin")
    await other.execute("select from headway.job where id = $1 for update", held)
    cancelling = asyncio.create_task(app.acancel(held, free))
    # Longer than a statement of ours waits for a row.
    await other.execute("select pg_sleep(0.5)")
    await other.execute("rollback")
    assert await cancelling == [State.CANCELLED, State.CANCELLED]
    await other.execute("begin")
    await other.execute("select pg_advisory_xact_lock(hashtextextended('headway:key held', 0))")
    retrying = asyncio.create_task(app.aretry(held, free))
    await until(lambda: _is(lambda: app.aget(free), State.SCHEDULED), "the one whose key is free to be retried")
    assert (await app.aget(held)).state is State.CANCELLED
    await other.execute("rollback")
    assert await retrying == [State.SCHEDULED, State.SCHEDULED]
    await other.close()
    await app.aclose()
