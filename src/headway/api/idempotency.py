"""`Idempotency-Key`: a request that makes something may be repeated, and makes it once.

The id of what is made is derived from the key, and the store refuses the same id with another content. So nothing has
to be remembered besides what was made, and nothing can be lost between making it and remembering that it was made.
Keys are each caller's own, and known again for 24 hours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from headway.api.call import Call
from headway.components.identity import candidates, chosen
from headway.model.errors import InvalidRequest
from headway.store.contract import Store

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
KEY = {HEADER: "A text of your own by which a repeat of this request is known for 24 hours: it makes nothing twice."}
_LONGEST = 255
_AT_ONCE = 200


Look = Callable[[Store, list[UUID]], Awaitable[Sequence[object | None]]]
"""What there is of these ids."""


async def named(call: Call, part: str = "", look: Look = lambda store, ids: store.get(ids)) -> UUID | None:
    """The id that this request's key stands for; None without one. `look` finds what was made with it before."""
    if call.header(HEADER) is None:
        return None
    ids = candidates(f"http {call.by} {part} {checked_key(call)}", call.service.clock.now())
    return chosen(ids, await call.store(lambda store: look(store, ids)))


def checked_key(call: Call) -> str:
    """The request's key. Raises InvalidRequest."""
    key = call.header(HEADER) or ""
    if not 1 <= len(key) <= _LONGEST or not key.isprintable():
        raise InvalidRequest(f"{HEADER} must be 1 to {_LONGEST} printable characters", field=HEADER)
    return key


async def named_all(call: Call, count: int) -> list[UUID | None]:
    """The ids of the parts of one request, in order."""
    if call.header(HEADER) is None:
        return [None] * count
    key = checked_key(call)
    ways = [candidates(f"http {call.by} {index} {key}", call.service.clock.now()) for index in range(count)]
    hour = await _hour(call, ways)
    return [ids[hour] for ids in ways]


async def _hour(call: Call, ways: list[list[UUID]]) -> int:
    """Which of its candidates each part has been given, if this request has come before: the same for all of them."""
    for start in range(0, len(ways), _AT_ONCE):
        asked = ways[start : start + _AT_ONCE]
        flat = [job_id for ids in asked for job_id in ids]
        found = await call.store(lambda store, flat=flat: store.get(flat))  # type: ignore[misc]
        hours = [index % len(ways[0]) for index, job in enumerate(found) if job is not None]
        if hours:
            return hours[0]
    # The first of them is of the next hour: another process's clock may be ahead of ours.
    return 1
