"""How much each bus carries, both ends in one process: `python -m tests.bus.measure`, with servers of its own."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from itertools import cycle
from uuid import uuid4

from headway.bus import open_bus
from headway.bus.contract import Bus, Doorbell
from headway.contracts.buses.town import event
from headway.model.events import Event
from tests.rabbit import RabbitServer
from tests.servers import PostgresServer

BATCH = 100
RINGS = 10_000
EVENTS = 50_000
PINGS = 500


async def measure(name: str, url: str) -> None:
    sender, hearer = await open_bus(url), await open_bus(url)
    queue, heard, seen = str(uuid4()), [0], [0]
    await hearer.listen(queue, lambda _: _count(heard))
    rings = await _rate(lambda: sender.ring([Doorbell(queue, (uuid4(),)) for _ in range(BATCH)]), heard, RINGS)
    told = [event() for _ in range(EVENTS)]
    sent = await _sent(sender, told)
    batches = cycle(batched(told))
    stop = await hearer.subscribe("job.*", lambda _: _count(seen))
    events = await _rate(lambda: sender.emit(next(batches)), seen, RINGS)
    stop()
    p50, p99 = await _latency(sender, hearer)
    await sender.close()
    await hearer.close()
    print(
        f"{name:8} rings {rings:8,.0f}/s heard · events {sent[0]:8,.0f}/s sent at {sent[1]:4.1f} µs of CPU each, "
        f"{events:8,.0f}/s received · ring to heard p50 {p50:.2f} ms, p99 {p99:.2f} ms"
    )


async def _rate(act: Callable[[], None], counted: list[int], total: int) -> float:
    """Acts as long as no more than five batches are under way."""
    started, sent = time.perf_counter(), 0
    while counted[0] < total:
        if sent - counted[0] < 5 * BATCH and sent < total:
            act()
            sent += BATCH
        await asyncio.sleep(0)
    return total / (time.perf_counter() - started)


async def _sent(bus: Bus, told: list[Event]) -> tuple[float, float]:
    """Events that nobody wants: what they cost the one who tells them."""
    before, started, cpu = bus.counters.emitted, time.perf_counter(), time.process_time()
    for number, batch in enumerate(batched(told)):
        bus.emit(batch)
        while number * BATCH - (bus.counters.emitted - before) > 50 * BATCH:
            await asyncio.sleep(0)
    while bus.counters.emitted - before < EVENTS:
        await asyncio.sleep(0)
    return EVENTS / (time.perf_counter() - started), (time.process_time() - cpu) / EVENTS * 1e6


async def _latency(sender: Bus, hearer: Bus) -> tuple[float, float]:
    queue, came, took = str(uuid4()), asyncio.Event(), []

    def heard(_doorbell: Doorbell) -> bool:
        came.set()
        return True

    await hearer.listen(queue, heard)
    for _ in range(PINGS):
        started = time.perf_counter()
        sender.ring([Doorbell(queue)])
        await came.wait()
        took.append((time.perf_counter() - started) * 1000)
        came.clear()
        await asyncio.sleep(0.002)
    return statistics.median(took), statistics.quantiles(took, n=100)[98]


def batched(told: list[Event]) -> list[list[Event]]:
    """No event twice: PostgreSQL drops a notification that repeats one of the same transaction."""
    return [told[start : start + BATCH] for start in range(0, len(told), BATCH)]


def _count(counter: list[int]) -> bool:
    counter[0] += 1
    return True


async def main(rounds: int) -> None:
    with PostgresServer() as postgres, RabbitServer() as rabbit:
        for _ in range(rounds):
            await measure("local", f"local://{uuid4()}")
            await measure("notify", postgres.create_database())
            await measure("rabbit", rabbit.url)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
