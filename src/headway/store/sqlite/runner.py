"""Who carries operations out: threads of our own with group commit, or, in the simulator, the caller itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

import msgspec

from headway.model.errors import StoreUnavailable
from headway.observe.logs import get_logger
from headway.store.sqlite.session import Operation, Outcome, Session

T = TypeVar("T")
Hook = Callable[[], Awaitable[None]]

BATCH = 1000
"""Operations that share a commit, at most: those who wait for it shouldn't wait long."""

log = get_logger("headway.store")


class Runner(Protocol):
    """Runs operations for one driver."""

    def attach(self, connect: Callable[[], Session], *, readers: bool) -> None:
        """`connect` makes a session; `readers`: reads may have one of their own."""

    async def write(self, operation: Operation[T]) -> T: ...
    async def read(self, operation: Operation[T]) -> T: ...
    async def close(self) -> None: ...
    def sessions(self) -> int:
        """How many are open."""


class ThreadRunner:
    """A writer thread and a reader thread, started when first used. May be called from any loop and any thread."""

    def __init__(self) -> None:
        self._writer: _Desk | None = None
        self._reader: _Desk | None = None

    def attach(self, connect: Callable[[], Session], *, readers: bool) -> None:
        self._writer = _Desk("headway-write", connect, Session.write)
        self._reader = _Desk("headway-read", connect, Session.read) if readers else None

    async def write(self, operation: Operation[T]) -> T:
        assert self._writer is not None
        return await self._writer.ask(operation)

    async def read(self, operation: Operation[T]) -> T:
        desk = self._reader or self._writer
        assert desk is not None
        return await desk.ask(operation)

    async def close(self) -> None:
        for desk in (self._reader, self._writer):
            if desk is not None:
                await desk.close()

    def sessions(self) -> int:
        return sum(desk is not None and desk.open for desk in (self._reader, self._writer))


class InlineRunner:
    """No threads: each operation is a transaction of its own, carried out where it is called.

    `before` and `after` are awaited around each: there the simulator lets time pass, or ends the caller. Several
    stores may share one driver that runs inline, as processes share a file.
    """

    def __init__(self, before: Hook | None = None, after: Hook | None = None) -> None:
        self._before = before
        self._after = after
        self._connect: Callable[[], Session] | None = None
        self._session: Session | None = None

    def attach(self, connect: Callable[[], Session], *, readers: bool) -> None:
        self._connect = connect

    async def write(self, operation: Operation[T]) -> T:
        if self._before:
            await self._before()
        [outcome] = self._open().write([operation])
        if self._after:
            await self._after()
        if outcome.error:
            raise outcome.error
        result: T = outcome.result
        return result

    async def read(self, operation: Operation[T]) -> T:
        return await self.write(operation)

    async def close(self) -> None:
        if self._session:
            self._session.close()
        self._connect = self._session = None

    def sessions(self) -> int:
        return int(self._session is not None)

    def _open(self) -> Session:
        if self._session is None:
            if self._connect is None:
                raise StoreUnavailable("the store is closed")
            self._session = self._connect()
        return self._session


class _Call(msgspec.Struct, frozen=True):
    """An operation on its way, and the future of the caller's own loop."""

    operation: Operation[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class _Desk:
    """A thread with a session. What comes in while it works is done together as the next batch."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], Session],
        act: Callable[[Session, Sequence[Operation[Any]]], list[Outcome]],
    ) -> None:
        self._name = name
        self._connect = connect
        self._act = act
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._session: Session | None = None

    @property
    def open(self) -> bool:
        return self._session is not None and not self._closed

    async def ask(self, operation: Operation[T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        # Under lock: what is put behind the last call is never answered.
        with self._lock:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            if self._thread is None:
                self._start()
            self._calls.put(_Call(operation, future, loop))
        return await future

    async def close(self) -> None:
        with self._lock:
            self._closed, thread = True, self._thread
            self._calls.put(None)
        if thread is not None:
            await asyncio.to_thread(thread.join)

    def _start(self) -> None:
        # A daemon: a program that forgets to close its store must still be able to end.
        self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        going_on = True
        while going_on:
            batch, going_on = self._drain()
            # Those who gave up waiting before it began want it no more.
            batch = [call for call in batch if not call.future.cancelled()]
            if batch:
                _hand_back(batch, self._carry_out([call.operation for call in batch]))
        if self._session is not None:
            self._session.close()

    def _drain(self) -> tuple[list[_Call], bool]:
        """Wait for a call, and take all that are there; False with the last ones."""
        batch: list[_Call] = []
        call = self._calls.get()
        try:
            while call is not None:
                batch.append(call)
                if len(batch) == BATCH:
                    return batch, True
                call = self._calls.get_nowait()
        except Empty:
            return batch, True
        return batch, False

    def _carry_out(self, operations: list[Operation[Any]]) -> list[Outcome]:
        try:
            if self._session is None:
                self._session = self._connect()
            return self._act(self._session, operations)
        except Exception as error:  # whatever it is, the callers must hear of it and the thread must live
            return [Outcome(error=error) for _ in operations]


def _hand_back(batch: Sequence[_Call], outcomes: Sequence[Outcome]) -> None:
    """Wake each loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Outcome]]] = {}
    for call, outcome in zip(batch, outcomes, strict=True):
        loops.setdefault(call.loop, []).append((call.future, outcome))
    for loop, done in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, done)
        except RuntimeError:
            log.debug("store.caller_gone", operations=len(done))


def _resolve(done: Sequence[tuple[asyncio.Future[Any], Outcome]]) -> None:
    for future, outcome in done:
        if future.done():
            continue
        if outcome.error is not None:
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome.result)
