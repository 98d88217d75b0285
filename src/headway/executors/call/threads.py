"""Threads for plain functions.

Python can't kill a thread. A function that is to stop is told so (`current().cancelled`) and has an exception raised in
it at its next bytecode; until the function has really ended, whoever runs it keeps waiting. It is never said to have
stopped while it may still run.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import itertools
import queue
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from headway.clock import Clock
from headway.executors.contract import Context
from headway.model.job import Claim
from headway.observe.logs import get_logger

_log = get_logger("headway.call")
_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in_thread.argtypes = (ctypes.c_ulong, ctypes.py_object)
_withdraw = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)


class Stopped(BaseException):
    """Raised inside a function that is to stop. No `Exception`, so that `except Exception` lets it through."""


class Threads:
    """A pool of daemon threads that grows as needed, up to a maximum; beyond it, calls wait for a free thread."""

    def __init__(
        self,
        clock: Clock,
        *,
        maximum: int,
        stuck_after: float = 5.0,
        on_stuck: Callable[[Claim], None] | None = None,
    ) -> None:
        self._clock = clock
        self._maximum = maximum
        self._stuck_after = stuck_after
        self._on_stuck = on_stuck or _report_stuck
        self._waiting: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._places = asyncio.Semaphore(maximum)
        self._numbers = itertools.count(1)
        self._threads = 0
        self._open = 0
        """Calls that wait or run; only the loop's thread changes it."""

    def place(self) -> AbstractAsyncContextManager[None]:
        """A thread's worth of room: whoever holds one need not wait for a thread."""
        return self._places

    async def run(self, call: Callable[[], Any], claim: Claim, context: Context) -> Any:
        """What the call returns or raises.

        Cancelled, it stops the call and waits for its end, however long that takes; then it raises CancelledError,
        unless the call returned all the same. A call that goes on for too long is reported as stuck, once.
        """
        started = _Call(call)
        self._enqueue(started)
        try:
            await started.end()
        except asyncio.CancelledError:
            await self._stop(started, claim, context)
            if started.error is not None:
                raise
        finally:
            self._open -= 1
        if started.error is not None:
            raise started.error
        return started.value

    def close(self) -> None:
        """Let the idle threads end. The pool may be used again."""
        for _ in range(self._threads - self._open):
            self._waiting.put(None)
        self._threads = min(self._threads, self._open)

    def _enqueue(self, call: _Call) -> None:
        self._open += 1
        if self._open > self._threads < self._maximum:
            self._threads += 1
            name = f"headway-{next(self._numbers)}"
            threading.Thread(target=_work, args=(self._waiting,), name=name, daemon=True).start()
        self._waiting.put(call)

    async def _stop(self, call: _Call, claim: Claim, context: Context) -> None:
        context.ask_to_stop()
        call.interrupt()
        timer = self._clock.call_later(self._stuck_after, lambda: self._on_stuck(claim))
        try:
            while not call.ended:
                try:
                    await call.end()
                except asyncio.CancelledError:
                    continue  # told again; it is still true that it has not ended
        finally:
            timer.cancel()


class _Call:
    """One call: made on the loop, run in a thread, its end told to the loop.

    The lock decides whether an interruption still meets the call. Once `_over` is set none is sent, and what was sent
    before is withdrawn: it can't hit the thread's next call.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._context = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._over = False
        self._returned = False
        self.ended = False
        self.value: Any = None
        self.error: BaseException | None = None

    async def end(self) -> None:
        """Wait for the end. Cancelling this wait doesn't touch the call."""
        if not self.ended:
            self._waiter = self._loop.create_future()
            await self._waiter

    def interrupt(self) -> None:
        """Raise `Stopped` in the thread; a call that has not begun won't begin."""
        with self._lock:
            if self._over:
                return
            if self._thread is None:
                self._over = True
                self.error = Stopped()
                self.ended = True
            else:
                _raise_in_thread(self._thread, ctypes.py_object(Stopped))

    def run(self) -> None:
        """In the thread: make the call, unless it was withdrawn."""
        try:
            if not self._begin():
                return
            self._make()
        except Stopped as stopped:  # it came just before or just after the user's code
            self._settle()
            if not self._returned:
                self.error = self.error or stopped
        self._tell()

    def _begin(self) -> bool:
        with self._lock:
            if not self._over:
                self._thread = threading.get_ident()
            return not self._over

    def _make(self) -> None:
        try:
            self.value = self._context.run(self._call)
            self._returned = True
        except BaseException as error:
            self.error = error
        self._settle()

    def _settle(self) -> None:
        """From here on no interruption can come, neither a new one nor one that is under way."""
        while True:
            try:
                with self._lock:
                    self._over = True
                _withdraw(threading.get_ident(), None)
                return
            except Stopped:
                continue  # it was under way; what the call itself gave stands

    def _tell(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _wake(self) -> None:
        self.ended = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _work(waiting: queue.SimpleQueue[_Call | None]) -> None:
    while (call := waiting.get()) is not None:
        call.run()
        del call  # the thread may idle for long: it must not keep arguments and results alive


def _report_stuck(claim: Claim) -> None:
    _log.error("thread.stuck", job_id=str(claim.id), name=claim.name)
