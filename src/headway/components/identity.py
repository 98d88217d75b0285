"""Which job a CREATE means: a message may come more than once, and must then mean the same one.

1. The client has chosen the job's id: a UUID of version 7.
2. It hasn't, but the `message_id` is such a UUID: then that is the id.
3. It is another text: an id is derived from it. Jobs are listed, claimed and pruned in the order of the time in their
   ids, so the derived one needs a time too, and it must be the same whenever the message comes again. It is the hour in
   which the message was sent, by its own `timestamp`; else that in which it was first seen. The ids it would have had
   in the hours before are looked for first. Of two deliveries without a `timestamp` that two processes act on at the
   same moment, one before and one after the full hour, neither sees the other: they are two jobs.
4. There is none: each message is a job of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from headway.clock import Clock
from headway.components.messages import Message, Reach
from headway.kinds.bodies import UUID7

HOUR = 3600
REMEMBERED = 24
"""Hours for which a repeated `message_id` is known again, at least."""


class Names:
    """Gives jobs their ids."""

    def __init__(self, reach: Reach, clock: Clock) -> None:
        self._reach = reach
        self._clock = clock

    async def of(self, message: Message) -> UUID | None:
        """The id of the job that a CREATE means; None: a new one."""
        if message.id is not None or "id" in message.payload or not message.message_id:
            return message.id
        return _time_ordered(message.message_id) or await self._derived(message.message_id, message.sent_at)

    async def _derived(self, message_id: str, sent_at: datetime | None) -> UUID:
        ids = candidates(message_id, self._clock.now())
        found = await self._reach.call(lambda store: store.get(ids))
        # One of long ago, or of the future, is no time to sort a job by.
        sent = _at(message_id, sent_at) if sent_at is not None else None
        return chosen(ids, found, sent if sent in ids else None)


def candidates(message_id: str, now: datetime) -> list[UUID]:
    """The ids that this message may have been given, the newest first."""
    return [_at(message_id, now + timedelta(hours=1 - ago)) for ago in range(REMEMBERED + 2)]


def chosen(ids: Sequence[UUID], found: Sequence[object | None], otherwise: UUID | None = None) -> UUID:
    """The one of these candidates that was given; if nothing was found of any, by default that of this hour."""
    # The first of them is of the next hour: another process's clock may be ahead of ours.
    return next((made for made, each in zip(ids, found, strict=True) if each), otherwise or ids[1])


def _at(message_id: str, moment: datetime) -> UUID:
    """The id of a message of that hour."""
    same = hashlib.blake2b(message_id.encode(), digest_size=10).digest()
    return _uuid7(int(moment.timestamp()) // HOUR * HOUR * 1000, same)


def _uuid7(milliseconds: int, same: bytes) -> UUID:
    """RFC 9562: 48 bits of time, the version, and the rest as given."""
    bits = int.from_bytes(same) & ~(0xF << 76) & ~(0x3 << 62)
    return UUID(int=milliseconds << 80 | UUID7 << 76 | 0x2 << 62 | bits)


def _time_ordered(message_id: str) -> UUID | None:
    try:
        given = UUID(message_id)
    except ValueError:
        return None
    return given if given.version == UUID7 else None
