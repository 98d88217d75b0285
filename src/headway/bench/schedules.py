"""What schedules cost: a tick with nothing due and with much, beside a million others; how late jobs of a steady flow
of schedules begin."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any

from headway.bench.app import QUEUE, Bench
from headway.bench.calendar import Kind, fill
from headway.bench.child import Parent, clock
from headway.bench.children import BenchFailed, Child, play
from headway.bench.report import Line, milliseconds, percentile
from headway.bench.stage import Stage
from headway.clock import sleep
from headway.model.filters import JobFilter
from headway.model.job import JobRecord
from headway.scheduler import Scheduler
from headway.serve import tune_process
from headway.store import make_store
from headway.store.contract import Store
from headway.store.scripts.fire import Fired

DUE = 1000
"""Schedules of one tick."""
IDLE_TICKS = 20
PER_SECOND = 100
EVERY = 2.0
"""Seconds between two fires of each schedule of the steady flow."""
LEAD = 3.0
"""Seconds from the making of the flow to its first fire."""
YEAR = timedelta(days=365)


async def schedules(stage: Stage) -> list[Line]:
    """Ticks beside many stored schedules, a full minute, and lateness."""
    sizes = stage.sizes
    async with stage.store() as url:
        stage.step(f"{sizes.schedules:,} schedules")
        later = clock.now() + YEAR
        await fill(url, Kind(prefix="later ", count=sizes.schedules, schedule="0 0 1 1 *", next_at=later))
        stage.step(f"ticks beside {sizes.schedules:,} schedules")
        ticks = await play("schedules.tick", url=url, due=min(DUE, sizes.minutely), rounds=sizes.repeat + 2)
        minutes = []
        for number in range(sizes.repeat):
            stage.step(f"{sizes.minutely:,} schedules on the minute")
            minutes.append(await play("schedules.minute", url=url, count=sizes.minutely, prefix=f"minute {number} "))
    stage.step(f"lateness at {PER_SECOND} due a second")
    late = await _lateness(stage)
    due, beside = min(DUE, sizes.minutely), f"with {sizes.schedules:,} schedules stored"
    return [
        Line(what=f"tick, none due, {beside}", unit="ms", runs=milliseconds(ticks["idle"])).aiming(at_most=5.0),
        Line(what=f"tick, {due:,} due, {beside}", unit="ms", runs=milliseconds(ticks["due"])).aiming(at_most=150.0),
        Line(what=f"{sizes.minutely:,} on `* * * * *`, until all fired", unit="ms", runs=milliseconds(minutes)).aiming(
            at_most=2000.0
        ),
        Line(
            what=f"fired after its time, {PER_SECOND} due/s, p99", unit="ms", runs=(percentile(late["fired"], 99),)
        ).aiming(at_most=50.0),
        Line(what="  its job started after its time, p50", unit="ms", runs=(percentile(late["started"], 50),)),
        Line(what="  its job started after its time, p99", unit="ms", runs=(percentile(late["started"], 99),)),
    ]


async def _lateness(stage: Stage) -> dict[str, list[float]]:
    """A scheduler and a worker on a steady flow: each in a process of its own, or, on SQLite, which has one writer,
    together in one, as `headway up` has them."""
    roles = ("both",) if stage.site.name == "SQLite" else ("serve", "fire")
    found: dict[str, list[float]] = {}
    async with stage.store() as url, AsyncExitStack() as stack:
        children = [await stack.enter_async_context(Child(f"schedules.{role}", url=url)) for role in roles]
        for child in children:
            await child.ready()
        await _flow(url)
        await sleep(clock, LEAD + stage.sizes.latency / PER_SECOND)
        for child in reversed(children):
            await child.tell("stop")
            found |= await child.result()
    for what, late in found.items():
        if len(late) < 0.9 * stage.sizes.latency:
            raise BenchFailed(f"{len(late)} jobs were {what}, instead of {stage.sizes.latency}")
    return found


async def _flow(url: str) -> None:
    """As many schedules as make an even flow."""
    first = clock.now() + timedelta(seconds=LEAD)
    count = int(PER_SECOND * EVERY)
    await fill(
        url,
        Kind(prefix="flow ", count=count, schedule={"every": EVERY}, next_at=first, apart=EVERY / count),
    )


# Roles.


async def tick(_parent: Parent, *, url: str, due: int, rounds: int) -> dict[str, list[float]]:
    """Ticks with nothing due, and with just so many; the first two of each only warm up."""
    tune_process()
    store = make_store(url)
    await store.open()
    took: dict[str, list[float]] = {"idle": [], "due": []}
    for number in range(rounds):
        for _ in range(IDLE_TICKS):
            took["idle"].append(await _timed(store, 0))
        await fill(url, Kind(prefix=f"due {number} ", count=due, next_at=_last_minute()))
        took["due"].append(await _timed(store, due))
    await store.close()
    return {"idle": took["idle"][IDLE_TICKS:], "due": took["due"][2:] or took["due"]}


async def _timed(store: Any, jobs: int) -> float:
    began = clock.monotonic()
    fired = await store.fire(previous=None)
    took = clock.monotonic() - began
    if fired.jobs != jobs:
        raise BenchFailed(f"{jobs} schedules were due, {fired.jobs} jobs were made")
    return took


async def minute(_parent: Parent, *, url: str, count: int, prefix: str) -> float:
    """All of these schedules are due: how long a scheduler takes for them."""
    tune_process()
    store = make_store(url)
    await store.open()
    scheduler = Scheduler(clock)
    await scheduler.tick(store)
    before = scheduler.jobs
    await fill(url, Kind(prefix=prefix, count=count, next_at=_last_minute()))
    began = clock.monotonic()
    while scheduler.jobs - before < count:
        await scheduler.tick(store)
    took = clock.monotonic() - began
    await store.close()
    return took


class Watched:
    """A store that notes when each tick was answered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.answered: dict[datetime, datetime] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def fire(self, **how: Any) -> Fired:
        fired = await self._store.fire(**how)
        self.answered[fired.at] = clock.now()
        return fired


