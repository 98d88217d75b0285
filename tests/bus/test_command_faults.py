"""Commands when something breaks or takes long: none is lost, and none holds up the others."""

from __future__ import annotations

import asyncio
import json
import random
import time
from uuid import UUID, uuid4

import pytest

from headway.bus.commands import Command, Options, Reply, serve_commands
from headway.bus.contract import BusUnavailable
from headway.model.errors import KeyBusy, StoreUnavailable
from tests.bus.clerk import Clerk, Serve, ask
from tests.bus.client import PERSISTENT, QUEUE, Client
from tests.bus.cutter import Cutter
from tests.flow.waiting import until
from tests.rabbit import Rabbit


@pytest.mark.parametrize("error", [StoreUnavailable("away"), KeyBusy("held"), TimeoutError()])
async def test_what_can_not_be_done_just_now_is_tried_again(client: Client, serve: Serve, error: Exception) -> None:
    tried: list[str] = []

    async def handler(command: Command) -> Reply:
        tried.append(command.type)
        if command.type == "CREATE" and tried.count("CREATE") < 4:
            raise error
        return {"ok": True, "type": command.type}

    desk = await serve(handler)
    client.tell({"type": "CREATE"}, reply_to=client.reply_to, correlation_id="late")
    assert (await ask(client, {"type": "STATUS"}))["ok"], "others go on meanwhile"
    assert (await asyncio.to_thread(client.reply, "late"))["type"] == "CREATE"
    assert (tried.count("CREATE"), desk.counters.tried_again) == (4, 3)


async def test_commands_that_can_not_be_done_for_long_let_the_others_pass(
    rabbit: Rabbit, client: Client, serve: Serve
) -> None:
    open_again = asyncio.Event()
    seen: list[Command] = []

    async def handler(command: Command) -> Reply:
        seen.append(command)
        if command.type == "STUCK" and not open_again.is_set():
            raise KeyBusy("held")
        return {"ok": True}

    await serve(handler, at_once=5, give_up=0.3)
    for number in range(10):
        client.tell({"type": "STUCK"}, reply_to=client.reply_to, correlation_id=f"stuck {number}", message_id="m")
    # All places are taken by those that can't go on, again and again; this one stands behind them.
    assert (await ask(client, {"type": "STATUS"}))["ok"]

    open_again.set()
    for number in range(10):
        assert (await asyncio.to_thread(client.reply, f"stuck {number}"))["ok"]
    assert any(command.redelivered for command in seen)
    assert {command.message_id for command in seen if command.type == "STUCK"} == {"m"}
    await until(lambda: rabbit.depth(QUEUE) == 0, "all to be gone")


async def test_a_handler_that_hangs_is_not_waited_for(client: Client, serve: Serve) -> None:
    tried: list[Command] = []

    async def handler(command: Command) -> Reply:
        tried.append(command)
        if len(tried) == 1:
            await asyncio.Event().wait()
        return {"ok": True}

    await serve(handler, longest=0.2)
    assert (await ask(client, {"type": "CREATE"}))["ok"]
    assert len(tried) == 2


async def test_many_are_carried_out_at_once_but_not_too_many(client: Client, serve: Serve) -> None:
    at_once, most = 0, 0

    async def handler(_command: Command) -> Reply:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.05)
        at_once -= 1
        return {"ok": True}

    await serve(handler, at_once=10)
    for number in range(50):
        client.tell({"type": "CREATE"}, reply_to=client.reply_to, correlation_id=str(number))
    for number in range(50):
        assert (await asyncio.to_thread(client.reply, str(number)))["ok"]
    assert most == 10


async def test_no_more_are_taken_than_may_be_in_hand(rabbit: Rabbit, client: Client, serve: Serve) -> None:
    going_on = asyncio.Event()

    async def handler(_command: Command) -> Reply:
        await going_on.wait()
        return {"ok": True}

    desk = await serve(handler, at_once=5)
    for _ in range(20):
        client.tell({"type": "CREATE"})
    await until(lambda: desk.counters.received == 5, "five to be in hand")
    assert rabbit.depth(QUEUE) == 15, "the others are left to other processes"
    going_on.set()
    await until(lambda: desk.counters.received == 20, "all of them")


async def test_a_stop_finishes_what_is_in_hand_and_takes_no_more(rabbit: Rabbit, client: Client, serve: Serve) -> None:
    begun, going_on = asyncio.Event(), asyncio.Event()
    seen: list[str] = []

    async def handler(command: Command) -> Reply:
        seen.append(command.type)
        begun.set()
        await going_on.wait()
        return {"ok": True}

    desk = await serve(handler)
    client.tell({"type": "FIRST"}, reply_to=client.reply_to, correlation_id="first")
    await begun.wait()
    closing = asyncio.create_task(desk.close())
    await until(lambda: _consumers(client) == 0, "the desk to take no more")
    client.tell({"type": "SECOND"}, reply_to=client.reply_to, correlation_id="second")
    assert rabbit.depth(QUEUE) == 1
    going_on.set()
    await closing

    assert seen == ["FIRST"]
    assert (await asyncio.to_thread(client.reply, "first"))["ok"]
    await serve(handler)
    assert (await asyncio.to_thread(client.reply, "second"))["ok"]


async def test_a_stop_does_not_wait_for_what_can_not_be_done_now(rabbit: Rabbit, client: Client, serve: Serve) -> None:
    async def handler(_command: Command) -> Reply:
        raise StoreUnavailable("away")

    desk = await serve(handler)
    client.tell({"type": "CREATE"}, reply_to=client.reply_to, correlation_id="c")
    await until(lambda: desk.counters.tried_again >= 3, "some tries")
    started = time.monotonic()
    await desk.close()
    assert time.monotonic() - started < 10
    await serve(Clerk())
    assert (await asyncio.to_thread(client.reply, "c"))["ok"]


