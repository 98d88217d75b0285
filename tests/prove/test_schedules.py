"""Schedules in numbers: a month without a scheduler, and what a tick costs then."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from headway.bench.calendar import Kind, fill
from headway.clock import FakeClock
from headway.scheduler import Scheduler
from headway.serve import tune_process
from headway.store.postgres import postgres_store
from headway.store.scripts.schedules import ScheduleFilter, ScheduleRecord
from headway.store.sql import SqlStore
from headway.store.sqlite import sqlite_store

MINUTELY = 10_000
DOWN = timedelta(days=30)
START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Callable[[FakeClock], SqlStore]]:
    if request.param == "sqlite":
        path = tmp_path / "headway.db"
        return f"sqlite:///{path}", lambda clock: sqlite_store(path, clock=clock)
    url: str = request.getfixturevalue("postgres_url")
    return url, lambda clock: postgres_store(url, clock=clock)


@pytest.mark.prove
async def test_ten_thousand_minutely_schedules_after_a_month_without_a_scheduler(
    place: tuple[str, Callable[[FakeClock], SqlStore]],
) -> None:
    url, make = place
    clock = FakeClock(START)
    store = make(clock)
    await store.migrate()
    await store.open()
    await fill(url, Kind(prefix="s", count=MINUTELY, next_at=START + timedelta(minutes=1)))
    clock.advance(DOWN.total_seconds())
    # As in a scheduler's own process, whose memory is not full of tests.
    tune_process()
    began = time.monotonic()
    scheduler = Scheduler(clock)
    await scheduler.tick(store)
    took = time.monotonic() - began
    lines = await asyncio.gather(*(store.occurrences(key) for key in await every_tenth(store)))
    print(f"\n{MINUTELY:,} minutely schedules, 30 days down: {scheduler.jobs:,} jobs in {took:.2f} s")
    assert scheduler.jobs == MINUTELY
    assert {len(own) for own in lines} == {2}
    assert {sum(line.count for line in own) for own in lines} == {30 * 24 * 60}
    assert took < 2.0
    await store.close()


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


async def every_tenth(store: SqlStore) -> list[UUID]:
    found: list[UUID] = []
    cursor = ""
    while page := await store.find_schedules(ScheduleFilter(cursor=cursor, limit=1000)):
        found += [one.id for one in page[::10] if isinstance(one, ScheduleRecord)]
        cursor = page[-1].name
    return found
