"""What foreign clients read from the broker, and what they may put into it."""

from __future__ import annotations

import json
from uuid import uuid4

import msgspec
import pika
import pika.exceptions
import pytest
from aiormq import spec
from aiormq.abc import ChannelFrame
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

from headway.bus.rabbit.frames import Envelope
from headway.bus.rabbit.services import dispatch_queue
from headway.contracts.buses.town import Ear, Reader, Town, event
from headway.model.states import State
from tests.flow.waiting import until


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"queue": 1}', b'{"queue": "q", "ids": ["x"]}'])
async def test_what_is_no_doorbell_is_counted_and_holds_up_nobody(
    rabbit_town: Town, foreign: pika.adapters.blocking_connection.BlockingChannel, queue: str, body: bytes
) -> None:
    bus, ear = await rabbit_town.bus(), Ear()
    await bus.listen(queue, ear)
    for _ in range(5):
        foreign.basic_publish("", dispatch_queue(queue), body)
    await until(lambda: bus.counters.malformed == 5, "them to be counted")
    foreign.basic_publish("", dispatch_queue(queue), json.dumps({"queue": queue, "ids": [str(uuid4())]}))
    await ear.hears()


async def test_what_is_no_event_is_counted(
    rabbit_town: Town, foreign: pika.adapters.blocking_connection.BlockingChannel
) -> None:
    bus, reader = await rabbit_town.bus(), Reader()
    await bus.subscribe("job.*", reader)
    foreign.basic_publish("headway.events", "job.completed", b'{"event": 1}')
    await until(lambda: bus.counters.malformed == 1, "it to be counted")
    bus.emit([event()])
    await reader.reads()


async def test_messages_that_the_driver_can_not_read_cost_no_connection(
    rabbit_town: Town, foreign: pika.adapters.blocking_connection.BlockingChannel, queue: str
) -> None:
    bus, ear, reader = await rabbit_town.bus(), Ear(), Reader()
    await bus.listen(queue, ear)
    await bus.subscribe("job.*", reader)
    no_text = pika.BasicProperties(correlation_id=b"\xff", headers={b"\xfe": 1})
    foreign.basic_publish("", dispatch_queue(queue), json.dumps({"queue": queue}), no_text)
    foreign.basic_publish("headway.events", b"job.\xff", msgspec.json.encode(told := event()), no_text)
    await ear.hears()
    await reader.reads()
    assert reader.events == [told]
    assert (bus.counters.reconnects, bus.counters.malformed) == (0, 0)


async def test_a_foreign_client_reads_events(
    rabbit_town: Town, foreign: pika.adapters.blocking_connection.BlockingChannel
) -> None:
    bus = await rabbit_town.bus()
    queue = foreign.queue_declare("", exclusive=True).method.queue
    foreign.queue_bind(queue, "headway.events", "job.failed")
    told = event(State.FAILED, name="nightly", attempt=2)
    bus.emit([event(State.COMPLETED), told, event(State.RUNNING)])

    await until(lambda: foreign.queue_declare(queue, passive=True).method.message_count, "the event")
    method, properties, body = foreign.basic_get(queue, auto_ack=True)

    assert (method.routing_key, properties.content_type) == ("job.failed", "application/json")
    assert json.loads(body) == {
        "event": "job.failed",
        "job_id": str(told.job_id),
        "kind": "call",
        "name": "nightly",
        "queue": "default",
        "state": "failed",
        "outcome": None,
        "attempt": 2,
        "at": "2030-01-02T03:04:05.678901Z",
    }
    assert foreign.basic_get(queue, auto_ack=True) == (None, None, None)


@pytest.mark.parametrize("size", [0, 1, 4_087, 4_088, 4_089, 20_000])
def test_messages_are_framed_as_the_driver_would(size: int) -> None:
    body, largest = b"x" * size, 4_088
    publish = spec.Basic.Publish(exchange="an exchange", routing_key="a.key")
    properties = spec.Basic.Properties(content_type="application/json", delivery_mode=1)
    header = ContentHeader(body_size=size, properties=properties)
    pieces = [ContentBody(body[start : start + largest]) for start in range(0, size, largest)]
    expected = ChannelFrame.marshall(7, [publish, header, *pieces]).payload
    assert Envelope(7, largest, "an exchange", "a.key").around(body) == expected
