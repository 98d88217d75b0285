"""What can't be provoked with a real broker at will: a driver that misbehaves at the wrong moment."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import AMQPError

from headway.bus.contract import Counters
from headway.bus.line import Away, Line, Terms
from headway.bus.rabbit.letters import Letter
from headway.bus.rabbit.link import Session
from headway.bus.rabbit.services import Hand

TERMS = Terms(url="amqp://localhost/")


class Stubborn:
    """A driver that answers its cancellation with an error of its own, or not at all."""

    def __init__(self, error: Exception | None) -> None:
        self.close_callbacks: set[object] = set()
        self.tries = 0
        self.busy = asyncio.Event()
        self._error = error

    async def wait(self) -> None:
        self.tries += 1
        self.busy.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self._error is not None:
                raise self._error from None

    # As a connection, and as its channel.

    def channel(self, **_: object) -> Stubborn:
        return self

    async def initialize(self) -> None:
        await self.wait()

    async def get_underlay_channel(self) -> Any:
        return self

    @property
    def on_consumer_cancel_callbacks(self) -> set[object]:
        return set()

    is_closed = False

    async def close(self) -> None: ...


class Idle:
    name = "idle"
    confirms = False

    async def attend(self, _channel: object) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize("error", [AMQPError("closed meanwhile"), RuntimeError("closed"), Exception(), None])
async def test_a_service_ends_although_the_driver_swallows_its_cancellation(error: Exception | None) -> None:
    driver = Stubborn(error)
    session = Session(cast("AbstractConnection", driver), TERMS)
    session.start(service := Idle())
    await driver.busy.wait()
    await asyncio.wait_for(session.stop(service), 2)
    assert driver.tries == 1


async def test_a_line_ends_although_the_driver_swallows_its_cancellation() -> None:
    driver, dialled = Stubborn(Away("closed meanwhile")), 0

    async def dial() -> int:
        nonlocal dialled
        dialled += 1
        if dialled > 1:
            await driver.wait()
        return dialled

    async def serve(_connection: int) -> None: ...

    line = Line(TERMS, Counters(), dial=dial, serve=serve)
    await line.open()
    await driver.busy.wait()
    await asyncio.wait_for(line.close(), 2)
    assert driver.tries == 1


class Note:
    """A message that remembers its answer."""

    def __init__(self) -> None:
        self.body = b""
        self.answers: list[str] = []

    async def ack(self) -> None:
        self.answers.append("ack")

    async def give_back(self) -> None:
        self.answers.append("back")


async def test_a_message_that_comes_late_is_answered_as_the_channel_allows() -> None:
    taken, notes = iter([True, False]), [Note() for _ in range(4)]
    with Hand(lambda _body: next(taken)) as hand:
        await hand.receive(cast("Letter", notes[0]))
        await hand.receive(cast("Letter", notes[1]))
        assert [note.answers for note in notes[:2]] == [["ack"], []]
        await hand.give_back()
        # Delivered before the consumer was cancelled, and told of afterwards.
        await hand.receive(cast("Letter", notes[2]))
    # The channel is being closed: an answer would cost the connection.
    await hand.receive(cast("Letter", notes[3]))
    assert [note.answers for note in notes] == [["ack"], ["back"], ["back"], []]
