"""Waiting for something to become true, instead of sleeping and hoping."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE = 60.0
LOOK_EVERY = 0.01


async def until(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """What the condition gives once it is true; it may be async."""
    ends = time.monotonic() + patience
    while True:
        found = condition()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        assert time.monotonic() < ends, f"waited {patience:g} s for {what}"
        await asyncio.sleep(LOOK_EVERY)


def block_until(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """The same for plain tests."""
    ends = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < ends, f"waited {patience:g} s for {what}"
        time.sleep(LOOK_EVERY)
    return found
