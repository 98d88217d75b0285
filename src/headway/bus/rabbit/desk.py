"""The desk at which commands are taken from RabbitMQ, carried out and answered.

A command is acknowledged last of all: after its handler has returned, so that what it asked for is stored, and after
the broker has confirmed the reply. Whatever breaks before, the command comes again, here or elsewhere.

1. A message that is no command is answered with what is wrong with it, and is done with.
2. The handler runs, beside those of other commands, whatever becomes of the connection meanwhile.
3. If the store is away it is tried again after a while. After half a minute the command goes to the end of the queue:
   at its old place it would stand before all others for ever.
4. The reply goes out. A client that is gone can't be answered; that is logged.
5. The command is acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec
from aio_pika import Message
from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import DeliveryError

from headway.bus.commands import QUEUE, Answer, Command, Handler, Malformed, Options, Reply, refusal
from headway.bus.contract import BusUnavailable, Tally
from headway.bus.line import Line, Terms, heed_cancellation
from headway.bus.rabbit.counter import Intake, Outlet, copied, read, written
from headway.bus.rabbit.letters import Letter
from headway.bus.rabbit.link import LOST, Session, check, dial, words
from headway.clock import Clock, SystemClock, deadline, sleep, wait_for
from headway.model.errors import HeadwayError, NotServed, StoreUnavailable
from headway.observe import series
from headway.observe.logs import get_logger

FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0
LEFT_WAIT = 0.2
"""Seconds until a command that this process doesn't serve goes to the end of the queue, for those who do."""

log = get_logger("headway.bus")


class DeskCounters(Tally):
    """What became of the commands that came in."""

    shown = series.commands
    received: int = 0
    answered: int = 0
    """Replies that the broker has confirmed."""
    refused: int = 0
    """Commands that were answered with an error."""
    malformed: int = 0
    unanswered: int = 0
    """Replies for which there was nobody."""
    tried_again: int = 0
    put_off: int = 0
    """Commands sent to the end of the queue, or given back at the end."""


