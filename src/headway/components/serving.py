"""Commands from a bus, acted on by the components of this process, and the messages that these send on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from headway.access.trail import Trail
from headway.bus.commands import Answer, Command, Options, serve_commands
from headway.bus.contract import BusUnavailable
from headway.clock import Clock
from headway.components.assembly import Components
from headway.components.messages import Handled, Message
from headway.model.access import Caller
from headway.observe import trail
from headway.observe.logs import get_logger

if TYPE_CHECKING:
    from headway.bus.rabbit.desk import Desk

PRINCIPAL = "bus"
"""Who acts, when a message asks: brokers have users of their own."""
AUDITED = {"CREATE": "jobs.create", "SCHEDULE": "jobs.schedule", "CANCEL": "jobs.cancel"}

Send = Callable[[Command], Awaitable[None]]

log = get_logger("headway.components")


async def serve_components(
    url: str,
    components: Components,
    *,
    options: Options | None = None,
    clock: Clock | None = None,
    audit: Trail | None = None,
) -> Desk:
    """Act on the commands of the broker at this URL until the desk is closed."""
    server = CommandServer(components, audit)
    desk = await serve_commands(url, server, options=options, clock=clock)
    server.opened(desk.send)
    return desk


class CommandServer:
    """The handler that a desk for commands calls (`bus/commands.py`).

    The way to send belongs to the desk, which needs its handler first: until `opened`, what has to be sent waits.
    """

    def __init__(self, components: Components, audit: Trail | None = None) -> None:
        self._components = components
        self._audit = audit
        self._send: asyncio.Future[Send] = asyncio.get_running_loop().create_future()

    def opened(self, send: Send) -> None:
        """From now on messages can be sent."""
        self._send.set_result(send)

    async def __call__(self, command: Command) -> Answer:
        message = _message(command)
        handled = await self._components.handle(message)
        component = self._components.named(message.type)
        self._note(message, handled)
        for follow_up in handled.messages:
            await self._post(component, follow_up)
        job_id, correlation_id = handled.job_id, message.correlation_id
        return Answer(
            handled.reply, lambda: trail.sent(component, type="REPLY", job_id=job_id, correlation_id=correlation_id)
        )

    def _note(self, message: Message, handled: Handled) -> None:
        """For the audit log. Soon is enough: the job itself tells on whose behalf it was made, or changed."""
        if self._audit is not None and message.type in AUDITED and handled.reply.get("ok"):
            caller = Caller(PRINCIPAL, "amqp")
            self._audit.note(caller, AUDITED[message.type], f"jobs/{handled.job_id}")

    async def _post(self, component: str, message: Message) -> None:
        """What can't be sent is not lost: the store knows what is to be done, and the sweep does it."""
        send, job_id = await self._send, message.payload.get("job_id")
        try:
            await send(_command(message))
        except BusUnavailable as error:
            log.warning("message.unsent", component=component, type=message.type, job_id=job_id, error=str(error))
            return
        trail.sent(component, type=message.type, job_id=job_id, correlation_id=message.correlation_id)


def _message(command: Command) -> Message:
    return Message(
        type=command.type,
        payload=command.payload,
        id=command.id,
        message_id=command.message_id,
        sent_at=command.sent_at,
        correlation_id=command.correlation_id,
        traceparent=command.traceparent,
        by=PRINCIPAL,
        redelivered=command.redelivered,
    )


def _command(message: Message) -> Command:
    return Command(
        type=message.type,
        payload=dict(message.payload),
        id=message.id,
        message_id=message.message_id,
        correlation_id=message.correlation_id,
    )
