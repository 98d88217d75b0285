"""Server-sent events: streams that end when the process does, and when their reader may no longer read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from starlette.responses import StreamingResponse

from headway.api.call import Call, Service
from headway.model.access import Permission
from headway.model.errors import HeadwayError, Throttled

HEARTBEAT = 15.0
"""Seconds after which a silent stream says that it lives."""
CHECK_EVERY = 3.0
"""Seconds between looks whether the reader may still read."""
MOST = 1000
"""Streams and long polls in one process."""
EVENT_STREAM = "text/event-stream"


def event(name: str, data: Any, event_id: str | None = None) -> bytes:
    """One event, as it goes over the line."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    return b"%bevent: %b\ndata: %b\n\n" % (head.encode(), name.encode(), msgspec.json.encode(data))


BEAT = b": still here\n\n"


def stream(call: Call, events: AsyncIterator[bytes]) -> StreamingResponse:
    """The answer that tells these events."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_counted(call.service, events), headers=headers, media_type=EVENT_STREAM)


async def _counted(service: Service, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    with one_more(service):
        async for each in events:
            yield each


@contextmanager
def one_more(service: Service) -> Iterator[None]:
    """While somebody waits for something to happen."""
    service.waiting += 1
    try:
        yield
    finally:
        service.waiting -= 1


def refuse_crowd(call: Call) -> None:
    """Each stream and each long poll costs; more than so many can't be served well."""
    if call.service.waiting >= MOST:
        raise Throttled(f"{MOST:,} streams and long polls are open here: try again later", wait=5.0)


class Pulse:
    """Keeps time for one stream: when to show life, and when to look whether its reader may still read."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._clock = call.service.clock
        self._beaten = self._checked = self._clock.monotonic()

    @property
    def over(self) -> bool:
        return self._call.service.closing.is_set()

    def beat(self, sent: bool) -> bytes | None:
        """What to send so that nobody on the way thinks the stream dead."""
        now = self._clock.monotonic()
        if sent:
            self._beaten = now
            return None
        if now - self._beaten < HEARTBEAT:
            return None
        self._beaten = now
        return BEAT

    async def allowed(self) -> bool:
        """Whether the reader may still read: a token may have been taken back meanwhile."""
        now = self._clock.monotonic()
        if now - self._checked < CHECK_EVERY:
            return True
        self._checked = now
        try:
            principal = await self._call.service.gate.identify(self._call)
        except HeadwayError:
            return False
        return principal.may(Permission.READ)