class Desk:
    """Serves commands from `open` to `close`."""

    def __init__(self, terms: Terms, handler: Handler, options: Options) -> None:
        check(terms)
        self.counters = DeskCounters()
        self._terms = terms
        self._clock = terms.clock
        self._handler = handler
        self._options = options
        self._intake = Intake(self._take, options.at_once)
        self._outlet = Outlet()
        self._line: Line[AbstractConnection] = Line(terms, self.counters, dial=partial(dial, terms), serve=self._serve)
        self._in_hand: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(options.at_once)

    async def open(self) -> None:
        """Returns when commands are taken."""
        await self._line.open()
        if not await wait_for(self._clock, self._intake.attached, self._terms.patience):
            await self._line.close()
            raise BusUnavailable(f"{self._terms.address} does not let us use {QUEUE}; the log says why")

    async def close(self) -> None:
        """Take no more; what is in hand is finished within the grace period, or comes again elsewhere."""
        self._intake.closing.set()
        if self._in_hand:
            await _ended(self._in_hand, self._clock, self._options.grace)
        for task in self._in_hand:
            task.cancel()
        await asyncio.gather(*self._in_hand, return_exceptions=True)
        await self._line.close()

    async def send(self, command: Command) -> None:
        """A command from one of our own to whoever serves it: kept by the broker when this returns."""
        body = {"type": command.type, "payload": command.payload} | ({"id": command.id} if command.id else {})
        message = written(
            msgspec.json.encode(body), message_id=command.message_id, correlation_id=command.correlation_id
        )
        try:
            async with deadline(self._clock, self._terms.patience):
                while not await self._sent(message):
                    await sleep(self._clock, FIRST_WAIT)
        except TimeoutError as error:
            raise BusUnavailable(f"{self._terms.address} did not take the command {command.type}") from error

    async def _sent(self, message: Message) -> bool:
        try:
            await self._outlet.publish(message, QUEUE)
        except LOST as error:
            heed_cancellation()
            # A queue that is gone is made again by the intake.
            log.info("bus.send_delayed", error=words(error))
            return False
        return True

    async def _serve(self, connection: AbstractConnection) -> None:
        session = Session(connection, self._terms)
        try:
            session.start(self._outlet)
            session.start(self._intake)
            await session.lost.wait()
        finally:
            await session.end()

    # One command

    async def _take(self, letter: Letter) -> None:
        # A task of our own: the driver's end with the connection, in the middle of a commit if need be.
        task = asyncio.create_task(self._handle(letter))
        self._in_hand.add(task)
        task.add_done_callback(self._in_hand.discard)

    async def _handle(self, letter: Letter) -> None:
        self.counters.received += 1
        try:
            answer = await self._answer(letter)
            if answer is None:
                await self._put_off(letter)
            else:
                await self._reply(letter, answer)
                await self._done(letter)
        except LOST as error:
            log.info("message.comes_again", message_id=letter.properties.message_id, error=words(error))
        except Exception:
            # It was carried out, or could not be read: to have it again would not mend this.
            log.exception("message.failed", message_id=letter.properties.message_id)
            await self._done(letter)

    async def _answer(self, letter: Letter) -> _Written | None:
        """What is to be sent, or None: not now."""
        try:
            command = read(letter)
        except Malformed as error:
            self.counters.malformed += 1
            log.warning("message.malformed", error=str(error), correlation_id=letter.properties.correlation_id)
            return _Written(refusal(error))
        try:
            answer = await self._carry_out(command, letter)
            outgoing = None if answer is None else _Written(answer.reply, answer.sent)
        except Exception as error:
            if not isinstance(error, HeadwayError):
                log.exception("message.failed", type=command.type, correlation_id=command.correlation_id)
            outgoing = _Written(refusal(error))
        self.counters.refused += outgoing is not None and outgoing.refuses
        return outgoing

    async def _carry_out(self, command: Command, letter: Letter) -> Answer | None:
        started, wait = self._clock.monotonic(), FIRST_WAIT
        while self._intake.holds(letter):
            try:
                async with self._places, deadline(self._clock, self._options.longest):
                    reply = await self._handler(command)
                    return reply if isinstance(reply, Answer) else Answer(reply)
            except NotServed as error:
                log.debug("message.left", type=command.type, reason=str(error))
                await sleep(self._clock, LEFT_WAIT)
                break
            except (StoreUnavailable, TimeoutError) as error:
                self.counters.tried_again += 1
                log.warning("message.delayed", type=command.type, error=words(error))
            late = self._clock.monotonic() - started + wait > self._options.give_up
            if late or await wait_for(self._clock, self._intake.closing, wait):
                break
            wait = min(wait * 2, LONGEST_WAIT)
        return None

    async def _put_off(self, letter: Letter) -> None:
        """To the end of the queue; when we are about to close, back to where it was."""
        self.counters.put_off += 1
        if not self._intake.closing.is_set() and await self._sent(copied(letter)):
            await self._done(letter)
        elif self._intake.holds(letter):
            await letter.give_back()

    async def _done(self, letter: Letter) -> None:
        if self._intake.holds(letter):
            with suppress(*LOST):
                await letter.ack()

    async def _reply(self, letter: Letter, answer: _Written) -> None:
        """Until the broker has it, or it is known that nobody will read it."""
        to, mine = letter.properties.reply_to, letter.properties.correlation_id
        while to and self._intake.holds(letter):
            try:
                await self._outlet.publish(written(answer.body, correlation_id=mine), to)
            except DeliveryError as error:
                self.counters.unanswered += 1
                log.warning("message.unanswered", correlation_id=mine, error=words(error))
                return
            except LOST as error:
                heed_cancellation()
                log.info("message.reply_delayed", correlation_id=mine, error=words(error))
                await sleep(self._clock, FIRST_WAIT)
            else:
                self.counters.answered += 1
                answer.sent()
                return


class _Written:
    """An answer as it goes out."""

    def __init__(self, reply: Reply, sent: Callable[[], None] = lambda: None) -> None:
        self.body = msgspec.json.encode(reply)
        self.refuses = reply.get("ok") is False
        self.sent = sent


async def open_desk(url: str, handler: Handler, options: Options, clock: Clock | None) -> Desk:
    desk = Desk(Terms(url=url, clock=clock or SystemClock()), handler, options)
    await desk.open()
    return desk


async def _ended(tasks: set[asyncio.Task[None]], clock: Clock, patience: float) -> None:
    """Wait until these have ended, not for ever."""
    try:
        async with deadline(clock, patience):
            await asyncio.wait(tasks)
    except TimeoutError:
        log.warning("bus.commands_left", in_hand=len(tasks))
