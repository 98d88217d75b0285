"""How fast workers drain a queue when RabbitMQ wakes them, against the store's own rings."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headway import Headway
from tests.flow.conftest import migrate
from tests.rabbit import RabbitServer
from tests.servers import PostgresServer

JOBS = 20_000
ROUNDS = 3
SHARE = 0.6


def app_on(url: str, bus: str | None) -> Headway:
    app = Headway(url, bus=bus)

    @app.job(name="noop", queue="speed")
    async def noop(n: int) -> None: ...

    return app


@contextmanager
def scheduler(url: str, bus: str) -> Iterator[None]:
    command = [sys.executable, "-m", "headway", "scheduler", "--store", url, "--bus", bus, "--log-level", "warning"]
    process = subprocess.Popen(command, env=dict(os.environ))
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


async def drain(url: str, bus: str | None) -> float:
    """Jobs a second, from the start of a worker: half of them wait for it, the others come meanwhile and ring."""
    app = app_on(url, bus)
    noop = app.function("noop")
    await app.asubmit_many([noop.call(n) for n in range(JOBS // 2)])
    began = time.monotonic()
    async with app.worker(queues={"speed": 500}) as worker:
        for start in range(0, JOBS // 2, 500):
            await app.asubmit_many([noop.call(n) for n in range(start, start + 500)])
        while worker.worker is not None and worker.worker.ended < JOBS:
            await asyncio.sleep(0.01)
        took = time.monotonic() - began
    await app.aclose()
    return JOBS / took


@pytest.mark.prove
def test_rabbitmq_dispatch_is_not_much_slower_than_the_stores_own() -> None:
    with PostgresServer() as postgres, RabbitServer() as rabbit:
        url = postgres.create_database()
        asyncio.run(migrate(url))
        own, rung = [], []
        for _ in range(ROUNDS):
            own.append(asyncio.run(drain(url, None)))
            with scheduler(url, rabbit.url):
                rung.append(asyncio.run(drain(url, rabbit.url)))
    share = statistics.median(rung) / statistics.median(own)
    print(f"\nstore rings {statistics.median(own):,.0f} jobs/s, RabbitMQ {statistics.median(rung):,.0f}: {share:.0%}")
    assert share >= SHARE
