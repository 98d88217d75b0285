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


class _Gathered(msgspec.Struct):
    """What one caller has done again and again."""

    first: Entry
    count: int = 1
    last: str | None = None

    def line(self) -> Entry:
        if self.last is None:
            return self.first
        return msgspec.structs.replace(self.first, count=self.count, detail={"last": self.last})


class Trail:
    """Writes lines: one by one, or, of what happens a thousand times a second, gathered.

    Gathered lines that tell of the same caller and act are one line with a count, written within a second.
    """

    def __init__(self, reach: Reach, clock: Clock) -> None:
        self._reach = reach
        self._clock = clock
        self._gathered: dict[tuple[Caller, str], _Gathered] = {}
        self._flushing: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def write(self, line: Entry) -> None:
        """The line is in the log when this returns."""
        await self._reach(lambda store: store.record([line]))

    def note(self, caller: Caller, action: str, thing: str) -> None:
        """A line will be in the log soon. For acts that leave their author's name elsewhere too."""
        gathered = self._gathered.get((caller, action))
        if gathered is None:
            self._gathered[caller, action] = _Gathered(entry(caller, action, thing))
        else:
            gathered.count += 1
            gathered.last = thing
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
            await self._reach(lambda store: store.record([each.line() for each in lines.values()]))
        except StoreUnavailable as error:
            log.warning("audit.delayed", lines=len(lines), error=str(error))
            for key, line in lines.items():
                if (later := self._gathered.get(key)) is not None:
                    line.count += later.count
                    line.last = later.last or later.first.object
                self._gathered[key] = line
