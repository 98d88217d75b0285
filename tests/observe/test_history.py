"""What queues did, minute by minute: written down once, gathered later, told in steps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from headway import Headway, Retry
from headway.clock import FakeClock
from headway.duties.recording import Recorder
from headway.model.history import BOUNDS, COARSE, KEPT, MINUTE, Figures, Row, Spread, floor, gathered
from headway.store import make_store
from headway.store.contract import Store
from tests.api.conftest import Site


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(store_url: str, clock: FakeClock) -> AsyncIterator[Store]:
    store = make_store(store_url, clock)
    await store.open()
    yield store
    await store.close()


def figures(completed: int, *runs: float, **more: Any) -> Figures:
    return Figures(completed=completed, run=Spread.of(runs), **more)


def test_a_quantile_lies_between_the_bounds_of_its_bucket() -> None:
    spread = Spread.of([0.02] * 50 + [3.0] * 49 + [4000.0])
    assert spread.number == 100
    assert 0.01 <= (spread.quantile(0.25) or 0) <= 0.025
    assert 2.5 <= (spread.quantile(0.95) or 0) <= 5.0
    assert (spread.quantile(1.0) or 0) > BOUNDS[-1]
    assert Spread().quantile(0.5) is None


async def test_lines_of_several_processes_become_one_and_later_longer_steps(store: Store, clock: FakeClock) -> None:
    minute = floor(clock.now(), MINUTE)
    line = uuid4()
    for _ in range(2):
        # The same line twice, as after a commit of unknown outcome.
        await store.add_figures(line, [Row(minute, "mail", figures(3, 0.125)), Row(minute, "slow", figures(1))])
    await store.add_figures(uuid4(), [Row(minute, "mail", figures(4, 0.25, 9.0, due=7))])
    await store.add_figures(uuid4(), [Row(minute + MINUTE, "mail", figures(5))])
    before = gathered(await store.figures(minute), MINUTE)
    clock.advance(300)
    await store.gather_figures()
    rows = await store.figures(minute)
    assert len(rows) == 3
    assert gathered(rows, MINUTE) == before
    assert before[0] == Row(minute, "mail", figures(7, 0.125, 0.25, 9.0, due=7))
    assert [row.queue for row in await store.figures(minute, "slow")] == ["slow"]
    clock.advance(27 * 3600)
    await store.gather_figures()
    assert [(row.at, row.queue, row.figures.completed) for row in gathered(await store.figures(minute), MINUTE)] == [
        (floor(minute, COARSE), "mail", 12),
        (floor(minute, COARSE), "slow", 1),
    ]
    clock.advance(KEPT.total_seconds())
    await store.gather_figures()
    assert await store.figures(minute - timedelta(days=30)) == []


class Counted:
    """A process that has done the same every time."""

    def __init__(self) -> None:
        self.waiting = {"mail": figures(2, 0.1)}

    def take(self) -> dict[str, Figures]:
        taken, self.waiting = self.waiting, {}
        return taken

    def put_back(self, taken: dict[str, Figures]) -> None:
        self.waiting = taken


async def test_each_process_writes_down_a_minute_once_and_one_of_them_the_backlog(
    store: Store, clock: FakeClock
) -> None:
    counted = [Counted(), Counted()]
    recorders = [Recorder(uuid4(), each) for each in counted]
    waits = [await recorder.record(store) for recorder in recorders]
    assert all(0 < wait <= 61 for wait in waits)
    assert await store.figures(clock.now() - timedelta(hours=1)) == []
    clock.advance(max(waits))
    for recorder in recorders:
        await recorder.record(store)
    clock.advance(1)
    for recorder in recorders:
        await recorder.flush(store)
    [total] = gathered(await store.figures(clock.now() - timedelta(hours=1)), MINUTE)
    assert (total.queue, total.figures.completed, total.figures.run.number) == ("mail", 4, 2)
    assert all(not each.waiting for each in counted)


async def test_history_tells_of_every_end_that_a_worker_recorded(sites: Any, store_url: str) -> None:
    app = Headway(store_url)

    @app.job(queue="mail", name="good")
    async def good() -> None: ...

    @app.job(queue="mail", name="bad", retry=Retry(max_attempts=2, wait=0.0))
    async def bad() -> None:
        raise ValueError("no")

    site: Site = await sites(app)
    async with app.worker(queues=["mail"]):
        jobs = [await good.asubmit() for _ in range(5)] + [await bad.asubmit()]
        for job in jobs:
            await job.finished(60)
    # The step under way is not told: look at the figures themselves, which the worker wrote when it stopped.
    async with app.worker(queues=["other"]) as worker:
        assert worker.worker is not None
        store = worker.worker._store
        [row] = gathered(await store.figures(await store.now() - timedelta(hours=1), "mail"), timedelta(hours=24))
    told = row.figures
    assert (told.completed, told.failed, told.retried, told.cancelled) == (5, 1, 1, 0)
    assert (told.run.number, told.wait.number) == (7, 7)
    for period, steps in (("hour", 60), ("day", 96), ("week", 84)):
        answer = await site.get("/stats/history", params={"period": period})
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert len(body["total"]) == steps
        assert all(len(queue["points"]) == steps for queue in body["queues"])
    assert (await site.get("/stats/history", params={"period": "year"})).status_code == 422
