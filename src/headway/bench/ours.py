"""Roles played by Headway, through its public face as users have it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count as numbers
from typing import Any

from uuid_utils.compat import uuid7

from headway.bench.app import ANSWERS, FULL, QUEUE, Bench
from headway.bench.child import Parent, Stopwatch, clock
from headway.bench.children import Seat
from headway.clock import sleep
from headway.model.job import Finish
from headway.observe import page
from headway.serve import AppWorker, tune_process
from headway.store import make_store
from headway.store.scripts.work import Want

COUNT_EVERY = 0.005
LOAD_BATCH = 1000


async def load(_parent: Parent, *, url: str, count: int) -> None:
    """So many due jobs."""
    bench = Bench(url)
    for start in range(0, count, LOAD_BATCH):
        calls = [bench.noop.call(number) for number in range(start, min(start + LOAD_BATCH, count))]
        await bench.app.asubmit_many(calls)
    await asyncio.to_thread(bench.app.close)


async def single(parent: Parent, *, url: str, count: int) -> dict[str, float]:
    """One caller, who waits for each submission."""
    bench = await _opened(url)
    await parent.go()
    watch = Stopwatch()
    for number in range(count):
        await bench.noop.asubmit(number)
    return await _done(bench, watch)


async def concurrent(parent: Parent, *, url: str, count: int, callers: int) -> dict[str, float]:
    """Many callers at once, each waiting for its own."""
    bench = await _opened(url)
    supply = iter(range(count))

    async def caller() -> None:
        for number in supply:
            await bench.noop.asubmit(number)

    await parent.go()
    watch = Stopwatch()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return await _done(bench, watch)


async def many(parent: Parent, *, url: str, count: int, batch: int) -> dict[str, float]:
    """Batches, one after another."""
    bench = await _opened(url)
    await parent.go()
    watch = Stopwatch()
    for start in range(0, count, batch):
        await bench.app.asubmit_many([bench.noop.call(number) for number in range(start, start + batch)])
    return await _done(bench, watch)


async def drain(
    parent: Parent, *, url: str, slots: int, seat: dict[str, Any], counted: bool = False
) -> dict[str, float]:
    """A worker that works until it is told to stop, in a process like that of `headway worker`; with its page of
    metrics, if `counted`."""
    with page.reported(page.Address(port=0) if counted else None):
        return await _drain(parent, url, slots, seat)


async def _drain(parent: Parent, url: str, slots: int, seat: dict[str, Any]) -> dict[str, float]:
    tune_process()
    # Connected before the signal, as the bare pipeline is; on a queue in which nothing waits.
    worker = Bench(url).app.worker(queues={ANSWERS: 1})
    await worker.start()
    count = Seat.of(seat).put
    await parent.go()
    watch = Stopwatch()
    worker.start_queue(QUEUE, slots)
    counting = asyncio.create_task(_count(worker, count))
    await parent.hear()
    used = watch.read()
    counting.cancel()
    ended = _ended(worker)
    await worker.stop()
    return {**used, "ended": ended}


async def serve(parent: Parent, *, url: str, slots: int, workers: int = 1) -> None:
    """Workers that are ready once they serve, until they are told to stop."""
    tune_process()
    serving = [Bench(url).app.worker(queues={QUEUE: slots}) for _ in range(workers)]
    for worker in serving:
        await worker.start()
    await parent.go()
    for worker in serving:
        await worker.stop()


async def receive(parent: Parent, *, url: str, slots: int) -> list[float]:
    """A worker that notes how long after their submission jobs begin."""
    tune_process()
    bench = Bench(url)
    async with bench.app.worker(queues={QUEUE: slots}):
        await parent.go()
    return bench.delays


async def send(parent: Parent, *, url: str, count: int, every: float) -> None:
    """Submit jobs that carry the moment of their submission, at a steady pace."""
    bench = await _opened(url)
    await parent.go()
    began = clock.monotonic()
    for number in range(count):
        await sleep(clock, max(0.0, began + number * every - clock.monotonic()))
        await bench.stamp.asubmit(clock.monotonic())
    await asyncio.to_thread(bench.app.close)


async def claim(_parent: Parent, *, url: str, rows: int, times: int) -> list[float]:
    """How long a claim takes from a queue that holds just as many due jobs; they are ended before the next."""
    bench = Bench(url)
    store = make_store(url)
    await store.open()
    took: list[float] = []
    for _ in range(times):
        await store.submit([bench.noop.submission({}, (number,), {}) for number in range(rows)])
        want = Want(worker_id=uuid7(), queue=QUEUE, limit=rows, lease_id=uuid7(), ttl=60.0)
        began = clock.monotonic()
        claimed = await store.claim(want)
        took.append(clock.monotonic() - began)
        assert len(claimed.claims) == rows
        await store.finish([Finish.succeeded(one, 0.0, None) for one in claimed.claims])
    await store.close()
    return took


async def hold(parent: Parent, *, url: str, slots: int) -> list[float]:
    """A worker on a queue full of jobs of one key, which may run one at a time: ready once that one runs."""
    tune_process()
    bench = Bench(url)
    await bench.app.alimit(FULL, max_running=1)
    async with bench.app.worker(queues={QUEUE: slots}) as worker:
        await bench.holding.wait()
        await parent.go()
        await worker.stop(grace=0.0)
    return bench.delays


async def _opened(url: str) -> Bench:
    """An app whose store is open and has done its first work, so that this isn't measured."""
    bench = Bench(url)
    await bench.noop.asubmit(0)
    await bench.app.asubmit_many([bench.noop.call(0)])
    return bench


async def _done(bench: Bench, watch: Stopwatch) -> dict[str, float]:
    read = watch.read()
    await asyncio.to_thread(bench.app.close)
    return read


async def _count(worker: AppWorker, put: Callable[[int], None]) -> None:
    for _ in numbers():
        put(_ended(worker))
        await sleep(clock, COUNT_EVERY)


def _ended(worker: AppWorker) -> int:
    return worker.worker.ended if worker.worker else 0
