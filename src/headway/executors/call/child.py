"""A child process that runs jobs, one at a time: `python -m headway.executors.call.child module:app FD PARENT`.

It speaks with its parent over the inherited socket FD, so that whatever the user's code prints goes its own way. When
the parent dies, the child dies with all that it has started.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import os
import queue
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from headway.clock import SystemClock
from headway.executors.call import capture
from headway.executors.call.calls import Calls
from headway.executors.call.endings import failed
from headway.executors.call.functions import Registry
from headway.executors.call.messages import (
    LENGTH,
    Advanced,
    Broken,
    Ended,
    Hello,
    News,
    Order,
    Ready,
    Start,
    framed,
    read_order,
)
from headway.executors.call.provider import Provider
from headway.executors.call.threads import Stopped
from headway.executors.contract import Context, Ending, NoCode, Written
from headway.model.errors import ConfigurationError
from headway.model.job import Claim, Progress
from headway.observe import traces

_PR_SET_PDEATHSIG = 1


class App(Protocol):
    """What a child needs of the object that `module:attribute` names."""

    registry: Registry
    services: Provider


def main(argv: list[str]) -> None:
    """Serve the parent until it hangs up."""
    reference, descriptor, parent = argv
    _die_with(int(parent))
    link = _Link(socket.socket(fileno=int(descriptor)))
    hello = link.receive()
    assert isinstance(hello, Hello)
    sys.path[:] = hello.path
    try:
        app = load(reference)
    except BaseException as error:
        link.send(Broken(f"{reference} can't be imported: {type(error).__qualname__}: {error}"))
        return
    link.send(Ready())
    _Child(link, app).serve()


def load(reference: str) -> App:
    """The app that `module:attribute` names. Raises ConfigurationError if it is none."""
    module, _, path = reference.partition(":")
    found: Any = importlib.import_module(module)
    for name in (path or "app").split("."):
        found = getattr(found, name)
    if not isinstance(getattr(found, "registry", None), Registry):
        raise ConfigurationError(f"{reference} is no Headway app but a {type(found).__qualname__}")
    app: App = found
    return app


class _Link:
    """The socket to the parent. Orders are read by a thread, which also sees the parent hang up."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        connection.set_inheritable(False)
        self._connection = connection
        self._lock = threading.Lock()
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self.receive: Callable[[], Order] = self._orders.get
        threading.Thread(target=self._listen, name="headway-parent", daemon=True).start()

    def send(self, message: News) -> None:
        with self._lock:
            self._connection.sendall(framed(message))

    def _listen(self) -> None:
        try:
            while True:
                (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
                self._orders.put(read_order(self._exactly(length)))
        finally:
            # Nobody waits for us any more: go, and take along what the job has started.
            os.killpg(0, signal.SIGKILL)

    def _exactly(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            piece = self._connection.recv(size - len(received))
            if not piece:
                raise EOFError
            received += piece
        return received


class _Child:
    """Runs what the parent sends. One event loop serves all jobs, so that singletons may live on it."""

    def __init__(self, link: _Link, app: App) -> None:
        self._link = link
        self._app = app
        self._here = _Here()
        self._calls = Calls(app.services, self._here, SystemClock())
        self._loop = asyncio.new_event_loop()
        self._job: asyncio.Task[Ending] | None = None
        self._output = os.dup(1)

    def serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        signal.signal(signal.SIGTERM, self._stop)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr] # what is printed is seen at once
        capture.install()
        while True:
            order = self._link.receive()
            assert isinstance(order, Start)
            ending = self._run(order)
            _flush()
            self._link.send(Ended.of(ending))

    def _run(self, order: Start) -> Ending:
        function = self._app.registry.get(order.function)
        if function is None:
            return NoCode(f"a child process that imported the app found no function {order.function!r} in it")
        context = Context(order.claim, timeout=None, emit=self._emit)
        try:
            with _memory_limited(order.memory_limit), traces.within(order.traceparent):
                self._job = self._loop.create_task(self._calls.run(function, order.claim, context))
                return self._loop.run_until_complete(self._job)
        except BaseException as error:  # a stop that came just before or after the job
            return failed(error)
        finally:
            self._job = None

    def _emit(self, news: Progress | Written) -> None:
        if isinstance(news, Progress):
            self._link.send(Advanced(news))
            return
        _flush()
        data = news.data
        while data:
            data = data[os.write(self._output, data) :]

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        """Asked to stop: the parent kills us soon, but the job may clean up before."""
        if self._here.busy:
            raise Stopped
        if self._job is not None:
            self._loop.call_soon_threadsafe(self._job.cancel)


class _Here:
    """Runs plain functions where it stands, in the main thread: nothing else goes on in this process."""

    busy = False

    def place(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def run(self, call: Callable[[], Any], _claim: Claim, _context: Context) -> Any:
        self.busy = True
        try:
            return call()
        finally:
            self.busy = False


@contextmanager
def _memory_limited(limit: int | None) -> Iterator[None]:
    """Let the process grow by at most `limit` bytes."""
    if limit is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space() -> int:
    """Bytes that this process takes; 0 where the system doesn't tell, so that the limit is the whole."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # the job closed it: there is nothing to lose


def _die_with(parent: int) -> None:
    """Have the system kill us when the parent is gone, even if our code hangs. Only Linux can; the socket tells all."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before we could ask


if __name__ == "__main__":
    main(sys.argv[1:])
