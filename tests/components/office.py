"""Components over a store, and somebody who writes to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import msgspec

from headway.client import Client
from headway.components.assembly import ALL, Components, assemble
from headway.components.messages import Handled, Message
from headway.kinds import load_kinds
from headway.kinds.contract import Kind
from headway.model.job import Claim, JobRecord
from headway.model.states import State
from headway.store.lending import Stores
from tests.contract.house import House

BODY = {"kind": "call", "function": "mail.welcome", "args": [42]}


class Office:
    """One process that runs components. What they send lies in `outbox` until it is delivered, or lost."""

    def __init__(self, house: House, only: Collection[str] = ALL, kinds: Mapping[str, Kind] | None = None) -> None:
        self.house = house
        self.client = Client(Stores("sqlite://", house.clock), house.clock)
        self.client.adopt(house.store)
        self.components: Components = assemble(self.client, kinds or load_kinds(), house.clock, only)
        self.outbox: list[Message] = []

    async def second(self, only: Collection[str] = ALL) -> Office:
        """Another process with the same store."""
        return Office(await self.house.second(), only)

    async def tell(self, type_: str, payload: Mapping[str, Any], **outside: Any) -> dict[str, Any]:
        """The reply as the client reads it."""
        return await self.deliver(Message(type=type_, payload=payload, by="bus", **outside))

    async def deliver(self, message: Message) -> dict[str, Any]:
        handled = await self.components.handle(message)
        self.outbox += handled.messages
        return decoded(handled)

    async def post(self) -> None:
        """Deliver what lies in the outbox."""
        while self.outbox:
            reply = await self.deliver(self.outbox.pop(0))
            assert reply["ok"], reply

    async def create(self, body: Mapping[str, Any] = BODY, **outside: Any) -> dict[str, Any]:
        """The job that a CREATE makes, once its SCHEDULE has arrived too."""
        reply = await self.tell("CREATE", body, **outside)
        assert reply["ok"], reply
        await self.post()
        return (await self.tell("STATUS", {"job_id": reply["job"]["id"]}))["job"]  # type: ignore[no-any-return]

    async def refuse(self, type_: str, payload: Mapping[str, Any], **outside: Any) -> dict[str, Any]:
        """What is wrong with a message."""
        reply = await self.tell(type_, payload, **outside)
        assert not reply["ok"], reply
        assert not self.outbox
        return reply["error"]  # type: ignore[no-any-return]

    async def record(self, job_id: str) -> JobRecord:
        return await self.house.get(UUID(job_id))

    async def in_state(self, state: State, **options: Any) -> UUID:
        """A job brought there by legal moves; it is the only one of its queue that is due."""
        house = self.house
        options = {"queue": f"queue {house.new_id()}", **options}
        match state:
            case State.CREATING:
                return await house.submit(hold=True, **options)
            case State.SCHEDULED:
                return await house.submit(**options)
            case State.BLOCKED:
                parent = await house.submit("parent", hold=True)
                return await house.submit(after=(parent,), **options)
            case _:
                claim = await house.running(**options)
                await self._on(claim, state)
                return claim.id

    async def _on(self, claim: Claim, state: State) -> None:
        match state:
            case State.COMPLETED:
                await self.house.complete(claim)
            case State.FAILED:
                await self.house.fail(claim)
            case State.CANCELLED:
                await self.house.give_up(claim)
            case State.CANCELLING:
                assert await self.house.cancel(claim.id) is State.CANCELLING
            case _:
                pass


def decoded(handled: Handled) -> dict[str, Any]:
    reply: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(handled.reply))
    return reply
