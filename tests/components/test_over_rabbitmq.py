"""The components behind a real broker, as a program in any language meets them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from headway.bus.rabbit.desk import Desk
from headway.components.serving import serve_components
from headway.model.states import State
from tests.bus.client import QUEUE, Client
from tests.components.office import BODY, Office
from tests.flow.waiting import until
from tests.logs import Captured
from tests.rabbit import Rabbit


@pytest.fixture
def client(rabbit: Rabbit) -> Iterator[Client]:
    rabbit.delete(QUEUE)
    with Client(rabbit) as client:
        yield client
    rabbit.delete(QUEUE)


@pytest.fixture
async def desks(client: Client, office: Office, rabbit: Rabbit) -> AsyncIterator[list[Desk]]:
    """Two processes that serve commands on one store, from an empty queue."""
    desks = [await serve_components(rabbit.url, each.components) for each in (office, await office.second())]
    yield desks
    for desk in desks:
        await desk.close()


async def ask(client: Client, type_: str, payload: dict[str, Any], id: Any = None, **properties: Any) -> Any:  # noqa: A002 - the message's word
    body = {"type": type_, "payload": payload, **({"id": str(id)} if id else {})}
    return await asyncio.to_thread(lambda: client.ask(body, **properties))


async def comes_to(client: Client, job_id: str, wanted: str) -> None:
    """Ask until the job's SCHEDULE, which travels by itself, has been acted on."""
    for _ in range(1000):
        if (await ask(client, "STATUS", {"job_id": job_id}))["job"]["state"] == wanted:
            return
    pytest.fail(f"job {job_id} never came to be {wanted}")


async def test_a_job_is_created_scheduled_shown_and_cancelled_by_messages(
    client: Client, desks: list[Desk], office: Office, lines: Captured
) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    reply = await ask(client, "CREATE", BODY, correlation_id="order 7", headers={"traceparent": trace})
    job_id = reply["job"]["id"]
    assert (reply["ok"], reply["job"]["state"]) == (True, "creating")
    await comes_to(client, job_id, "scheduled")
    claim = await office.house.claim_one()
    assert (str(claim.id), claim.traceparent) == (job_id, trace)
    assert (await ask(client, "CANCEL", {"job_id": job_id}))["job"]["state"] == "cancelling"
    page = await ask(client, "STATUS", {"all": True, "state": "cancelling"})
    assert ([job["id"] for job in page["jobs"]], page["cursor"]) == ([job_id], None)
    assert (await ask(client, "DANCE", {}, correlation_id="a dance"))["error"]["type"] == "unknown_type"
    assert (await ask(client, "CREATE", {"kind": "call"}))["error"]["field"] == "function"
    assert sum(desk.counters.refused for desk in desks) == 2

    def steps(component: str, correlation_id: str) -> list[str]:
        mine = [line for line in lines if line.get("component") == component]
        return [line["event"] for line in mine if line["correlation_id"] == correlation_id]

    assert steps("create", "order 7") == ["message.received", "job.state_changed", "message.sent", "message.sent"]
    assert steps("schedule", "order 7") == ["message.received", "job.state_changed"], "nobody asked for a reply"
    await until(lambda: steps("none", "a dance") == ["message.received", "message.sent"], "both lines")


async def test_a_job_named_by_its_message_is_of_the_hour_in_which_that_was_sent(
    client: Client, desks: list[Desk], office: Office
) -> None:
    sent = int(office.house.now.timestamp()) - 2 * 3600
    reply = await ask(client, "CREATE", BODY, message_id="two hours ago", timestamp=sent)
    assert UUID(reply["job"]["id"]).int >> 80 == sent // 3600 * 3600 * 1000
    assert desks


async def test_a_command_that_comes_again_after_a_lost_connection_is_the_same_job(
    client: Client, desks: list[Desk], office: Office
) -> None:
    job_id, message_id = office.house.new_id(), str(uuid4())
    first = [await ask(client, "CREATE", BODY, id=job_id), await ask(client, "CREATE", BODY, message_id=message_id)]
    again = [await ask(client, "CREATE", BODY, id=job_id), await ask(client, "CREATE", BODY, message_id=message_id)]
    assert [reply["job"]["id"] for reply in again] == [reply["job"]["id"] for reply in first]
    for reply in again:
        await comes_to(client, reply["job"]["id"], "scheduled")
    assert await office.house.store.counts() == {"default": {State.SCHEDULED: 2}}
    assert sum(desk.counters.refused for desk in desks) == 0
