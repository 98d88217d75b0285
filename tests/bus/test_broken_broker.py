"""A broker that is killed, restarted or wiped under load: within seconds everything flows again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import uuid4

import pytest

from headway.bus.commands import Command, Reply, serve_commands
from headway.bus.contract import Bus, Doorbell
from headway.contracts.buses.town import Caller, Ear, Reader, Town, event
from tests.bus.client import Client
from tests.flow.waiting import until
from tests.rabbit import RabbitServer

BACK_WITHIN = 45.0

Hurt = Callable[[RabbitServer], None]


def kill_and_start(server: RabbitServer) -> None:
    server.kill()
    server.start()


def stop_and_start(server: RabbitServer) -> None:
    server.stop()
    server.start()


def wipe(server: RabbitServer) -> None:
    server.wipe()


@pytest.fixture(params=[kill_and_start, stop_and_start, wipe])
def hurt(request: pytest.FixtureRequest) -> Hurt:
    act: Hurt = request.param
    return act


@pytest.fixture
async def private_town(private_rabbit: RabbitServer) -> AsyncIterator[Town]:
    async with AsyncExitStack() as stack:
        yield Town(private_rabbit.url, stack)


@asynccontextmanager
async def load(bus: Bus, queue: str) -> AsyncIterator[None]:
    """Rings, calls and events without a pause."""

    async def act() -> None:
        while True:
            bus.ring([Doorbell(queue, (uuid4(),)) for _ in range(5)])
            bus.call("me")
            bus.emit([event() for _ in range(10)])
            await asyncio.sleep(0.005)

    task = asyncio.create_task(act())
    try:
        yield
    finally:
        task.cancel()


async def test_wake_ups_and_events_flow_again(
    private_rabbit: RabbitServer, private_town: Town, queue: str, hurt: Hurt
) -> None:
    sender, hearer = await private_town.bus(), await private_town.bus()
    ear, called, reader = Ear(), Caller(), Reader()
    await hearer.listen(queue, ear)
    await hearer.on_call("me", called)
    await hearer.subscribe("job.*", reader)
    async with load(sender, queue):
        await ear.hears(50)
        await asyncio.to_thread(hurt, private_rabbit)
        back, heard, calls, events = time.monotonic(), ear.count, called.count, len(reader.events)
        await ear.hears(heard + 100, patience=BACK_WITHIN)
        await called.hears(calls + 10, patience=BACK_WITHIN)
        await reader.reads(events + 100, patience=BACK_WITHIN)
        print(f"back after {time.monotonic() - back:.2f} s")
    assert Doorbell(queue) in ear.doorbells, "everybody looks at everything"
    assert min(sender.counters.reconnects, hearer.counters.reconnects) >= 1


async def test_commands_flow_again(private_rabbit: RabbitServer, hurt: Hurt) -> None:
    done: list[object] = []

    async def handler(command: Command) -> Reply:
        done.append(command.id)
        return {"ok": True, "job": {"id": command.id}}

    desk = await serve_commands(private_rabbit.url, handler)
    with Client(private_rabbit) as client:
        before = await asyncio.to_thread(client.ask, {"type": "CREATE", "id": str(uuid4())})
        assert before["ok"]
    await asyncio.to_thread(hurt, private_rabbit)
    back = time.monotonic()
    await until(lambda: desk.counters.reconnects, "the desk to be back", patience=BACK_WITHIN)
    with Client(private_rabbit) as client:
        after = await asyncio.to_thread(client.ask, {"type": "CREATE", "id": str(uuid4())})
    assert after["ok"]
    assert time.monotonic() - back < BACK_WITHIN
    await desk.send(Command(type="SCHEDULE", id=(mine := uuid4())))
    await until(lambda: mine in done, "our own command")
    await desk.close()


async def test_commands_outlive_a_killed_broker(private_rabbit: RabbitServer) -> None:
    """What the broker has confirmed is carried out, if twice, after it was killed in the midst of it."""
    done: list[object] = []
    going_on = asyncio.Event()

    async def handler(command: Command) -> Reply:
        await going_on.wait()
        done.append(command.id)
        return {"ok": True}

    ids = [uuid4() for _ in range(300)]
    desk = await serve_commands(private_rabbit.url, handler)
    with Client(private_rabbit) as client:
        for job_id in ids:
            client.tell({"type": "CREATE", "id": str(job_id)})
    await until(lambda: desk.counters.received == 100, "some to be in hand")
    await asyncio.to_thread(private_rabbit.kill)
    going_on.set()
    # The handlers in hand are not cut off with the connection.
    await until(lambda: len(done) == 100, "those in hand to be carried out")
    await asyncio.to_thread(private_rabbit.start)
    await until(lambda: set(done) == set(ids), "all of them")
    await until(lambda: private_rabbit.depth("headway.commands") == 0, "the queue to be empty")
    await desk.close()


async def test_a_broker_that_stands_still_holds_up_nobody(
    private_rabbit: RabbitServer, private_town: Town, queue: str
) -> None:
    bus, ear = await private_town.bus(f"{private_rabbit.url}?heartbeat=1"), Ear()
    await bus.listen(queue, ear)
    private_rabbit.pause()
    try:
        started = time.monotonic()
        while bus.connected:
            bus.ring([Doorbell(queue)] * 50)
            bus.emit([event() for _ in range(50)])
            await asyncio.sleep(0.01)
        assert time.monotonic() - started < 15
    finally:
        private_rabbit.resume()
    await until(lambda: Doorbell(queue) in ear.doorbells, "the bus to be back")
