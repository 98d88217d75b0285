"""Queues and limits: slots, pauses, cluster-wide limits with two workers, retention."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headway import Headway, Job
from headway.duties.tending import Tending
from headway.model.errors import ConfigurationError, JobNotFound
from headway.model.limits import Retention
from headway.model.states import State
from tests.flow.waiting import until


class Counter:
    """Counts how many run at once."""

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def run(self, group: str, seconds: float) -> None:
        self.now[group] = self.now.get(group, 0) + 1
        self.most[group] = max(self.most.get(group, 0), self.now[group])
        await asyncio.sleep(seconds)
        self.now[group] -= 1


async def test_each_queue_has_its_own_slots(app: Headway) -> None:
    counter = Counter()

    @app.job
    async def f(group: str) -> None:
        await counter.run(group, 0.05)

    calls = [f.options(queue=queue).call(queue) for queue in ("a", "b") for _ in range(12)]
    jobs = await app.asubmit_many(calls)
    async with app.worker(queues={"a": 1, "b": 4}):
        for job in jobs:
            await job.finished(60)
    assert counter.most == {"a": 1, "b": 4}


async def test_never_more_than_twice_the_slots_are_in_hand(app: Headway) -> None:
    most = 0

    @app.job
    async def f() -> None:
        nonlocal most
        assert worker.worker is not None
        most = max(most, worker.worker.in_hand)

    jobs = await app.asubmit_many([f.call() for _ in range(300)])
    worker = app.worker(concurrency=5)
    async with worker:
        for job in jobs:
            await job.finished(60)
    assert 1 <= most <= 10


async def test_long_jobs_are_not_hoarded(app: Headway) -> None:
    """What this worker can't begin soon is left for another."""
    gate = asyncio.Event()

    @app.job
    async def f() -> None:
        await gate.wait()

    jobs = await app.asubmit_many([f.call() for _ in range(10)])
    async with app.worker(concurrency=3) as first:
        await until(lambda: first.worker is not None and first.worker.running == 3, "the slots to fill")
        assert first.worker is not None
        assert first.worker.in_hand == 3
        async with app.worker(concurrency=7) as second:
            await until(lambda: second.worker is not None and second.worker.running == 7, "the other to take the rest")
            gate.set()
            for job in jobs:
                await job.finished(60)


async def test_queues_are_started_and_stopped_while_the_worker_runs(app: Headway) -> None:
    gate = asyncio.Event()

    @app.job
    async def slow() -> None:
        await gate.wait()

    @app.job(queue="mail")
    async def f() -> str:
        return "went"

    async with app.worker(queues=["default"]) as worker:
        running = await slow.asubmit()
        first = await f.asubmit()
        await until(lambda: worker.worker is not None and worker.worker.running == 1, "the slow job to begin")
        assert (await first.arefresh()).state is State.SCHEDULED
        worker.start_queue("mail", 2)
        assert (await first.finished(60)).result == "went"
        await worker.stop_queue("mail")
        await worker.stop_queue("default")
        held, unbegun = await f.asubmit(), await slow.asubmit()
        gate.set()
        assert (await running.finished(60)).state is State.COMPLETED, "a running job goes on when its queue is stopped"
        assert (await held.arefresh()).state is State.SCHEDULED
        worker.start_queue("mail")
        worker.start_queue("default")
        for job in (held, unbegun):
            assert (await job.finished(60)).state is State.COMPLETED
        with pytest.raises(ConfigurationError, match="does not serve the queue 'nosuch'"):
            await worker.stop_queue("nosuch")


async def test_a_paused_queue_stands_still_for_all_workers(app: Headway) -> None:
    @app.job(queue="mail")
    async def f() -> None: ...

    @app.job
    async def g() -> None: ...

    async with app.worker(queues=["mail", "default"]), app.worker(queues=["mail"]):
        await app.aqueue("mail", paused=True)
        job = await f.asubmit()
        await (await g.asubmit()).finished(60)
        await asyncio.sleep(1.2)  # longer than the poll, which must not find it either
        assert (await job.arefresh()).state is State.SCHEDULED
        await app.aqueue("mail", paused=False)
        assert (await job.finished(3)).state is State.COMPLETED


