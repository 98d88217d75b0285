"""The feed: what becomes of jobs, for those who show it live."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from headway import Headway
from headway.clock import SystemClock, deadline
from headway.components.feed import Feed
from headway.model.events import Event
from headway.store import make_store
from tests.logs import captured


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        f"sqlite:///{tmp_path}/headway.db"
        if request.param == "sqlite"
        else str(request.getfixturevalue("postgres_url"))
    )


class Reader:
    """Remembers what it hears of each job."""

    def __init__(self) -> None:
        self.told: dict[UUID, list[str]] = {}
        self._more = asyncio.Event()

    def heard(self, events: Sequence[Event]) -> None:
        for event in events:
            self.told.setdefault(event.job_id, []).append(event.event)
        self._more.set()

    async def reads(self, job_id: UUID, *events: str) -> None:
        async with deadline(SystemClock(), 30):
            while self.told.get(job_id) != list(events):
                self._more.clear()
                await self._more.wait()


async def test_a_job_s_whole_way_through_another_process_is_told(store_url: str) -> None:
    store = make_store(store_url)
    await store.migrate()
    await store.open()
    feed, reader = Feed(store), Reader()
    app = Headway(store_url)

    @app.job(name="greet")
    async def greet() -> str:
        return "hello"

    async with app.worker():
        # The worker hears of the feed when it is rung, which happens while it opens.
        await feed.open()
        stop = feed.listen(reader.heard)
        async with deadline(SystemClock(), 30):
            while True:
                job = await greet.asubmit()
                await job.finished(30)
                if "job.completed" in reader.told.get(job.id, []):
                    break
        job = await greet.asubmit()
        await reader.reads(job.id, "job.scheduled", "job.running", "job.completed")
        stop()
    await feed.close()
    await asyncio.to_thread(app.close)
    await store.close()


async def test_a_listener_that_fails_harms_nobody_else() -> None:
    store = make_store("sqlite://")
    await store.open()
    feed, reader = Feed(store), Reader()
    await feed.open()

    def fail(events: Sequence[Event]) -> None:
        raise RuntimeError("no")

    with captured() as lines:
        feed.listen(fail)
        feed.listen(reader.heard)
        await store.tell([])
        async with deadline(SystemClock(), 30):
            while not any(line["event"] == "feed.listener_failed" for line in lines):
                await asyncio.sleep(0)
    await feed.close()
    await store.close()
