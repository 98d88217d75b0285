"""Many callers at once: whatever one of them runs into, the others don't."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import asyncpg
import pytest

from headway import Headway, Job
from headway.functions import JobFunction
from headway.model.errors import InvalidJob, KeyBusy
from headway.model.states import State
from tests.flow.processes import Project

HELD = 10.0
"""Seconds for which somebody's transaction holds a key."""


@pytest.fixture
async def outsider(migrated: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(migrated)
    yield connection
    await connection.close()


@pytest.fixture
async def remind(migrated: str) -> AsyncIterator[JobFunction[[int], None]]:
    app = Headway(migrated)

    @app.job(name="remind")
    async def remind(n: int) -> None: ...

    yield remind
    await app.aclose()


async def test_a_key_held_by_a_foreign_transaction_holds_up_no_other_submit(
    remind: JobFunction[[int], None], outsider: asyncpg.Connection
) -> None:
    transaction = outsider.transaction()
    await transaction.start()
    await remind.options(key="x", on_conflict="wait", connection=outsider).asubmit(0)
    same = asyncio.ensure_future(remind.options(key="x", on_conflict="wait").asubmit(1))

    others = [remind.options(key=f"key {n % 10}", on_conflict="wait").asubmit(n) for n in range(100)]
    jobs = await asyncio.gather(*(remind.asubmit(n) for n in range(1_000)), *others)

    assert len({job.id for job in jobs}) == 1_100, "all are stored while the key is still held"
    with pytest.raises(KeyBusy, match="key x"):
        await same
    await transaction.rollback()
    assert (await remind.options(key="x", on_conflict="wait").asubmit(2)).state is State.SCHEDULED


@pytest.mark.prove
async def test_while_a_key_is_held_for_ten_seconds_others_are_as_quick_as_ever(
    remind: JobFunction[[int], None], outsider: asyncpg.Connection
) -> None:
    waiting: list[asyncio.Future[Any]] = []
    took: list[float] = []

    async def timed(submit: Awaitable[Job[None]]) -> None:
        began = time.monotonic()
        await submit
        took.append(time.monotonic() - began)

    async with outsider.transaction():
        await remind.options(key="x", on_conflict="wait", connection=outsider).asubmit(0)
        began = time.monotonic()
        for n in range(1_000):
            if n % 200 == 0:
                waiting.append(asyncio.ensure_future(remind.options(key="x", on_conflict="wait").asubmit(n)))
            waiting.append(asyncio.ensure_future(timed(remind.asubmit(n))))
            waiting.append(asyncio.ensure_future(timed(remind.options(key=f"key {n}", on_conflict="wait").asubmit(n))))
            await asyncio.sleep(max(0.0, began + HELD * (n + 1) / 1_000 - time.monotonic()))
        await asyncio.gather(*waiting, return_exceptions=True)
    p50, p99 = statistics.median(took), statistics.quantiles(took, n=100)[98]
    print(f"\na key held for {HELD:g} s, {len(took)} other submits: p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms")
    assert len(took) == 2_000
    assert p99 < 0.05


def test_two_processes_submit_the_same_keys_in_opposite_order(postgres_project: Project) -> None:
    app = postgres_project.app("""
        @app.job(name="remind")
        async def remind(n: int) -> None: ...
    """)
    program = """
import sys
from jobs import app, here, remind
keys = [f"key {number}" for number in range(10)][:: int(sys.argv[1])]
(here / f"ready{sys.argv[1]}").touch()
while len(list(here.glob("ready*"))) < 2: pass
for turn in range(20):
    app.submit_many([remind.options(key=key, on_conflict="wait").call(turn) for key in keys])
    for key in keys:
        remind.options(key=key, on_conflict="wait").submit(turn)
"""
    started = [postgres_project.processes.python("-c", program, step) for step in ("1", "-1")]
    for process in started:
        assert process.ended() == 0, process.text()
    jobs = app.jobs(limit=1_000)
    assert len(jobs) == 2 * 20 * 20
    assert [job.state for job in jobs].count(State.SCHEDULED) == 10, "one of each key, the others behind it"


async def test_of_a_hundred_callers_only_the_one_with_a_bad_row_is_refused(remind: JobFunction[[int], None]) -> None:
    good = [remind.asubmit(n) for n in range(99)]
    answers = await asyncio.gather(
        *good[:50], remind.options(created_by="a\x00b").asubmit(0), *good[50:], return_exceptions=True
    )
    refused = answers.pop(50)
    assert isinstance(refused, InvalidJob)
    assert all(isinstance(answer, Job) for answer in answers)