async def test_a_change_of_one_queue_setting_keeps_the_others(app: Headway) -> None:
    await app.aqueue("mail", max_running=2, rate="10/s")
    await app.aqueue("mail", paused=True)
    limits = await app.client.call(lambda store: store.limits())
    settings = limits.queues["mail"]
    assert (settings.max_running, str(settings.rate), settings.paused) == (2, "10/1s", True)
    await app.aqueue("mail", max_running=None)
    limits = await app.client.call(lambda store: store.limits())
    assert (limits.queues["mail"].max_running, limits.queues["mail"].paused) == (None, True)


@pytest.mark.parametrize("scope", ["queue", "key", "each key"])
async def test_max_running_holds_over_two_workers(app: Headway, scope: str) -> None:
    counter = Counter()

    @app.job
    async def f(group: str) -> None:
        await counter.run(group, 0.03)

    match scope:
        case "queue":
            await app.aqueue("default", max_running=3)
            calls = [f.call("all") for _ in range(30)]
        case "key":
            await app.alimit("k", max_running=3)
            calls = [f.options(key="k").call("all") for _ in range(30)] + [f.call("free") for _ in range(30)]
        case _:
            await app.aqueue("default", key_max_running=3)
            calls = [f.options(key=f"k{n % 2}").call(f"k{n % 2}") for n in range(40)]
    async with app.worker(concurrency=20), app.worker(concurrency=20):
        jobs = await app.asubmit_many(calls)
        for job in jobs:
            assert (await job.finished(60)).state is State.COMPLETED
    most: dict[str, Any] = dict(counter.most)
    assert most.pop("free", 20) > 3, "others are not held up"
    assert set(most.values()) == {3}


async def test_a_rate_holds_over_two_workers(app: Headway) -> None:
    @app.job
    async def f() -> None:
        pass

    await app.aqueue("default", rate="5/s")
    async with app.worker(), app.worker():
        jobs = await app.asubmit_many([f.call() for _ in range(12)])
        ended = [await job.finished(60) for job in jobs]
    # By the store's clock: a claimed job of a busy machine may begin later than the one after it.
    starts = sorted(job.claimed_at.timestamp() for job in ended if job.claimed_at)
    assert len(starts) == 12
    # A bucket of five at once, then one every 0.2 s: never more than 5 + 5 t in t seconds.
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            assert last - first + 1 <= 5 + 5 * (starts[last] - starts[first]) + 0.5
    assert 1.2 <= starts[-1] - starts[0] <= 10, "7 of the 12 had to wait, 0.2 s each"


async def test_ended_jobs_are_removed_after_their_time(app: Headway) -> None:
    @app.job
    async def f(fail: bool) -> None:
        if fail:
            raise ValueError

    async with app.worker() as worker:
        # The first may be gone at any moment after its end: the worker prunes as well.
        await f.options(retain=0.01).asubmit(False)
        kept, failed = await f.asubmit(False), await f.asubmit(True)
        waiting = await f.options(delay=600).asubmit(False)
        for job in (kept, failed):
            await job.finished(60)
        assert worker.worker is not None
        for retention, left in ((Retention(), {kept, failed, waiting}), (Retention(completed=0), {failed, waiting})):
            tending = Tending(
                worker.worker.id, app._clock, retention=retention, ended=lambda: 0, on_rescued=lambda rescued: None
            )

            async def pruned(tending: Tending = tending, left: set[Job[Any]] = left) -> bool:
                await app.client.call(tending.prune)
                return {job.id for job in await app.ajobs()} == {job.id for job in left}

            await until(pruned, f"only {len(left)} jobs to be left")
        with pytest.raises(JobNotFound, match="retention removed it"):
            await kept.arefresh()
