"""RabbitMQ between scheduler and workers: doorbells, calls, events; and what happens when it is gone."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest

from headway import Headway, Job, current, every
from headway.bus import make_bus
from headway.bus.contract import Bus
from headway.clock import SystemClock
from headway.contracts.buses.town import Ear
from headway.duties.dispatch import WINDOW, Dispatcher
from headway.model.states import State
from headway.scheduler.post import Post
from headway.scheduler.service import Options, SchedulerService
from headway.store import make_store
from tests.flow.audit import audit
from tests.flow.proxy import Proxy
from tests.flow.waiting import until
from tests.rabbit import Rabbit, RabbitServer

NOWHERE = "amqp://guest:guest@127.0.0.1:1/"


@asynccontextmanager
async def dispatching(store_url: str, bus_url: str) -> AsyncIterator[Bus]:
    """What a scheduler does besides firing; the bus on which it rings."""
    store, bus = make_store(store_url), make_bus(bus_url)
    await store.open()
    await bus.join()
    running = asyncio.create_task(Dispatcher(uuid4(), store, bus, SystemClock()).run())
    try:
        yield bus
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
    done = await (await app.function("work").asubmit(0)).finished(60)
    return float(done.result or 0) - submitted


async def test_a_doorbell_wakes_a_worker_long_before_it_looks_by_itself(
    store_url: str, rabbit: Rabbit, queue: str
) -> None:
    app = app_with(store_url, rabbit.url, queue)
    async with dispatching(store_url, rabbit.url), app.worker(queues=[queue]):
        await (await app.function("work").asubmit(0)).finished(60)
        delay = 1.0
        for _ in range(3):  # tries: a machine with other things to do may be late for a while
            delay = statistics.median([await begun_after(app) for _ in range(10)])
            if delay < 0.2:
                break
    print(f"\nrung for and begun after {delay * 1000:.0f} ms")
    assert delay < 0.2, "looking every second finds a job after half a second"
    await app.aclose()


async def test_a_delayed_job_is_rung_for_at_its_time(store_url: str, rabbit: Rabbit, queue: str) -> None:
    app = app_with(store_url, rabbit.url, queue)
    async with dispatching(store_url, rabbit.url), app.worker(queues=[queue]):
        late = []
        for _ in range(5):
            job = await app.function("work").options(delay=1.3).asubmit(0)
            done = await job.finished(60)
            late.append(float(done.result or 0) - done.run_at.timestamp())
            if late[-1] < 0.25:
                break
        assert min(late) >= 0
        assert late[-1] < 0.25, "found by looking every second, not rung for"
    await app.aclose()


async def test_a_scheduler_that_rings_hears_of_new_schedules_too(store_url: str, rabbit: Rabbit, queue: str) -> None:
    app, store, bus, bell = app_with(store_url, rabbit.url, queue), make_store(store_url), make_bus(rabbit.url), Ear()
    await store.open()
    await bus.open()
    await bus.listen(queue, bell)
    service = SchedulerService(SystemClock(), Options(poll=300))
    post = Post(rabbit.url, service.id, None, SystemClock())
    serving = asyncio.create_task(service.serve(store))
    post.open(store)
    await app.function("work").asubmit(0)
    await bell.hears()
    await app.aschedule("soon", every(0.2), app.function("count"))
    await until(lambda: service.scheduler.jobs, "a job, long before the scheduler looks by itself")
    await post.close()
    service.stop()
    await serving
    await bus.close()
    await store.close()
    await app.aclose()


async def test_a_full_worker_leaves_the_doorbell_to_another(store_url: str, rabbit: Rabbit, queue: str) -> None:
    app = app_with(store_url, rabbit.url, queue)
    other = app_with(store_url, rabbit.url, queue)
    async with dispatching(store_url, rabbit.url), app.worker(queues={queue: 1}) as full:
        long = [await app.function("work").asubmit(4), await app.function("work").asubmit(4)]
        await until(lambda: full.worker is not None and full.worker.running == 1, "the worker to be busy")
        async with other.worker(queues={queue: 5}) as free:
            assert min([await begun_after(app) for _ in range(5)]) < 1.0
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
        assert (await job.finished(60)).state is State.CANCELLED
        assert time.monotonic() - asked < 9, "renewals come every ten seconds"
    await app.aclose()


async def test_a_foreign_client_reads_what_becomes_of_a_job(store_url: str, rabbit: Rabbit, queue: str) -> None:
    app = app_with(store_url, rabbit.url, queue)
    with rabbit.connect() as connection:
        channel = connection.channel()
        mine = channel.queue_declare("", exclusive=True).method.queue
        channel.exchange_declare("headway.events", "topic", durable=True)
        channel.queue_bind(mine, "headway.events", "job.*")
        async with dispatching(store_url, rabbit.url), app.worker(queues=[queue]):
            job = await (await app.function("work").asubmit(0)).finished(60)
        events: list[dict[str, Any]] = []
        for _ in range(100):
            method, _, body = channel.basic_get(mine, auto_ack=True)
            if method is None:
                break
            if json.loads(body)["job_id"] == str(job.id):
                events.append(json.loads(body) | {"key": method.routing_key})
    # Whoever fires or dispatches tells that it was stored, in its own time.
    events = [event for event in events if event["key"] != "job.scheduled"]
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
        await (await app.function("work").asubmit(0)).finished(60)
        found = await audit(app, jobs)
        print(f"\nbroker {blow}: {found}")
        assert found.accepted == found.finished == len(jobs)
        assert found.lost == 0
        delays = [await begun_after(app) for _ in range(5)]
        assert sorted(delays)[2] < 0.3, "doorbells ring again"
    await app.aclose()


async def test_with_a_store_that_is_late_by_the_window_each_job_still_runs_once(
    migrated: str, rabbit: Rabbit, queue: str
) -> None:
    """Claims reach the store when the jobs have been rung for again, ends as late: others are woken for them
    meanwhile."""
    late = WINDOW + 0.5
    runs: Counter[UUID] = Counter()
    with Proxy(migrated) as proxy:
        app, submitter = Headway(proxy.url, bus=rabbit.url), Headway(migrated)

        @app.job(name="once", queue=queue)
        async def once() -> list[int]:
            runs[current().job_id] += 1
            return [current().attempt, current().token]

        crew = [app.worker(queues={queue: 20}) for _ in range(2)]
        async with dispatching(migrated, rabbit.url) as bus, crew[0], crew[1]:
            proxy.slow = dict.fromkeys(("insert into headway.lease", "finished_token = j.token"), late)
            jobs = await submitter.asubmit_many([once.call() for _ in range(40)])
            found, rung = await audit(submitter, jobs), bus.counters.rung
            proxy.slow = {}
        print(f"\n{proxy.held_up} claims and ends were {late:g} s late, {rung} doorbells: {found}")
        assert runs == Counter(job.id for job in jobs)
        assert (found.accepted, found.attempts, found.lost) == (40, 40, 0)
        assert proxy.held_up >= 4
        assert rung >= 2, "rung for again while the claims were on their way"
        await app.aclose()
        await submitter.aclose()


async def test_without_the_broker_workers_find_their_jobs_by_themselves(store_url: str, queue: str) -> None:
    app = app_with(store_url, NOWHERE, queue)
    async with app.worker(queues=[queue]):
        jobs = [await app.function("work").asubmit(0) for _ in range(50)]
        for job in jobs:
            assert (await job.finished(60)).state is State.COMPLETED
    await app.aclose()
