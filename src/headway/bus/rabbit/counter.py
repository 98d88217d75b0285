"""The two channels of a desk, one on which commands come in, one on which replies go out and are confirmed; and how
both look as messages."""

from __future__ import annotations

import asyncio

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel

from headway.bus.commands import QUEUE, Command, Malformed, parse
from headway.bus.rabbit.letters import Letter, Receive, cancel, consume
from headway.bus.rabbit.link import DurableQueue
from headway.observe import traces

CONFIRM_PATIENCE = 10.0
DIRECT = "amq.rabbitmq.reply-to."
"""How replies are addressed that the broker hands over by itself, without a queue."""
TRIES = "x-headway-tries"
"""How often a command has gone to the end of the queue."""


class Intake:
    """Takes commands until `closing` is set; from then on it only keeps the channel for those in hand."""

    name = QUEUE
    confirms = False

    def __init__(self, take: Receive, at_once: int) -> None:
        self.attached = asyncio.Event()
        self.closing = asyncio.Event()
        self._take = take
        self._at_once = at_once
        self._declaration = DurableQueue(QUEUE)
        self._channel: object = None

    def holds(self, letter: Letter) -> bool:
        """Whether a message that came in can still be answered for: not once its channel is gone, or about to be."""
        return letter.channel is self._channel

    async def attend(self, channel: AbstractChannel) -> None:
        await channel.set_qos(prefetch_count=self._at_once)
        queue = await self._declaration.declare(channel)
        self._channel = await channel.get_underlay_channel()
        try:
            if not self.closing.is_set():
                tag = await consume(channel, queue.name, self._take)
                self.attached.set()
                await self.closing.wait()
                await cancel(channel, tag)
            await asyncio.Event().wait()
        finally:
            self._channel = None


class Outlet:
    """Publishes, and knows when the broker has it."""

    name = "replies"
    confirms = True

    def __init__(self) -> None:
        self._channel: AbstractChannel | None = None
        self._attached = asyncio.Event()
        self._declaration = DurableQueue(QUEUE)

    async def attend(self, channel: AbstractChannel) -> None:
        await self._declaration.declare(channel)
        self._channel = channel
        self._attached.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._attached.clear()
            self._channel = None

    async def publish(self, message: Message, queue: str) -> None:
        """Returns when the broker has put it into this queue. `DeliveryError`: it can't; there may be no such queue.
        What goes straight to a client passes no queue, and would be called undelivered."""
        await self._attached.wait()
        channel = self._channel
        assert channel is not None
        await channel.default_exchange.publish(
            message, queue, mandatory=not queue.startswith(DIRECT), timeout=CONFIRM_PATIENCE
        )


def read(letter: Letter) -> Command:
    """The command in a message; `Malformed` says what is wrong with it."""
    if not letter.readable:
        raise Malformed("the message has properties that can't be read")
    properties = letter.properties
    body = parse(letter.body)
    return Command(
        type=body.type,
        payload=body.payload,
        id=body.id,
        message_id=properties.message_id,
        sent_at=properties.timestamp,
        correlation_id=properties.correlation_id,
        traceparent=traces.readable((properties.headers or {}).get(traces.TRACEPARENT)),
        redelivered=letter.redelivered or TRIES in (properties.headers or {}),
    )


def written(
    body: bytes, *, correlation_id: str | None, message_id: str | None = None, reply_to: str | None = None
) -> Message:
    """A message that outlives a restart of the broker."""
    return Message(
        body,
        content_type="application/json",
        delivery_mode=DeliveryMode.PERSISTENT,
        correlation_id=correlation_id,
        message_id=message_id,
        reply_to=reply_to,
    )


def copied(letter: Letter) -> Message:
    """The same command once more, as something that may have been carried out before."""
    given = letter.properties
    copy = written(
        letter.body, correlation_id=given.correlation_id, message_id=given.message_id, reply_to=given.reply_to
    )
    copy.timestamp = given.timestamp
    if (trace := (given.headers or {}).get(traces.TRACEPARENT)) is not None:
        copy.headers[traces.TRACEPARENT] = trace
    tries = (given.headers or {}).get(TRIES)
    copy.headers[TRIES] = tries + 1 if isinstance(tries, int) else 1
    return copy
