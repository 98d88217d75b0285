"""What the bus does on RabbitMQ, each on a channel of its own: hear doorbells, calls and events, and send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Self

import msgspec
from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractQueue

from headway.bus.box import Box, Mail
from headway.bus.contract import Counters, Doorbell
from headway.bus.ears import Ears
from headway.bus.rabbit.frames import Wire
from headway.bus.rabbit.letters import Letter, cancel, consume
from headway.bus.rabbit.link import LOST, Arguments, DurableQueue, fitting
from headway.clock import Clock, sleep
from headway.observe.logs import get_logger

DISPATCH = "headway.dispatch."
WAKE = "headway.wake"
EVENTS = "headway.events"
EXCHANGES = {WAKE: ExchangeType.DIRECT, EVENTS: ExchangeType.TOPIC}

BOUNDED: Arguments = {"x-max-length": 1_000, "x-overflow": "drop-head"}
PREFETCH = 2
"""Few: each doorbell is for somebody who is free."""
AHEAD = 100
"""Events on their way to a subscriber: those behind them wait at the broker, and hold up no doorbell."""
OWN: Arguments = {"x-max-length": 10_000, "x-overflow": "drop-head"}
"""A process that stands still must not fill the broker."""
LOOK_AFTER = 30.0
"""Seconds after which a binding is made again, should somebody have removed its exchange: of that nobody is told."""

log = get_logger("headway.bus")


def dispatch_queue(queue: str) -> str:
    """The broker's queue for the doorbells of one of ours."""
    return DISPATCH + fitting(queue, 255 - len(DISPATCH))


class Dispatch:
    """Hears the doorbells of one queue, in competition with other processes."""

    confirms = False

    def __init__(self, queue: str, ears: Ears, counters: Counters) -> None:
        self.name = dispatch_queue(queue)
        self.attached = asyncio.Event()
        self.begun = False
        """Told to listen: what comes before it is attached, or attached again, is missed."""
        self._queue = queue
        self._ears = ears
        self._counters = counters
        self._declaration = DurableQueue(self.name, BOUNDED)
        self._wanted = asyncio.Event()
        self._refused = asyncio.Event()
        self._wanted.set()

    def ready(self) -> None:
        self._wanted.set()

    async def attend(self, channel: AbstractChannel) -> None:
        await channel.set_qos(prefetch_count=PREFETCH)
        queue = await self._declaration.declare(channel)
        missed = self.begun
        while True:
            await self._wanted.wait()
            self._refused.clear()
            with Hand(self._taken) as hand:
                tag = await consume(channel, queue.name, hand.receive)
                self.attached.set()
                if missed:
                    # Nobody knows what was rung meanwhile.
                    missed = False
                    self._hear(Doorbell(self._queue))
                await self._refused.wait()
                await cancel(channel, tag)
                await hand.give_back()

    def _taken(self, body: bytes) -> bool:
        try:
            doorbell = msgspec.json.decode(body, type=Doorbell)
        except msgspec.DecodeError as error:
            self._counters.malformed += 1
            log.warning("bus.malformed", queue=self.name, error=str(error))
            return True
        return self._hear(Doorbell(self._queue, doorbell.ids))

    def _hear(self, doorbell: Doorbell) -> bool:
        if self._ears.hear(doorbell):
            return True
        self._wanted.clear()
        self._refused.set()
        return False


class Hand:
    """What one consumer holds: messages are taken, or kept until they can be given back to the queue."""

    def __init__(self, taken: Callable[[bytes], bool]) -> None:
        self._taken = taken
        self._kept: list[Letter] = []
        self._over = False
        self._gone = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The channel is about to be closed, which gives everything back. An answer on it now would, to the broker, be
        one on a channel that was never opened, and cost the whole connection."""
        self._gone = True

    async def receive(self, letter: Letter) -> None:
        if self._gone:
            return
        with suppress(*LOST):
            if self._over:
                await letter.give_back()
            elif self._taken(letter.body):
                await letter.ack()
            else:
                self._kept.append(letter)

    async def give_back(self) -> None:
        """For another process. Only once we consume no more, or they would come straight back."""
        self._over = True
        while self._kept:
            await self._kept.pop().give_back()


class Subscription:
    """Hears, by a queue of its own that ends with it, what an exchange has for one key."""

    confirms = False

    def __init__(self, exchange: str, key: str, clock: Clock, heard: Callable[[bytes | None], None]) -> None:
        self.name = f"{exchange} {key}"
        self.attached = asyncio.Event()
        self.begun = False
        """As above."""
        self.ended = False
        self._exchange = exchange
        self._key = key
        self._clock = clock
        self._heard = heard
        """Called with None when messages may have been lost."""

    async def attend(self, channel: AbstractChannel) -> None:
        await channel.set_qos(prefetch_count=AHEAD)
        queue = await channel.declare_queue(exclusive=True, auto_delete=True, arguments={**OWN})
        await self._bind(channel, queue)
        with Hand(self._taken) as hand:
            await consume(channel, queue.name, hand.receive)
            if self.begun:
                self._tell(None)
            self.attached.set()
            while True:
                await sleep(self._clock, LOOK_AFTER)
                await self._bind(channel, queue)

    async def _bind(self, channel: AbstractChannel, queue: AbstractQueue) -> None:
        exchange = await channel.declare_exchange(self._exchange, EXCHANGES[self._exchange], durable=True)
        await queue.bind(exchange, self._key)

    def _taken(self, body: bytes) -> bool:
        self._tell(body)
        return True

    def _tell(self, body: bytes | None) -> None:
        if not self.ended:
            self._heard(body)


class Sender:
    """Sends what is in the box, as it comes. The broker confirms nothing; a broken channel is noticed."""

    name = "sender"
    confirms = False

    def __init__(self, box: Box, counters: Counters) -> None:
        self.attached = asyncio.Event()
        self._box = box
        self._counters = counters

    async def attend(self, channel: AbstractChannel) -> None:
        for name, kind in EXCHANGES.items():
            await channel.declare_exchange(name, kind, durable=True)
        wire = Wire(await channel.get_underlay_channel())
        self.attached.set()
        while True:
            mail = await self._box.take()
            messages = b"".join(_messages(wire, mail))
            try:
                await wire.write(messages)
            except BaseException:
                self._box.put_back(mail)
                raise
            self._counters.rung += len(mail.doorbells)
            self._counters.emitted += len(mail.events)


def _messages(wire: Wire, mail: Mail) -> Iterator[bytes]:
    for doorbell in mail.doorbells:
        yield wire.message("", dispatch_queue(doorbell.queue), msgspec.json.encode(doorbell))
    for channel in mail.calls:
        yield wire.message(WAKE, fitting(channel), b"{}")
    for event in mail.events:
        yield wire.message(EVENTS, event.key, msgspec.json.encode(event))
