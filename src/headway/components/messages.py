"""Messages as the components see them: what came, what is answered, what is to be sent on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

import msgspec

from headway.components.shapes import error_shape
from headway.model.errors import HeadwayError, StoreUnavailable
from headway.model.submission import Accepted, Submission
from headway.observe import trail
from headway.store.contract import Store

T = TypeVar("T")

Reply = Mapping[str, Any]
"""Plain data and the structs of `shapes.py`; msgspec makes JSON of it."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for."""

    type: str
    payload: Mapping[str, Any] = {}
    id: UUID | None = None
    """The job's, chosen by the client; of a CREATE."""
    message_id: str | None = None
    sent_at: datetime | None = None
    """As the client says."""
    correlation_id: str | None = None
    traceparent: str | None = None
    """The span in which it was sent."""
    by: str | None = None
    """On whose behalf."""
    redelivered: bool = False
    """It may have been acted on before."""


class Handled(msgspec.Struct, frozen=True):
    """What came of a message: an answer, and what others are to be told."""

    reply: Reply
    messages: tuple[Message, ...] = ()
    job_id: UUID | None = None
    """The job that it was about."""


class Component(Protocol):
    """Acts on messages of one type."""

    handles: str
    name: str
    """As the log calls it."""

    async def handle(self, message: Message) -> Handled | None:
        """The outcome; None, and nothing done, if the message is for another. An error in what was asked is an answer;
        `StoreUnavailable` is raised: later, the same message may well succeed."""


class Reach(Protocol):
    """The way to a store, from wherever one is: the client's, by which submits made at the same time share a commit."""

    async def submit(self, job: Submission) -> Accepted: ...

    async def call(self, act: Callable[[Store], Awaitable[T]]) -> T: ...


async def answered(component: Component, message: Message, act: Callable[[Message], Awaitable[Handled]]) -> Handled:
    """Carry out `act`; what is wrong with the message becomes the answer to it."""
    job_id = message.id or _named(message.payload)
    trail.received(component.name, type=message.type, job_id=job_id, correlation_id=message.correlation_id)
    try:
        return await act(message)
    except StoreUnavailable:
        raise
    except HeadwayError as error:
        return Handled({"ok": False, "error": error_shape(error)}, job_id=job_id)


def _named(payload: Mapping[str, Any]) -> UUID | None:
    """The job that a message names, for the log: whether it is an id is looked at where it is acted on."""
    try:
        return UUID(payload.get("job_id") or payload.get("id"))
    except (TypeError, ValueError, AttributeError):
        return None
