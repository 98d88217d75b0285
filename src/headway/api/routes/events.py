"""Events: what becomes of jobs, as it happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headway.api.call import Call
from headway.api.news import Reader
from headway.api.streaming import EVENT_STREAM, Pulse, event, refuse_crowd, stream
from headway.api.table import Answer, Route
from headway.model.access import Permission
from headway.model.errors import InvalidRequest
from headway.model.events import DELETED, Event
from headway.model.states import State

TURN = 1.0
"""Seconds after which a silent stream looks around."""


class Wanted(msgspec.Struct, kw_only=True):
    """Which events. All conditions must hold."""

    job: Annotated[UUID | None, Meta(description="the id of a job")] = None
    state: Annotated[list[str], Meta(description="states, or deleted")] = []
    kind: Annotated[str | None, Meta(description="a kind of job")] = None
    queue: Annotated[str | None, Meta(description="the name of a queue")] = None
    name: Annotated[str | None, Meta(description="the name of jobs; mail.* for all that begin with mail.")] = None

    def check(self) -> None:
        """Who asks for a state that there isn't would wait for ever."""
        known = [*State, DELETED]
        for state in self.state:
            if state.lower() not in known:
                raise InvalidRequest(f"no event tells of {state!r}: use some of {', '.join(known)}", field="state")

    def fits(self, event: Event) -> bool:
        """Whether this event is wanted."""
        return (
            self.job in {None, event.job_id}
            and self.kind in {None, event.kind}
            and self.queue in {None, event.queue}
            and self._named(event.name)
            and (not self.state or event.event.removeprefix("job.") in {state.lower() for state in self.state})
        )

    def _named(self, name: str) -> bool:
        if self.name is None:
            return True
        return name.startswith(self.name[:-1]) if self.name.endswith("*") else name == self.name


async def events(call: Call) -> Response:
    """`event: job.<state>`, with the job's data; `event: missed` when some could not be told."""
    call.query.check()
    refuse_crowd(call)
    reader = Reader(call.query.fits)
    await call.service.news.join(reader)
    return stream(call, _told(call, reader))


async def _told(call: Call, reader: Reader) -> AsyncIterator[bytes]:
    pulse, news = Pulse(call), call.service.news
    try:
        yield b": connected\n\n"
        while not pulse.over and await pulse.allowed():
            found = await reader.next(call.service.clock, TURN)
            if reader.missed:
                reader.missed = False
                yield event("missed", {})
            for each in found:
                yield event(each.event, each)
            if beat := pulse.beat(bool(found)):
                yield beat
    finally:
        news.leave(reader)


ROUTES = [
    Route(
        method="GET",
        path="/events",
        handler=events,
        permission=Permission.READ,
        summary="What becomes of jobs, as it happens",
        description="Server-sent events: `job.<state>` with the job's id, name, queue, state, outcome and attempt. "
        "Each is told at most once; after a reconnect, look again. `missed` tells a slow reader that some are lost.",
        tag="Events",
        query=Wanted,
        answers=[Answer(words="A stream of events.", content_type=EVENT_STREAM, schema={"type": "string"})],
        problems=[429],
    )
]
