"""The bus over PostgreSQL's LISTEN and NOTIFY: `postgresql://…`, by a connection of its own.

Everybody who listens hears every ring. A notification carries less than 8,000 bytes, so messages are packed into lists
that fit, and everything that waits goes out in one statement: NOTIFY takes a lock on the whole database at its commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from secrets import token_hex
from urllib.parse import parse_qsl

import asyncpg
import msgspec

from headway.bus.box import Box, Mail
from headway.bus.contract import BusUnavailable, Counters, Doorbell, OnCall, OnDoorbell, OnEvent, Stop
from headway.bus.ears import Ears
from headway.bus.line import Away, Line, Terms, until_lost
from headway.bus.packing import that_fit
from headway.clock import deadline, wait_for
from headway.model.errors import ConfigurationError
from headway.model.events import Event
from headway.observe.logs import get_logger
from headway.observe.packing import packed

RINGS, CALLS, EVENTS, ECHO = "headway_ring", "headway_call", "headway_event", "headway_echo"
HEARTBEAT = 10.0
"""Seconds of silence after which the connection is tried."""
DIAL_PATIENCE = 10.0
COMMAND_PATIENCE = 10.0
ECHO_PATIENCE = 3.0
FLUSH_PATIENCE = 1.0

_SEND = "select pg_notify(channel, message) from unnest($1::text[], $2::text[]) as mail (channel, message)"
_HOPELESS = (
    asyncpg.ClientConfigurationError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.SyntaxOrAccessError,
    ValueError,
)
_LOST = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)

_Connection = asyncpg.Connection

log = get_logger("headway.bus")


class NotifyBus:
    """Broadcasts. Has one connection, on which it both listens and sends."""

    def __init__(self, terms: Terms) -> None:
        if any(name == "pooler" for name, _ in parse_qsl(terms.url.partition("?")[2])):
            raise ConfigurationError(
                "LISTEN doesn't work through a pooler: give the bus the address of the server itself"
            )
        self.counters = Counters()
        self._terms = terms
        self._ears = Ears(self.counters)
        self._line: Line[_Connection] = Line(terms, self.counters, dial=self._dial, serve=self._serve)
        self._box: Box | None = None
        self._connection: _Connection | None = None
        self._connected = asyncio.Event()
        """Set by the first connection, for good."""
        # asyncpg does one thing at a time on a connection.
        self._lock = asyncio.Lock()
        self._readers: dict[str, Callable[[str], None]] = {
            RINGS: self._heard_rings,
            CALLS: self._heard_calls,
            EVENTS: self._heard_events,
        }

    @property
    def connected(self) -> bool:
        return self._connection is not None

    async def open(self) -> None:
        self._box = Box(self.counters)
        await self._line.open()
        if not await wait_for(self._terms.clock, self._connected, self._terms.patience):
            await self._line.close()
            raise BusUnavailable(f"{self._terms.address} does not let us listen; the log says why")

    async def join(self) -> None:
        self._box = Box(self.counters)
        self._line.join()

    async def close(self) -> None:
        if self._box is not None:
            await wait_for(self._terms.clock, self._box.drained, FLUSH_PATIENCE)
            self._box = None
        await self._line.close()

    def ring(self, doorbells: Sequence[Doorbell]) -> None:
        self._put(Mail(doorbells=doorbells))

    async def listen(self, queue: str, heard: OnDoorbell) -> None:
        self._ears.listen(queue, heard)
        await self._retune()

    async def unlisten(self, queue: str) -> None:
        self._ears.unlisten(queue)
        await self._retune()

    def ready(self, queue: str) -> None:
        self._ears.ready(queue)

    def call(self, channel: str) -> None:
        self._put(Mail(calls=[channel]))

    async def on_call(self, channel: str, heard: OnCall) -> Stop:
        stop = self._ears.on_call(channel, heard)
        await self._retune()
        return stop

    def emit(self, events: Sequence[Event]) -> None:
        self._put(Mail(events=events))

    async def subscribe(self, pattern: str, heard: OnEvent, missed: OnCall = lambda: None) -> Stop:
        stop = self._ears.subscribe(pattern, heard, missed)
        await self._retune()
        return stop

    def _put(self, mail: Mail) -> None:
        if self._box is not None:
            self._box.put(mail)
        else:
            self.counters.dropped_rings += len(mail.doorbells) + len(mail.calls)
            self.counters.dropped_events += len(mail.events)

    # The connection

    async def _dial(self) -> _Connection:
        connection = await self._connect()
        try:
            await self._check(connection)
        except BaseException as error:
            connection.terminate()
            if isinstance(error, _LOST):
                raise Away(_words(error)) from error
            raise
        return connection

    async def _connect(self) -> _Connection:
        try:
            connection: _Connection = await asyncpg.connect(
                self._terms.url,
                timeout=DIAL_PATIENCE,
                command_timeout=COMMAND_PATIENCE,
                server_settings={"application_name": "headway-bus"},
            )
        except _HOPELESS as error:
            raise BusUnavailable(_words(error)) from error
        except _LOST as error:
            raise Away(f"{_words(error)}; check that PostgreSQL runs there and the address is right") from error
        return connection

    async def _check(self, connection: _Connection) -> None:
        """Through a pooler LISTEN succeeds, and nothing that others send is ever heard. So somebody else sends."""
        token, heard = token_hex(8), asyncio.Event()

        def listen(_connection: object, _pid: int, _channel: str, message: object) -> None:
            if message == token:
                heard.set()

        await connection.add_listener(ECHO, listen)
        other = await self._connect()
        try:
            await other.execute(_SEND, [ECHO], [token])
        finally:
            await _hang_up(other)
        if not await wait_for(self._terms.clock, heard, ECHO_PATIENCE):
            raise BusUnavailable(
                "notifications don't come through: give the bus the address of the server itself, not of a pooler"
            )
        await connection.remove_listener(ECHO, listen)

    async def _serve(self, connection: _Connection) -> None:
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        self._connection = connection
        try:
            await self._tune()
            if self._connected.is_set():
                self._ears.look_everywhere()
            self._connected.set()
            await until_lost(lost, self._send(connection))
        except _LOST as error:
            log.info("bus.connection_failed", error=_words(error))
        finally:
            self._connection = None
            await _hang_up(connection)

    async def _retune(self) -> None:
        try:
            await self._tune()
        except _LOST as error:
            log.info("bus.connection_failed", error=_words(error))
            if self._connection is not None:
                self._connection.terminate()

    async def _tune(self) -> None:
        """Listen to what somebody here wants to hear, and to nothing else."""
        async with self._lock:
            connection = self._connection
            if connection is None or connection.is_closed():
                return
            wanted = {RINGS: bool(self._ears.queues), CALLS: self._ears.wants_calls, EVENTS: self._ears.wants_events}
            for channel, want in wanted.items():
                # Both do nothing where nothing is to be done.
                await (connection.add_listener if want else connection.remove_listener)(channel, self._heard)

    async def _send(self, connection: _Connection) -> None:
        box = self._box
        assert box is not None
        while True:
            try:
                async with deadline(self._terms.clock, HEARTBEAT):
                    mail = await box.take()
            except TimeoutError:
                mail = Mail()
            notifications = self._notifications(mail)
            try:
                await self._post(connection, notifications)
            except BaseException:
                box.put_back(mail)
                raise
            self.counters.rung += len(mail.doorbells)
            self.counters.emitted += len(mail.events)

    async def _post(self, connection: _Connection, notifications: Sequence[tuple[str, str]]) -> None:
        """None at all is a way to see whether the connection still lives."""
        channels, messages = zip(*notifications, strict=True) if notifications else ((), ())
        async with self._lock:
            await connection.execute(_SEND, channels, messages)

    def _notifications(self, mail: Mail) -> list[tuple[str, str]]:
        parts = ((RINGS, that_fit(mail.doorbells)), (CALLS, mail.calls), (EVENTS, mail.events))
        return [(channel, message) for channel, items in parts for message in packed(items)]

    # What comes in

    def _heard(self, _connection: object, _pid: int, channel: str, message: object) -> None:
        try:
            self._readers[channel](str(message))
        except msgspec.DecodeError as error:
            self.counters.malformed += 1
            log.warning("bus.malformed", channel=channel, error=str(error))

    def _heard_rings(self, message: str) -> None:
        for doorbell in msgspec.json.decode(message, type=list[Doorbell]):
            self._ears.hear(doorbell)

    def _heard_calls(self, message: str) -> None:
        for channel in msgspec.json.decode(message, type=list[str]):
            self._ears.hear_call(channel)

    def _heard_events(self, message: str) -> None:
        for event in msgspec.json.decode(message, type=list[Event]):
            self._ears.hear_event(event)


async def _hang_up(connection: _Connection) -> None:
    try:
        await connection.close(timeout=1)
    except _LOST:
        connection.terminate()


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def from_terms(terms: Terms) -> NotifyBus:
    """The maker behind `postgresql://…`."""
    return NotifyBus(terms)
