"""How fast a worker drains a queue when RabbitMQ wakes it, beside the store's own rings in the same run."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from headway.bench.app import QUEUE, Bench
from headway.bench.broker import PrivateRabbit
from headway.bench.child import Parent, Stopwatch, clock
from headway.bench.children import BenchFailed, play
from headway.bench.report import Line
from headway.bench.sizes import BATCH, SLOTS
from headway.bench.stage import Stage
from headway.bus import make_bus
from headway.clock import sleep
from headway.model.errors import ConfigurationError
from headway.serve import tune_process

LOOK_EVERY = 0.01


async def dispatch(stage: Stage) -> list[Line]:
    """Half of the jobs wait for the worker, the others come meanwhile and ring."""
    own: list[float] = []
    rung: list[float] = []
    with broker() as (bus, missing):
        for _ in range(stage.sizes.repeat):
            stage.step("drain rung by the store")
            own.append(await _drain(stage, None))
            stage.step("drain rung by RabbitMQ")
            if bus is not None:
                rung.append(await _drain(stage, bus))
    if not rung:
        note = f"RabbitMQ is not measured: {missing}"
        return [Line(what="drain rung by the store", unit="jobs/s", runs=tuple(own), note=note)]
    beside = "drain rung by RabbitMQ, beside the store's own"
    return [Line(what=beside, unit="jobs/s", runs=tuple(rung), ceiling_runs=tuple(own)).aiming(share=0.6)]


@contextmanager
def broker() -> Iterator[tuple[str | None, str]]:
    """The URL of a broker of our own, or None and what is missing for one."""
    try:
        make_bus("amqp://127.0.0.1/")
        private = PrivateRabbit()
    except ConfigurationError as error:
        yield None, str(error)
        return
    with private:
        yield private.url, ""


async def _drain(stage: Stage, bus: str | None) -> float:
    jobs = stage.sizes.dispatch
    async with stage.store() as url, _scheduler(url, bus):
        took: float = await play("dispatch.drain", url=url, bus=bus, count=jobs)
        if await stage.site.completed(url) != jobs:
            raise BenchFailed(f"{jobs:,} jobs should be completed, the store shows {await stage.site.completed(url):,}")
    return jobs / took


@asynccontextmanager
async def _scheduler(url: str, bus: str | None) -> AsyncIterator[None]:
    """`headway scheduler` as people run it, ready to ring on the bus; none where the store rings."""
    if bus is None:
        yield
        return
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "headway", "scheduler", "--log-level", "info", "--log-json"),
        env={**os.environ, "HEADWAY_STORE": url, "HEADWAY_BUS": bus},
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert process.stderr is not None
    try:
        while b"scheduler.started" not in (line := await process.stderr.readline()):
            if not line:
                raise BenchFailed(f"`headway scheduler` did not start (status {await process.wait()})")
        reading = asyncio.create_task(process.stderr.read())
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
    await reading


# Roles


async def drain(_parent: Parent, *, url: str, bus: str | None, count: int) -> float:
    """Seconds from the start of a worker, in a process like that of `headway worker`, until all have ended."""
    tune_process()
    bench = Bench(url, bus)
    await bench.app.asubmit_many([bench.noop.call(number) for number in range(count // 2)])
    watch = Stopwatch()
    async with bench.app.worker(queues={QUEUE: SLOTS}) as worker:
        for start in range(count // 2, count, BATCH):
            some = range(start, min(start + BATCH, count))
            await bench.app.asubmit_many([bench.noop.call(number) for number in some])
        while worker.worker is not None and worker.worker.ended < count:
            await sleep(clock, LOOK_EVERY)
        took = watch.seconds
    await bench.app.aclose()
    return took
