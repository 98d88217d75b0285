"""The bus over RabbitMQ: one connection, whose services are begun anew whenever it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec
from aio_pika.abc import AbstractConnection

from headway.bus.box import Box, Mail
from headway.bus.contract import BusUnavailable, Counters, Doorbell, OnCall, OnDoorbell, OnEvent, Stop, check_pattern
from headway.bus.ears import Ears
from headway.bus.line import Line, Terms
from headway.bus.rabbit.link import Service, Session, check, dial, fitting
from headway.bus.rabbit.services import EVENTS, WAKE, Dispatch, Sender, Subscription
from headway.clock import wait_for
from headway.model.events import Event
from headway.observe.logs import get_logger

ATTACH_PATIENCE = 5.0
FLUSH_PATIENCE = 1.0

log = get_logger("headway.bus")


class RabbitBus:
    """A doorbell wakes one process; calls and events go to whoever asked for them."""

    def __init__(self, terms: Terms) -> None:
        check(terms)
        self.counters = Counters()
        self._terms = terms
        self._ears = Ears(self.counters)
        self._line: Line[AbstractConnection] = Line(terms, self.counters, dial=partial(dial, terms), serve=self._serve)
        self._box: Box | None = None
        self._session: Session | None = None
        self._dispatches: dict[str, Dispatch] = {}
        self._services: list[Service] = []
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def connected(self) -> bool:
        return self._session is not None

    async def open(self) -> None:
        self._box = Box(self.counters)
        self._services = [sender := Sender(self._box, self.counters)]
        await self._line.open()
        if not await wait_for(self._terms.clock, sender.attached, self._terms.patience):
            await self._line.close()
            raise BusUnavailable(f"{self._terms.address} does not let us use {WAKE} and {EVENTS}; the log says why")

    async def join(self) -> None:
        self._box = Box(self.counters)
        self._services = [Sender(self._box, self.counters)]
        self._line.join()

    async def close(self) -> None:
        if self._box is not None:
            await wait_for(self._terms.clock, self._box.drained, FLUSH_PATIENCE)
            self._box = None
        if self._ending:
            await asyncio.wait(self._ending)
        await self._line.close()

    def ring(self, doorbells: Sequence[Doorbell]) -> None:
        self._put(Mail(doorbells=doorbells))

    async def listen(self, queue: str, heard: OnDoorbell) -> None:
        self._ears.listen(queue, heard)
        self._dispatches[queue] = dispatch = Dispatch(queue, self._ears, self.counters)
        await self._begin(dispatch)

    async def unlisten(self, queue: str) -> None:
        self._ears.unlisten(queue)
        if dispatch := self._dispatches.pop(queue, None):
            await self._end(dispatch)

    def ready(self, queue: str) -> None:
        self._ears.ready(queue)
        if dispatch := self._dispatches.get(queue):
            dispatch.ready()

    def call(self, channel: str) -> None:
        self._put(Mail(calls=[channel]))

    async def on_call(self, channel: str, heard: OnCall) -> Stop:
        def called(_body: bytes | None) -> None:
            self._ears.tell(heard)

        return await self._subscribe(Subscription(WAKE, fitting(channel), self._terms.clock, called))

    def emit(self, events: Sequence[Event]) -> None:
        self._put(Mail(events=events))

    async def subscribe(self, pattern: str, heard: OnEvent, missed: OnCall = lambda: None) -> Stop:
        check_pattern(pattern)

        def told(body: bytes | None) -> None:
            if body is None:
                self._ears.tell(missed)
            elif event := self._read(body):
                self.counters.received += 1
                self._ears.tell(heard, event)

        return await self._subscribe(Subscription(EVENTS, pattern, self._terms.clock, told))

    def _put(self, mail: Mail) -> None:
        if self._box is not None:
            self._box.put(mail)
        else:
            self.counters.dropped_rings += len(mail.doorbells) + len(mail.calls)
            self.counters.dropped_events += len(mail.events)

    def _read(self, body: bytes) -> Event | None:
        try:
            return msgspec.json.decode(body, type=Event)
        except msgspec.DecodeError as error:
            self.counters.malformed += 1
            log.warning("bus.malformed", exchange=EVENTS, error=str(error))
            return None

    # Services

    async def _serve(self, connection: AbstractConnection) -> None:
        self._session = session = Session(connection, self._terms)
        try:
            for service in self._services:
                session.start(service)
            await session.lost.wait()
        finally:
            self._session = None
            await session.end()

    async def _subscribe(self, subscription: Subscription) -> Stop:
        await self._begin(subscription)

        def stop() -> None:
            subscription.ended = True
            ending = asyncio.ensure_future(self._end(subscription))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

        return stop

    async def _begin(self, service: Dispatch | Subscription) -> None:
        """Returns when it hears, or, with the broker away, without: it will, after the reconnect."""
        self._services.append(service)
        if self._session is not None:
            self._session.start(service)
            await wait_for(self._terms.clock, service.attached, ATTACH_PATIENCE)
        service.begun = True

    async def _end(self, service: Service) -> None:
        if service in self._services:
            self._services.remove(service)
        if self._session is not None:
            await self._session.stop(service)