async def test_a_command_comes_again_when_its_server_is_lost(rabbit: Rabbit, client: Client, serve: Serve) -> None:
    """The connection breaks while the handler is at it: no reply, no acknowledgement, another try that knows of it."""
    begun, going_on = asyncio.Event(), asyncio.Event()
    commands: list[Command] = []

    async def handler(command: Command) -> Reply:
        commands.append(command)
        begun.set()
        await going_on.wait()
        return {"ok": True, "redelivered": command.redelivered}

    async with Cutter(rabbit.url) as cutter:
        await serve(handler, cutter.url)
        client.tell({"type": "CREATE"}, reply_to=client.reply_to, correlation_id="c")
        await begun.wait()
        await cutter.cut()
        await until(lambda: len(commands) == 2, "the command to come again")
        going_on.set()
        assert await asyncio.to_thread(client.reply, "c") == {"ok": True, "redelivered": True}
        await until(lambda: rabbit.depth(QUEUE) == 0, "the command to be acknowledged")
        assert not client.replies["c"], "one reply"


async def test_a_command_queue_that_somebody_deletes_is_made_again(
    rabbit: Rabbit, client: Client, serve: Serve
) -> None:
    desk = await serve(clerk := Clerk())
    await asyncio.to_thread(rabbit.delete, QUEUE)
    await desk.send(Command(type="SCHEDULE", id=uuid4(), payload={"run_at": None}, correlation_id="c"))
    await until(lambda: clerk.commands, "our own command")
    assert (clerk.commands[0].type, clerk.commands[0].correlation_id) == ("SCHEDULE", "c")
    assert (await ask(client, {"type": "STATUS"}))["ok"]
    assert desk.counters.reconnects == 0


async def test_what_is_sent_is_kept_by_the_broker(rabbit: Rabbit, client: Client, serve: Serve) -> None:
    begun = asyncio.Event()

    async def handler(_command: Command) -> Reply:
        begun.set()
        await asyncio.Event().wait()
        return {}

    desk = await serve(handler, at_once=1, grace=0.1)
    client.tell({"type": "STATUS"})
    await begun.wait()
    await desk.send(Command(type="SCHEDULE", id=(job_id := uuid4()), payload={"run_at": None}, message_id="m"))

    _, properties, body = client.channel.basic_get(QUEUE, auto_ack=True)
    assert json.loads(body) == {"type": "SCHEDULE", "id": str(job_id), "payload": {"run_at": None}}
    assert (properties.delivery_mode, properties.message_id) == (PERSISTENT, "m")


async def test_a_command_that_the_broker_does_not_take_is_not_sent(rabbit: Rabbit, client: Client) -> None:
    async with Cutter(rabbit.url) as cutter:
        desk = await serve_commands(cutter.url, Clerk())
        desk._terms = type(desk._terms)(url=cutter.url, patience=0.3)
        await cutter.close()
        with pytest.raises(BusUnavailable, match="SCHEDULE"):
            await desk.send(Command(type="SCHEDULE"))
        await desk.close()


async def test_no_more_are_carried_out_at_once_after_a_lost_connection(
    rabbit: Rabbit, client: Client, serve: Serve
) -> None:
    """Those in hand go on, so those that come again have to wait for them."""
    going_on = asyncio.Event()
    seen: list[Command] = []

    async def handler(command: Command) -> Reply:
        seen.append(command)
        await going_on.wait()
        return {"ok": True}

    async with Cutter(rabbit.url) as cutter:
        desk = await serve(handler, cutter.url, at_once=5)
        for _ in range(10):
            client.tell({"type": "CREATE"})
        await until(lambda: len(seen) == 5, "five to be in hand")
        await cutter.cut()
        await until(lambda: desk.counters.received == 10, "five to come again")
        assert len(seen) == 5
        going_on.set()
        await until(lambda: rabbit.depth(QUEUE) == 0 and len(seen) >= 10, "all to be carried out")


@pytest.mark.parametrize("seed", range(4))
async def test_no_command_is_lost_however_its_servers_end(rabbit: Rabbit, client: Client, seed: int) -> None:
    chance, done = random.Random(seed), set[UUID | None]()

    async def handler(command: Command) -> Reply:
        await asyncio.sleep(chance.random() * 0.02)
        if chance.random() < 0.2:
            raise StoreUnavailable("away")
        done.add(command.id)
        return {"ok": True}

    ids = [uuid4() for _ in range(60)]
    async with Cutter(rabbit.url) as cutter:
        for start in (0, 20, 40):
            options = Options(at_once=10, give_up=chance.random() * 0.3, grace=chance.random() * 0.2)
            desk = await serve_commands(cutter.url, handler, options=options)
            for job_id in ids[start : start + 20]:
                client.tell({"type": "CREATE", "id": str(job_id)}, reply_to=chance.choice([client.reply_to, "gone"]))
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(chance.random() * 0.05)
                await cutter.cut()
            await asyncio.sleep(chance.random() * 0.05)
            await asyncio.wait_for(desk.close(), 5)
        last = await serve_commands(rabbit.url, handler)
        await until(lambda: done == set(ids) and rabbit.depth(QUEUE) == 0, "all to be carried out")
        await last.close()


def _consumers(client: Client) -> int:
    return int(client.channel.queue_declare(QUEUE, passive=True).method.consumer_count)
