"""Asks Amazon ECS not to take this task away while it holds jobs.

ECS names an agent to its tasks in `ECS_AGENT_URI`. A worker that is taken away all the same loses nothing: it gives its
jobs back, and others begin them anew. This only spares the work done so far.
"""

from __future__ import annotations

import asyncio
import os
import urllib.request
from collections.abc import Callable

import msgspec

from headway.clock import Clock, sleep
from headway.observe.logs import get_logger

AGENT = "ECS_AGENT_URI"
MINUTES = 60
"""For how long a word to the agent holds; it is said again in time."""
EVERY = 5.0
"""Seconds between looks at what the worker holds."""
PATIENCE = 5.0

log = get_logger("headway.worker")


def agent() -> str | None:
    """Where the agent is; None: this is no task of ECS."""
    return os.environ.get(AGENT)


async def protect(uri: str, busy: Callable[[], bool], clock: Clock) -> None:
    """Until cancelled: tell the agent whenever the worker has become busy or idle, and again before it forgets."""
    said: bool | None = None
    said_at = clock.monotonic()
    while True:
        now = busy()
        stale = now and clock.monotonic() - said_at > MINUTES * 60 / 2
        if now is not said or stale:
            try:
                await asyncio.to_thread(_say, uri, now)
                said, said_at = now, clock.monotonic()
            except OSError as error:
                log.warning("worker.unprotected", error=str(error), help="its jobs are given back if it is taken away")
        await sleep(clock, EVERY)


def _say(uri: str, enabled: bool) -> None:
    word = {"ProtectionEnabled": enabled, **({"ExpiresInMinutes": MINUTES} if enabled else {})}
    request = urllib.request.Request(  # noqa: S310 - the agent's address is given by ECS
        f"{uri}/task-protection/v1/state",
        data=msgspec.json.encode(word),
        method="PUT",
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE):  # noqa: S310 - see above
        pass