async def fire(parent: Parent, *, url: str) -> dict[str, list[float]]:
    """A scheduler as a process of its own; how long after their times it has fired."""
    tune_process()
    store = make_store(url)
    await store.open()
    fired = await _fire(parent, store)
    await store.close()
    return {"fired": fired}


async def both(parent: Parent, *, url: str) -> dict[str, list[float]]:
    """A scheduler and a worker in one process."""
    tune_process()
    bench = Bench(url)
    async with bench.app.worker(queues={QUEUE: 100}):
        fired = await _fire(parent, await bench.app.client.call(_itself))
        await sleep(clock, 0.2)
    return {"fired": fired, "started": await _started(bench)}


async def serve(parent: Parent, *, url: str) -> dict[str, list[float]]:
    """A worker; how long after their times the jobs began."""
    tune_process()
    bench = Bench(url)
    async with bench.app.worker(queues={QUEUE: 100}):
        await parent.go()
        await sleep(clock, 0.2)
    return {"started": await _started(bench)}


async def _fire(parent: Parent, store: Store) -> list[float]:
    """Until told to stop."""
    watched, scheduler = Watched(store), Scheduler(clock)
    running = asyncio.create_task(scheduler.run(watched))
    await parent.go()
    scheduler.stop()
    await running
    return await _late(store, watched.answered)


async def _itself(store: Store) -> Store:
    return store


async def _late(store: Store, answered: dict[datetime, datetime]) -> list[float]:
    """Seconds from the nominal time of each job until the scheduler knew that it is stored."""
    jobs, cursor = list[JobRecord](), None
    while page := await store.find(JobFilter(limit=1000, cursor=cursor)):
        jobs += page
        cursor = page[-1].id
    return [(answered[job.created_at] - job.nominal_at).total_seconds() for job in jobs if job.nominal_at]


async def _started(bench: Bench) -> list[float]:
    """Seconds from the nominal time of each job to its start."""
    found = [await bench.app.aget(job_id) for job_id in bench.starts]
    nominal = {job.id: job.record.nominal_at for job in found if job.record.nominal_at}
    return [(at - nominal[job_id]).total_seconds() for job_id, at in bench.starts.items()]


def _last_minute() -> datetime:
    return clock.now().replace(second=0, microsecond=0)
