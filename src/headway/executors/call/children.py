"""Child processes: for functions with `process=True`, and for jobs suspected of killing their worker.

A child runs one job at a time and is used again, unless it had to be stopped or served a suspect. It leads a process
group of its own: to stop a job is to kill the group, and the job has ended when the child is seen dead.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from headway.clock import Clock, Timer
from headway.executors.call.endings import timed_out
from headway.executors.call.functions import Function
from headway.executors.call.messages import (
    LENGTH,
    Advanced,
    Broken,
    Ended,
    Hello,
    News,
    Order,
    Start,
    framed,
    read_news,
)
from headway.executors.contract import NOT_YET, Completed, Context, Ending, Lost, NoCode
from headway.model.job import Claim, ErrorInfo
from headway.observe import traces
from headway.observe.logs import get_logger

_log = get_logger("headway.call")
_READ = 64 * 1024


class Children:
    """A pool of child processes that have imported the app."""

    def __init__(
        self, app_reference: str, clock: Clock, *, maximum: int = 4, grace: float = 1.0, recycle: int = 1000
    ) -> None:
        self._app = app_reference
        self._clock = clock
        self._grace = grace
        self._recycle = recycle
        self._places = asyncio.Semaphore(maximum)
        self._idle: list[Child] = []
        self._all: set[Child] = set()

    async def run(self, function: Function, claim: Claim, context: Context) -> Ending:
        """Run a job in a child; in a fresh one if it has to be alone.

        Cancelled, it raises CancelledError when the child is seen dead, unless the job completed before.
        """
        if self._places.locked():
            context.began = NOT_YET
        async with self._places:
            child = None
            context.began = self._clock.monotonic()
            try:
                child = await self._child(fresh=context.alone)
                run = _Run(child, self._clock, self._grace, context)
                return await run.to_end(Start(claim, function.name, function.options.memory_limit, traces.current()))
            except _NotStarted as error:
                return NoCode(str(error))
            finally:
                if child is not None:
                    await self._put_back(child, context)

    async def close(self) -> None:
        """Kill all children and see them dead."""
        self._idle.clear()
        await asyncio.gather(*(child.kill() for child in list(self._all)))

    async def _child(self, *, fresh: bool) -> Child:
        while self._idle and not fresh:
            child = self._idle.pop()
            if child.alive:
                return child
            await self._discard(child)
        child = Child.spawn(self._app)
        self._all.add(child)
        try:
            await child.greet()
        except BaseException:
            await self._discard(child)
            raise
        return child

    async def _put_back(self, child: Child, context: Context) -> None:
        child.served += 1
        if child.alive and not child.stopping and not context.alone and child.served < self._recycle:
            self._idle.append(child)
            return
        await self._discard(child)

    async def _discard(self, child: Child) -> None:
        self._all.discard(child)
        await _surely(child.kill())


class _NotStarted(Exception):
    """No child could be made: the job has not begun."""


class _Run:
    """One job in one child."""

    def __init__(self, child: Child, clock: Clock, grace: float, context: Context) -> None:
        self._child = child
        self._clock = clock
        self._grace = grace
        self._context = context
        self._expired = False
        self._timers: list[Timer] = []

    async def to_end(self, start: Start) -> Ending:
        self._child.output = self._context.write
        task = asyncio.ensure_future(self._follow(start))
        if self._context.timeout is not None:
            self._later(self._context.timeout, self._expire)
        try:
            return await self._ending(task)
        finally:
            for timer in self._timers:
                timer.cancel()
            self._child.output = None

    async def _ending(self, task: asyncio.Task[Ending]) -> Ending:
        told_to_stop = False
        while not task.done():
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError:
                told_to_stop = True
                self._context.ask_to_stop()
                self._stop()
        ending = task.result()
        if isinstance(ending, Completed):
            return ending
        if told_to_stop:
            await _surely(self._child.kill())
            raise asyncio.CancelledError("the child process was stopped")
        if self._expired:
            await self._child.kill()
            assert self._context.timeout is not None
            return timed_out(self._context.timeout)
        return ending

    async def _follow(self, start: Start) -> Ending:
        """Send the job and take what the child says, until its end or the child's."""
        try:
            self._child.send(start)
            while True:
                match await self._child.news():
                    case Advanced(progress):
                        self._context.progress(progress.done, progress.total, progress.text)
                    case Ended() as ended:
                        self._child.drain()
                        return ended.ending()
                    case other:
                        raise AssertionError(f"a child at work said {other}")
        except (EOFError, ConnectionError):
            await self._child.dead()
            self._child.drain()
            return Lost(ErrorInfo("ChildDied", f"the child process that ran the job {self._child.how_it_died()}"))

    def _expire(self) -> None:
        self._expired = True
        self._stop()

    def _stop(self) -> None:
        """Ask the job to stop, and kill it if it doesn't."""
        if not self._child.stopping:
            self._child.stopping = True
            self._child.signal(signal.SIGTERM)
            self._later(self._grace, self._child.kill_group)

    def _later(self, delay: float, act: Callable[[], None]) -> None:
        self._timers.append(self._clock.call_later(delay, act))


