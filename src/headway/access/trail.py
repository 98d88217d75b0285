"""Who did what: lines on their way into the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import msgspec
from uuid_utils.compat import uuid7

from headway.clock import Clock, sleep
from headway.model.access import Caller, Entry
from headway.model.errors import StoreUnavailable
from headway.observe.logs import get_logger
from headway.store.contract import Store

T = TypeVar("T")

FLUSH_EVERY = 1.0

log = get_logger("headway.audit")


class Reach(Protocol):
    """The way to a store."""

    async def __call__(self, act: Callable[[Store], Awaitable[T]], /) -> T: ...


def entry(caller: Caller, action: str, thing: str, /, **detail: Any) -> Entry:
    """A new line: who did what to what."""
    return Entry(id=uuid7(), actor=caller.name, action=action, object=thing, address=caller.address, detail=detail)


class Trail:
    """Writes lines: one by one, or, of what happens a thousand times a second, gathered.

    Gathered lines that tell of the same caller and act are one line with a count, written within a second.
    """

    def __init__(self, reach: Reach, clock: Clock) -> None:
        self._reach = reach
        self._clock = clock
        self._gathered: dict[tuple[str, str, str | None], Entry] = {}
        self._flushing: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def write(self, line: Entry) -> None:
        """The line is in the log when this returns."""
        await self._reach(lambda store: store.record([line]))

    def note(self, line: Entry) -> None:
        """The line will be in the log soon. For acts that leave their author's name elsewhere too."""
        key = (line.actor, line.action, line.address)
        first = self._gathered.get(key)
        self._gathered[key] = line if first is None else _folded(first, line)
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_later())

    async def close(self) -> None:
        """Write what is left."""
        if self._flushing is not None:
            self._flushing.cancel()
            with suppress(asyncio.CancelledError):
                await self._flushing
        # Behind a flush that is under way, which was not interrupted.
        await self._flush()

    async def _flush_later(self) -> None:
        try:
            while self._gathered:
                await sleep(self._clock, FLUSH_EVERY)
                await asyncio.shield(self._flush())
        finally:
            self._flushing = None

    async def _flush(self) -> None:
        async with self._turn:
            if self._gathered:
                await self._write_gathered()

    async def _write_gathered(self) -> None:
        lines, self._gathered = self._gathered, {}
        try:
            await self._reach(lambda store: store.record(list(lines.values())))
        except StoreUnavailable as error:
            log.warning("audit.delayed", lines=len(lines), error=str(error))
            for key, line in lines.items():
                later = self._gathered.get(key)
                self._gathered[key] = line if later is None else _folded(line, later)


def _folded(first: Entry, next_: Entry) -> Entry:
    return msgspec.structs.replace(
        first, count=first.count + next_.count, detail={**first.detail, "last": next_.detail.get("last", next_.object)}
    )
