"""Messages that come in, and the one answer that each must get."""

from __future__ import annotations

from collections.abc import Callable, Coroutine

from aio_pika.abc import AbstractChannel
from aiormq.abc import AbstractChannel as Underlay
from aiormq.abc import DeliveredMessage

from headway.bus.rabbit.transport import UNREADABLE

Receive = Callable[["Letter"], Coroutine[object, object, None]]


class Letter:
    """A message. The driver's own kind of message can't be made from everything that foreign clients send."""

    __slots__ = ("_tag", "body", "channel", "properties", "redelivered")

    def __init__(self, message: DeliveredMessage) -> None:
        self.body = message.body
        self.properties = message.header.properties
        self.redelivered = bool(message.redelivered)
        self.channel: Underlay = message.channel
        self._tag = message.delivery_tag or 0

    @property
    def readable(self) -> bool:
        return self.properties.message_type != UNREADABLE

    async def ack(self) -> None:
        await self.channel.basic_ack(self._tag, wait=False)

    async def give_back(self) -> None:
        """To where it stood in its queue."""
        await self.channel.basic_nack(self._tag, requeue=True, wait=False)


async def consume(channel: AbstractChannel, queue: str, receive: Receive) -> str:
    """Tell `receive` of every message in the queue; the tag of the consumer, by which it can be cancelled."""
    underlay = await channel.get_underlay_channel()
    begun = await underlay.basic_consume(queue, lambda message: receive(Letter(message)))
    assert begun.consumer_tag is not None
    return begun.consumer_tag


async def cancel(channel: AbstractChannel, tag: str) -> None:
    """Returns when nothing more comes in."""
    await (await channel.get_underlay_channel()).basic_cancel(tag)