class Child:
    """A child process, its socket and its output."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._loop = asyncio.get_running_loop()
        self._dead = asyncio.Event()
        self._status: int | None = None
        self._closed = False
        self.output: Callable[[bytes], None] | None = None
        """Takes what the child prints, while it runs a job."""
        self.served = 0
        self.stopping = False
        assert process.stdout is not None
        self._pipe = process.stdout.fileno()
        os.set_blocking(self._pipe, False)
        self._loop.add_reader(self._pipe, self.drain)
        threading.Thread(target=self._watch, name=f"headway-child-{process.pid}", daemon=True).start()

    @classmethod
    def spawn(cls, app_reference: str) -> Child:
        """Start a process, in a session and group of its own."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        command = [sys.executable, "-m", "headway.executors.call.child", app_reference]
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*command, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        return cls(process, ours)

    async def greet(self) -> None:
        """Wait until the child has imported the app. Raises _NotStarted."""
        self._reader, self._writer = await asyncio.open_connection(sock=self._connection)
        printed = bytearray()
        self.output = printed.extend
        try:
            self.send(Hello([entry or str(Path.cwd()) for entry in sys.path]))
            answer = await self.news()
        except (EOFError, ConnectionError):
            await self.dead()
            self.drain()
            tail = bytes(printed[-2000:]).decode("utf-8", "replace")
            raise _NotStarted(f"a child process could not start: it {self.how_it_died()}. {tail}".strip()) from None
        finally:
            self.output = None
        if isinstance(answer, Broken):
            raise _NotStarted(answer.reason)

    @property
    def alive(self) -> bool:
        return not self._dead.is_set()

    def send(self, message: Order) -> None:
        assert self._writer is not None
        self._writer.write(framed(message))

    async def news(self) -> News:
        """The next message. Raises EOFError when the child is gone."""
        assert self._reader is not None
        (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
        try:
            news: News = read_news(await self._reader.readexactly(length))
        except msgspec.MsgspecError as error:
            raise EOFError("the job wrote on the socket of its child process") from error
        return news

    def drain(self) -> None:
        """Pass on all that the child has printed so far."""
        while not self._closed:
            try:
                printed = os.read(self._pipe, _READ)
            except BlockingIOError:
                return
            except OSError:
                printed = b""
            if not printed:
                self._loop.remove_reader(self._pipe)
                return
            if self.output is not None:
                self.output(printed)

    def signal(self, number: int) -> None:
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def kill_group(self) -> None:
        """Kill the child and all that it has started and that stayed in its group."""
        if self.alive:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def kill(self) -> None:
        """Kill the group, and see the child dead."""
        self.stopping = True
        self.kill_group()
        await self.dead()
        self._close()

    async def dead(self) -> None:
        """Wait until the child is seen dead."""
        await self._dead.wait()

    def how_it_died(self) -> str:
        """A predicate for people: by which signal, or with which exit code."""
        status = self._status or 0
        if status >= 0:
            return f"ended by itself with exit code {status}"
        name = signal.Signals(-status).name if -status in set(signal.Signals) else "a signal"
        hint = ", perhaps because the machine was out of memory" if status == -signal.SIGKILL else ""
        return f"was killed by {name} ({-status}){hint}"

    def _watch(self) -> None:
        """In a thread: wait for the death. The group is killed before the child is reaped, while its id can't be
        anyone else's."""
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._status = self._process.wait()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._seen_dead)

    def _seen_dead(self) -> None:
        self._dead.set()
        # A process that the job has forked and that left the group may still hold the other end.
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RD)

    def _close(self) -> None:
        if self._closed:
            return
        self.drain()
        self._closed = True
        self._loop.remove_reader(self._pipe)
        assert self._process.stdout is not None
        self._process.stdout.close()
        if self._writer is not None:
            self._writer.close()
        else:
            self._connection.close()


async def _surely(act: Coroutine[Any, Any, None]) -> None:
    """Await `act` to its end although we are cancelled meanwhile; the cancellation then goes on."""
    task = asyncio.ensure_future(act)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError
