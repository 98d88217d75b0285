"""Commands and replies over RabbitMQ, as a foreign client sees them."""

from __future__ import annotations

import json
from collections import Counter
from uuid import UUID, uuid4

import pika
import pytest

from headway.bus import open_bus
from headway.bus.commands import LARGEST, Command, Reply
from headway.contracts.buses.town import event
from headway.model.errors import Conflict, IdTaken, InvalidJob
from headway.observe import page
from tests.bus.clerk import Clerk, Serve, ask
from tests.bus.client import QUEUE, Client
from tests.flow.waiting import until
from tests.rabbit import Rabbit


async def test_a_command_reaches_the_handler_whole_and_is_answered(client: Client, serve: Serve) -> None:
    desk = await serve(clerk := Clerk())
    job_id = uuid4()
    body: dict[str, object] = {"type": "CREATE", "id": str(job_id), "payload": {"kind": "fetch", "url": "https://ü"}}

    reply = await ask(client, body, message_id="m-1", correlation_id="c-1")

    assert reply == {"ok": True, "job": {"id": str(job_id), "n": 1}}
    assert clerk.commands == [
        Command(
            type="CREATE",
            id=job_id,
            payload={"kind": "fetch", "url": "https://ü"},
            message_id="m-1",
            correlation_id="c-1",
        )
    ]
    await until(lambda: desk.counters.answered == 1, "the confirmation")


async def test_the_shortest_command_is_a_type(client: Client, serve: Serve) -> None:
    await serve(clerk := Clerk())
    await ask(client, {"type": "STATUS"}, correlation_id="c")
    assert clerk.commands == [Command(type="STATUS", correlation_id="c")]


async def test_direct_reply_to_works_as_well(rabbit: Rabbit, client: Client, serve: Serve) -> None:
    await serve(Clerk())
    client.channel.basic_consume("amq.rabbitmq.reply-to", client._replied, auto_ack=True)
    assert (await ask(client, {"type": "STATUS"}, reply_to="amq.rabbitmq.reply-to"))["ok"]


async def test_commands_without_reply_to_are_carried_out(rabbit: Rabbit, client: Client, serve: Serve) -> None:
    await serve(clerk := Clerk())
    client.tell({"type": "CANCEL"})
    await until(lambda: len(clerk.commands) == 1, "it to be carried out")
    await until(lambda: rabbit.depth(QUEUE) == 0, "it to be gone")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InvalidJob("no such kind", field="kind"), {"type": "invalid_job", "message": "no such kind", "field": "kind"}),
        (IdTaken(UUID(int=7)), {"type": "conflict", "message": str(IdTaken(UUID(int=7)))}),
        (Conflict("k", UUID(int=7)), {"type": "conflict", "message": str(Conflict("k", UUID(int=7)))}),
        (
            RuntimeError("password is hush"),
            {"type": "internal", "message": "an error inside Headway; its log says more"},
        ),
    ],
)
async def test_an_error_is_an_answer(client: Client, serve: Serve, error: Exception, expected: object) -> None:
    async def handler(_command: Command) -> Reply:
        raise error

    desk = await serve(handler)
    assert await ask(client, {"type": "CREATE"}) == {"ok": False, "error": expected}
    assert await ask(client, {"type": "CREATE"}) == {"ok": False, "error": expected}
    assert desk.counters.refused == 2


async def test_a_reply_that_can_not_be_written_is_an_internal_error(client: Client, serve: Serve) -> None:
    async def handler(_command: Command) -> Reply:
        return {"ok": object()}

    await serve(handler)
    assert (await ask(client, {"type": "CREATE"}))["error"]["type"] == "internal"


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (b"", None, "not JSON"),
        (b"\xff\xfe", None, "not JSON"),
        (b"{", None, "not JSON"),
        (b'{"type": "CREATE", "payload": {"a": ' + b"[" * 100_000, None, "not JSON"),
        (b"null", None, "not a command"),
        (b"[]", None, "not a command"),
        (b"{}", "type", "type"),
        (b'{"type": 1}', "type", "type"),
        (b'{"type": "CREATE", "id": 5}', "id", "id"),
        (b'{"type": "CREATE", "id": "not a uuid"}', "id", "id"),
        (b'{"type": "CREATE", "payload": []}', "payload", "payload"),
        (b'{"type": "' + b"x" * LARGEST + b'"}', None, "1,048,576 bytes"),
    ],
)
async def test_what_is_no_command_is_answered_and_counted(
    rabbit: Rabbit, client: Client, serve: Serve, body: bytes, field: str | None, words: str
) -> None:
    desk = await serve(clerk := Clerk())
    client.tell(body)
    error = (await ask(client, body))["error"]

    assert error["type"] == "malformed"
    assert words in error["message"]
    assert error.get("field") == field
    assert (await ask(client, {"type": "STATUS"}))["ok"], "the next one is served"
    assert (desk.counters.malformed, len(clerk.commands)) == (2, 1)
    await until(lambda: rabbit.depth(QUEUE) == 0, "all to be gone")


@pytest.mark.parametrize(
    "properties",
    [
        {"correlation_id": b"\xff\xfe\xfd"},
        {"reply_to": b"\xc3\x28"},
        {"timestamp": 2**62},
        {"headers": {b"\xff": 1}},
        {"headers": {"deep": {"deeper": [{b"\xff": "x"}]}}},
    ],
)
async def test_a_message_with_properties_that_nobody_can_read_holds_up_nobody(
    rabbit: Rabbit, client: Client, serve: Serve, properties: dict[str, object]
) -> None:
    desk = await serve(Clerk())
    for number in range(3):
        client.tell({"type": "CREATE"}, **properties)
        assert (await ask(client, {"type": "STATUS"}))["ok"]
        assert (desk.counters.malformed, desk.counters.reconnects) == (number + 1, 0)
    await until(lambda: rabbit.depth(QUEUE) == 0, "all to be gone")


async def test_a_client_that_is_gone_holds_up_nobody(rabbit: Rabbit, client: Client, serve: Serve) -> None:
    desk = await serve(clerk := Clerk())
    client.tell({"type": "CREATE"}, reply_to="nobody")
    await until(lambda: desk.counters.unanswered == 1, "it to be noticed")
    assert len(clerk.commands) == 1
    await until(lambda: rabbit.depth(QUEUE) == 0, "the command to be acknowledged")
    assert (await ask(client, {"type": "STATUS"}))["ok"]


@pytest.mark.parametrize(
    "properties",
    [{"priority": 255}, {"timestamp": 1_700_000_000_000}, {"type": "", "headers": {"a": [None, {"b": True}]}}],
)
async def test_odd_properties_do_no_harm(client: Client, serve: Serve, properties: dict[str, object]) -> None:
    desk = await serve(Clerk(), at_once=1)
    for _ in range(3):
        assert (await ask(client, {"type": "STATUS"}, **properties))["ok"]
    assert desk.counters.malformed == 0


async def test_a_reply_straight_to_the_client_is_no_lost_one(client: Client, rabbit: Rabbit, serve: Serve) -> None:
    """RabbitMQ's direct reply-to: no queue is declared, and the broker hands the reply over itself."""
    desk = await serve(Clerk())
    with rabbit.connect() as connection:
        channel, replies = connection.channel(), list[bytes]()
        channel.basic_consume("amq.rabbitmq.reply-to", lambda *it: replies.append(it[3]), auto_ack=True)
        properties = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id="mine")
        channel.basic_publish("", QUEUE, b'{"type": "CREATE"}', properties)
        await until(lambda: connection.process_data_events(0) or replies, "the reply")
    await until(lambda: desk.counters.answered == 1, "the confirmation")
    assert (desk.counters.unanswered, json.loads(replies[0])["ok"]) == (0, True)


async def test_what_becomes_of_commands_and_messages_is_counted_for_all_to_see(
    client: Client, serve: Serve, far_url: str
) -> None:
    with page.counted():
        before = seen()
        desk = await serve(Clerk())
        bus = await open_bus(far_url)
        bus.emit([event()])
        await ask(client, b"no json")
        await ask(client, {"type": "CREATE"})
        await until(lambda: desk.counters.answered == 2, "the confirmations")
        during = seen() - before
        await bus.close()
        await desk.close()
        bus = await open_bus(far_url)
        await bus.close()
        after = seen() - before
    assert (during["received"], during["answered"], during["malformed"]) == (2, 2, 1)
    assert after == {**during, "emitted": 1}


def seen() -> Counter[str]:
    """The two series on this process's page."""
    found: Counter[str] = Counter()
    for series in page.own_series():
        if series.name in {"headway_bus_messages_total", "headway_commands_total"}:
            found.update({labels[0]: int(values[0]) for labels, values in series.values})
    return found
