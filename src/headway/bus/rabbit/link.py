"""Connections and channels to RabbitMQ, and what is to be done on a channel for as long as it lasts."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractQueue
from aio_pika.exceptions import (
    CONNECTION_EXCEPTIONS,
    AuthenticationError,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    ProbableAuthenticationError,
)
from yarl import URL

from headway.bus.contract import BusUnavailable
from headway.bus.line import FIRST_WAIT, LONGEST_WAIT, Away, Terms, heed_cancellation, until_lost
from headway.bus.rabbit.transport import TolerantConnection
from headway.clock import Clock, deadline, sleep
from headway.model.errors import ConfigurationError
from headway.observe.logs import get_logger

Arguments = Mapping[str, int | str]

LOST = (*CONNECTION_EXCEPTIONS, TimeoutError)
"""What a broken connection or channel looks like."""
HEARTBEAT = "10"
"""Seconds; after three of them in silence the connection counts as lost."""
DIAL_PATIENCE = 10.0
CLOSE_PATIENCE = 2.0
LONGEST_NAME = 255
"""Bytes, of queues and routing keys."""

KEPT = 60
"""Characters of a name that is too long or has others than these, so that people may know it again."""
_TAKEN = re.compile(r"[a-zA-Z0-9-_.:@#,/+ ]*")
_NOT_TAKEN = re.compile(r"[^a-zA-Z0-9-_.:@#,/+ ]")
_HOPELESS = (AuthenticationError, ProbableAuthenticationError)

log = get_logger("headway.bus")


class Service(Protocol):
    """Something that needs a channel."""

    name: str
    confirms: bool
    """Whether the broker is to confirm what is published."""

    async def attend(self, channel: AbstractChannel) -> None:
        """Declare what is needed and work; cancelled when the channel is gone, and begun again on the next."""


class Session:
    """One connection with its services, each on a channel of its own: what ails one of them leaves the others alone."""

    def __init__(self, connection: AbstractConnection, terms: Terms) -> None:
        self.lost = asyncio.Event()
        self._connection = connection
        self._clock = terms.clock
        self._tasks: dict[Service, asyncio.Task[None]] = {}
        self._ending = False
        connection.close_callbacks.add(self._closed)

    def start(self, service: Service) -> None:
        self._tasks[service] = asyncio.create_task(self._run(service))

    async def stop(self, service: Service) -> None:
        if task := self._tasks.pop(service, None):
            task.cancel()
            await asyncio.wait([task])

    async def end(self) -> None:
        """The channels end with their connection."""
        self._ending = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await hang_up(self._connection, self._clock)

    def _closed(self, *_: object) -> None:
        self.lost.set()

    async def _run(self, service: Service) -> None:
        """Until stopped. A channel that the broker closed, or whose consumer it cancelled (somebody deleted the queue),
        is replaced by a new one."""
        wait = FIRST_WAIT
        while not self.lost.is_set():
            try:
                await self._attend(service)
            except LOST as error:
                log.warning("bus.channel_lost", service=service.name, error=words(error))
            except Exception:
                # Whatever it was, a new channel is a new start.
                log.exception("bus.service_failed", service=service.name)
            heed_cancellation()
            await sleep(self._clock, wait)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _attend(self, service: Service) -> None:
        gone = asyncio.Event()
        channel = self._connection.channel(publisher_confirms=service.confirms, on_return_raises=service.confirms)
        async with deadline(self._clock, DIAL_PATIENCE):
            await channel.initialize()
        try:
            channel.close_callbacks.add(lambda *_: gone.set())
            (await channel.get_underlay_channel()).on_consumer_cancel_callbacks.add(lambda _: gone.set())
            if not channel.is_closed:
                await until_lost(gone, service.attend(channel))
        finally:
            if not self._ending and not self.lost.is_set():
                with suppress(*LOST):
                    async with deadline(self._clock, CLOSE_PATIENCE):
                        await channel.close()


class DurableQueue:
    """A queue that everybody declares alike. One that is there with other arguments, by an operator's wish, is used as
    it is."""

    def __init__(self, name: str, arguments: Arguments | None = None) -> None:
        self.name = name
        self._arguments = arguments or {}
        self._as_it_is = False

    async def declare(self, channel: AbstractChannel) -> AbstractQueue:
        try:
            return await channel.declare_queue(
                self.name, durable=True, arguments={**self._arguments}, passive=self._as_it_is
            )
        except ChannelPreconditionFailed as error:
            log.warning("bus.queue_differs", queue=self.name, error=words(error), help="it is used as it is")
            self._as_it_is = True
            raise
        except ChannelNotFoundEntity:
            self._as_it_is = False
            raise


async def dial(terms: Terms) -> AbstractConnection:
    """A connection, or `Away`, or `BusUnavailable` where waiting doesn't help."""
    connection = TolerantConnection(URL(_with_heartbeat(terms.url)), client_properties={"connection_name": "headway"})
    try:
        async with deadline(terms.clock, DIAL_PATIENCE):
            await connection.connect()
    except BaseException as error:
        await hang_up(connection, terms.clock)
        if isinstance(error, _HOPELESS):
            raise BusUnavailable(f"RabbitMQ refuses the user or the password: {words(error)}") from error
        if isinstance(error, LOST):
            raise Away(f"{words(error)}; check that RabbitMQ runs there and the address is right") from error
        raise
    return connection


async def hang_up(connection: AbstractConnection, clock: Clock) -> None:
    """Close it, if there is anything to be closed."""
    try:
        with suppress(*LOST):
            async with deadline(clock, CLOSE_PATIENCE):
                await connection.close()
    finally:
        # One that does not know that it is closed would try to close itself once nobody is left to do it.
        await connection.close()


def check(terms: Terms) -> None:
    """The address, before anything is tried with it."""
    try:
        parts = urlsplit(terms.url)
        sound = bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise ConfigurationError(f"{terms.address!r} is no broker: use amqp://user:password@host:5672/vhost")


def fitting(name: str, room: int = LONGEST_NAME) -> str:
    """The name itself, or, where the broker or the driver doesn't take it, what can be kept of it and a digest."""
    if len(name) <= room and _TAKEN.fullmatch(name):
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
    return f"{_NOT_TAKEN.sub('_', name)[:KEPT]}-{digest}"


def words(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _with_heartbeat(url: str) -> str:
    """The driver's own default takes minutes to notice that a broker is gone."""
    parts = urlsplit(url)
    query = {"heartbeat": HEARTBEAT, **dict(parse_qsl(parts.query))}
    return parts._replace(query=urlencode(query)).geturl()
