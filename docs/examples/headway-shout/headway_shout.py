"""Jobs of kind `shout`: `{"kind": "shout", "text": "hey"}`. How they are asked for, and how they are run."""

from __future__ import annotations

import logging
from typing import Annotated, Any
from uuid import UUID

import msgspec

from headway.executors.contract import Answer, Completed, Context, Defaults, Failed, Running, Scheduled, Setup
from headway.kinds.contract import Functions, Prepared
from headway.model.job import Claim, ErrorInfo
from headway.model.retry import Failure, Retry

log = logging.getLogger("headway_shout")


class Fields(msgspec.Struct, frozen=True):
    """What the body of such a job has besides what all bodies have."""

    text: Annotated[str, msgspec.Meta(description='a text to shout, such as "hey"')]
    seconds: Annotated[float, msgspec.Meta(ge=0, description="how long it is heard")] = 0.0
    rest: Annotated[float, msgspec.Meta(ge=0, description="seconds of silence before it")] = 0.0


class ShoutKind:
    """How one is asked for, wherever jobs are submitted: library, REST, command line, RabbitMQ."""

    name = "shout"
    fields = Fields
    private: frozenset[str] = frozenset()

    async def prepare(self, fields: Fields, functions: Functions) -> Prepared:
        return Prepared(payload=msgspec.json.encode(fields).decode(), name=f"shout {fields.text}"[:200])


class Shout:
    """How one is run, by a worker: in an outside system that takes its time, or at once."""

    kind = "shout"
    defaults = Defaults(timeout=60, retry=Retry(max_attempts=3, wait=0.01))

    def __init__(self, setup: Setup) -> None:
        self._clock = setup.clock
        self._rested: set[UUID] = set()
        self._heard_until: dict[UUID, float] = {}

    async def start(self) -> None:
        """Nothing to prepare."""

    async def submit(self, claim: Claim, context: Context) -> Answer:
        fields = msgspec.json.decode(claim.payload, type=Fields)
        if not fields.text:
            words = "there is nothing to shout"
            return Failed(error=ErrorInfo("Silence", words), failure=Failure(type="Silence", message=words))
        if fields.rest and claim.id not in self._rested:
            self._rested.add(claim.id)
            return Scheduled(fields.rest)
        self._heard_until[claim.id] = self._clock.monotonic() + fields.seconds
        return await self.poll(claim, context)

    async def poll(self, claim: Claim, context: Context) -> Answer:
        if self._clock.monotonic() < self._heard_until[claim.id]:
            return Running(every=0.02)
        del self._heard_until[claim.id]
        return Completed(msgspec.json.encode(_text(claim).upper()))

    async def cancel(self, claim: Claim, context: Context) -> None:
        del self._heard_until[claim.id]
        log.warning("silenced %s", claim.id)

    async def close(self) -> None:
        """Nothing to let go of."""


def _text(claim: Claim) -> Any:
    return msgspec.json.decode(claim.payload)["text"]
