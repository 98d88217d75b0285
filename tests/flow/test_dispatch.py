"""RabbitMQ between scheduler and workers: doorbells, calls, events; and what happens when it is gone."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from headway import Headway, Job, current
from headway.bus import make_bus
from headway.clock import SystemClock
from headway.duties.dispatch import Dispatcher
from headway.model.states import State
from headway.store import make_store
from tests.flow.audit import audit
from tests.flow.waiting import until
from tests.rabbit import Rabbit, RabbitServer

NOWHERE = "amqp://guest:guest@127.0.0.1:1/"


@asynccontextmanager
async def dispatching(store_url: str, bus_url: str) -> AsyncIterator[Dispatcher]:
    """What a scheduler does besides firing."""
    store, bus = make_store(store_url), make_bus(bus_url)
    await store.open()
    await bus.join()
    dispatcher = Dispatcher(uuid4(), store, bus, SystemClock())
    running = asyncio.create_task(dispatcher.run())
    try:
        yield dispatcher
    finally:
        running.cancel()
        await asyncio.wait([running])
        await bus.close()
        await store.close()


@pytest.fixture
def queue() -> str:
    """A queue of its own for each test: the broker is shared."""
    return f"q{uuid4().hex[:12]}"


def app_with(store_url: str, bus_url: str, queue: str) -> Headway:
    app = Headway(store_url, bus=bus_url)

    @app.job(name="work", queue=queue)
    async def work(seconds: float) -> float:
        begun = time.time()
        await asyncio.sleep(seconds)
        return begun

    @app.job(name="count", queue=queue)
    async def count() -> list[int]:
        await asyncio.sleep(0.01)
        return [current().attempt, current().token]

    return app


async def begun_after(app: Headway) -> float:
    """Seconds from the submission of a job to its begin; a while after the one before."""
    await asyncio.sleep(0.05)
    submitted = time.time()
    done = await (await app.function("work").asubmit(0)).finished(10)
    return float(done.result or 0) - submitted


async def test_a_doorbell_wakes_a_worker_long_before_it_looks_by_itself(
    store_url: str, rabbit: Rabbit, queue: str
) -> None:
    app = app_with(store_url, rabbit.url, queue)
    async with dispatching(store_url, rabbit.url), app.worker(queues=[queue]):
        await (await app.function("work").asubmit(0)).finished(10)
        delays = [await begun_after(app) for _ in range(10)]
    print(f"\nrung for and begun after {sorted(delays)[5] * 1000:.0f} ms")
    assert sorted(delays)[5] < 0.2
    await app.aclose()


async def test_a_delayed_job_is_rung_for_at_its_time(store_url: str, rabbit: Rabbit, queue: str) -> None:
    app = app_with(store_url, rabbit.url, queue)
    async with dispatching(store_url, rabbit.url), app.worker(queues=[queue]):
        job = await app.function("work").options(delay=1.3).asubmit(0)
        done = await job.finished(10)
        assert 0 <= float(done.result or 0) - done.run_at.timestamp() < 0.25
    await app.aclose()


async def test_a_full_worker_leaves_the_doorbell_to_another(store_url: str, rabbit: Rabbit, queue: str) -> None:
    app = app_with(store_url, rabbit.url, queue)
    other = app_with(store_url, rabbit.url, queue)
    async with dispatching(store_url, rabbit.url), app.worker(queues={queue: 1}) as full:
        long = [await app.function("work").asubmit(4), await app.function("work").asubmit(4)]
        await until(lambda: full.worker is not None and full.worker.running == 1, "the worker to be busy")
        async with other.worker(queues={queue: 5}) as free:
            for _ in range(5):
                assert await begun_after(app) < 1.0
            assert free.worker is not None
            assert free.worker.ended >= 5
        await app.acancel(*long)
    await app.aclose()
    await other.aclose()


async def test_a_cancel_reaches_the_worker_by_the_bus(store_url: str, rabbit: Rabbit, queue: str) -> None:
    app = app_with(store_url, rabbit.url, queue)
    async with dispatching(store_url, rabbit.url), app.worker(queues=[queue]) as worker:
        job = await app.function("work").asubmit(60)
        await until(lambda: worker.worker is not None and worker.worker.running == 1, "the job to begin")
        asked = time.monotonic()
        await app.acancel(job)
        assert (await job.finished(10)).state is State.CANCELLED
        assert time.monotonic() - asked < 3, "renewals come every ten seconds"
    await app.aclose()


async def test_a_foreign_client_reads_what_becomes_of_a_job(store_url: str, rabbit: Rabbit, queue: str) -> None:
    app = app_with(store_url, rabbit.url, queue)
    with rabbit.connect() as connection:
        channel = connection.channel()
        mine = channel.queue_declare("", exclusive=True).method.queue
        channel.exchange_declare("headway.events", "topic", durable=True)
        channel.queue_bind(mine, "headway.events", "job.*")
        async with dispatching(store_url, rabbit.url), app.worker(queues=[queue]):
            job = await (await app.function("work").asubmit(0)).finished(10)
        events: list[dict[str, Any]] = []
        for _ in range(100):
            method, _, body = channel.basic_get(mine, auto_ack=True)
            if method is None:
                break
            if json.loads(body)["job_id"] == str(job.id):
                events.append(json.loads(body) | {"key": method.routing_key})
    assert [event["key"] for event in events] == ["job.running", "job.completed"]
    assert events[1].keys() >= {"event", "job_id", "kind", "name", "queue", "state", "outcome", "attempt", "at"}
    assert (events[1]["outcome"], events[1]["queue"], events[1]["attempt"]) == ("succeeded", queue, 1)
    await app.aclose()


class Load:
    """Submits on and on, to workers that hear from a broker."""

    def __init__(self, app: Headway) -> None:
        self._app = app
        self.jobs: list[Job[Any]] = []
        self._submitting = asyncio.create_task(self._submit())

    async def _submit(self) -> None:
        while True:
            self.jobs.append(await self._app.function("count").asubmit())
            await asyncio.sleep(0.005)

    async def end(self) -> list[Job[Any]]:
        self._submitting.cancel()
        await asyncio.wait([self._submitting])
        return self.jobs


@pytest.mark.parametrize("blow", ["kill", "wipe"])
async def test_the_broker_may_die_or_forget_everything_under_load(
    migrated: str, private_rabbit: RabbitServer, queue: str, blow: str
) -> None:
    app = app_with(migrated, private_rabbit.url, queue)
    async with (
        dispatching(migrated, private_rabbit.url),
        app.worker(queues={queue: 20}),
        app.worker(queues={queue: 20}),
    ):
        load = Load(app)
        await asyncio.sleep(1.0)
        if blow == "kill":
            await asyncio.to_thread(private_rabbit.kill)
            await asyncio.sleep(1.0)
            await asyncio.to_thread(private_rabbit.start)
        else:
            await asyncio.to_thread(private_rabbit.wipe)
        await asyncio.sleep(1.5)
        jobs = await load.end()
        await (await app.function("work").asubmit(0)).finished(10)
        found = await audit(app, jobs)
        print(f"\nbroker {blow}: {found}")
        assert found.accepted == found.finished == len(jobs)
        assert found.lost == 0
        delays = [await begun_after(app) for _ in range(5)]
        assert sorted(delays)[2] < 0.3, "doorbells ring again"
    await app.aclose()


async def test_without_the_broker_workers_find_their_jobs_by_themselves(store_url: str, queue: str) -> None:
    app = app_with(store_url, NOWHERE, queue)
    async with app.worker(queues=[queue]):
        jobs = [await app.function("work").asubmit(0) for _ in range(50)]
        for job in jobs:
            assert (await job.finished(10)).state is State.COMPLETED
    await app.aclose()
