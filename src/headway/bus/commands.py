"""Commands that come as messages: how one reads, how it is answered. Carried by RabbitMQ only (`bus/rabbit/desk.py`).

    {"type": "CREATE", "id": "0199…", "payload": {"kind": "fetch", "url": "https://…"}}

A client publishes that to the queue `headway.commands` (default exchange) and, if it names `reply_to`, is answered with
the same `correlation_id`: what the handler returned, or `{"ok": false, "error": {"type", "message", "field"?}}`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from headway.clock import Clock
from headway.model.errors import HeadwayError
from headway.observe.logs import get_logger

if TYPE_CHECKING:
    # Only those who carry commands need the driver.
    from headway.bus.rabbit.desk import Desk

QUEUE = "headway.commands"
LARGEST = 1024 * 1024
"""Bytes of a command."""

Reply = Mapping[str, Any]

log = get_logger("headway.bus")


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for. Without an `id` the `message_id` tells a repeat from a second wish."""

    type: str
    payload: dict[str, Any] = {}
    id: UUID | None = None
    """The job's, chosen by the client."""
    message_id: str | None = None
    sent_at: datetime | None = None
    """The message's `timestamp`, if the client has set one."""
    correlation_id: str | None = None
    traceparent: str | None = None
    """The span in which it was sent; a header of the message."""
    redelivered: bool = False
    """It may have been carried out before."""


class Answer(msgspec.Struct, frozen=True):
    """A reply, and what is to be called once the broker has it: never, if nobody has asked for one."""

    reply: Reply
    sent: Callable[[], None] = lambda: None


Handler = Callable[[Command], Awaitable[Reply | Answer]]
"""Carries a command out, for good, and answers it. `StoreUnavailable` means later; any other error is an answer."""


class Malformed(HeadwayError):
    """A message that is no command; `field` names the part to mend."""

    code = "malformed"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class Body(msgspec.Struct, kw_only=True):
    """A command as clients write it."""

    type: str
    payload: dict[str, Any] = {}
    id: UUID | None = None


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How commands are served."""

    at_once: int = 100
    """Commands in hand at a time."""
    give_up: float = 30.0
    """Seconds for which a command that can't be carried out just now is tried again, before it goes to the end of the
    queue."""
    longest: float = 60.0
    """Seconds a handler may take; then it counts as one that can't just now."""
    grace: float = 10.0
    """Seconds for which a stop waits for the commands in hand."""


def parse(body: bytes) -> Body:
    """The command in this message; `Malformed` says what is wrong with it."""
    if len(body) > LARGEST:
        raise Malformed(f"a command may take {LARGEST:,} bytes, this one takes {len(body):,}")
    try:
        return msgspec.json.decode(body, type=Body)
    except msgspec.ValidationError as error:
        field = re.search(r"\$\.(\w+)|field `(\w+)`", str(error))
        raise Malformed(
            f"not a command: {error}", next(filter(None, field.groups()), None) if field else None
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from None


def refusal(error: Exception) -> Reply:
    """The reply to a command that ended in this error. What was not meant for users is not told."""
    if not isinstance(error, HeadwayError):
        return _refusal("internal", "an error inside Headway; its log says more", None)
    return _refusal(error.code, str(error), getattr(error, "field", None))


def _refusal(kind: str, message: str, field: str | None) -> Reply:
    error = {"type": kind, "message": message}
    return {"ok": False, "error": error | ({"field": field} if field else {})}


async def serve_commands(
    url: str, handler: Handler, *, options: Options | None = None, clock: Clock | None = None
) -> Desk:
    """Take commands from the broker at this URL until the desk is closed."""
    from headway.bus.rabbit.desk import open_desk

    return await open_desk(url, handler, options or Options(), clock)
