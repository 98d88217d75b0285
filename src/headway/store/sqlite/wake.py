"""The doorbell of a file: rung behind each commit that makes jobs claimable, heard by every store on the same file.

Each listener binds a Unix datagram socket in a directory beside the file, and whoever rings sends to all sockets
found there. A ring is a hint: one that is lost costs a poll interval, nothing else.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import itertools
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from headway.observe.logs import get_logger

T = TypeVar("T")
OnWake = Callable[[str], None]

LONGEST_PATH = 100
"""Bytes: no system takes much more as the name of a socket."""
LONGEST_RING = 4096
WATCHER = ".watch"
"""How the names of sockets end on which news is heard, not rings."""
EVERYTHING = [""]
"""A ring that names no queue: look everywhere."""

log = get_logger("headway.store")


class Bell:
    """Rings for one file; `path` is None for a database in memory, which nobody else can see."""

    def __init__(self, path: str | None) -> None:
        self._directory = wake_directory(path) if path is not None else None
        self._listeners: list[Ear] = []
        self._lock = threading.Lock()

    def ring(self, queues: Sequence[str]) -> None:
        """Tell the listeners of this bell, and those of all others on the file. From any thread; never waits."""
        for listener in self._all():
            if not listener.call(queues):
                self._remove(listener)
        if self._directory is not None:
            self._ring_others(self._directory, queues)

    def listen(self, on_wake: OnWake) -> Callable[[], None]:
        """`on_wake(queue)` is called on the loop that runs now. Returns what ends it."""
        listener = Ear(asyncio.get_running_loop(), _each(on_wake))
        if self._directory is not None:
            listener.bind(self._directory)
        with self._lock:
            self._listeners.append(listener)
        return lambda: self._remove(listener)

    def close(self) -> None:
        for listener in self._all():
            self._remove(listener)

    def _all(self) -> list[Ear]:
        with self._lock:
            return list(self._listeners)

    def _remove(self, listener: Ear) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
        listener.close()

    def _ring_others(self, directory: Path, queues: Sequence[str]) -> None:
        own = {listener.name for listener in self._all()}
        try:
            found = [other for other in directory.iterdir() if other.name not in own]
        except OSError:
            return
        others = [other for other in found if not other.name.endswith(WATCHER)]
        if others:
            message = msgspec.json.encode(queues)
            send(others, message if len(message) <= LONGEST_RING else msgspec.json.encode(EVERYTHING))


class Listener(Generic[T]):
    """Somebody who is told things, the loop on which, and the socket on which other processes reach it."""

    _numbers = itertools.count()

    def __init__(self, loop: asyncio.AbstractEventLoop, heard: Callable[[Sequence[T]], None]) -> None:
        self.name = f"{os.getpid()}-{next(self._numbers)}-{secrets.token_hex(3)}"
        self._loop = loop
        self._heard = heard
        self._socket: socket.socket | None = None
        self._path: Path | None = None

    def bind(self, directory: Path) -> None:
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._path = directory / self.name
            while not self._settled(self._socket, self._path):
                log.debug("store.wake_directory_gone", directory=str(directory))
            self._loop.add_reader(self._socket, self._receive)
        except OSError as error:
            # Without a socket the store still works: others are heard of by polling.
            log.warning("store.no_wake_socket", directory=str(directory), error=str(error))
            self._unbind()

    def _settled(self, own: socket.socket, path: Path) -> bool:
        """False when whoever left last has just taken the directory along."""
        make_private(path.parent)
        try:
            own.bind(str(path))
        except FileNotFoundError:
            return False
        return True

    def call(self, things: Sequence[T]) -> bool:
        """Call on the listener's own loop; False when that loop is gone."""
        try:
            self._loop.call_soon_threadsafe(self._heard, things)
        except RuntimeError:
            return False
        return True

    def close(self) -> None:
        if self._socket is not None and not self._loop.is_closed():
            if _running_loop() is self._loop:
                self._loop.remove_reader(self._socket)
            else:
                self._loop.call_soon_threadsafe(self._loop.remove_reader, self._socket)
        self._unbind()

    def _unbind(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            leave(self._path.parent)
        self._socket = self._path = None

    def _receive(self) -> None:
        """Something has come in on the socket."""
        raise NotImplementedError


class Ear(Listener[str]):
    """Hears rings."""

    def _receive(self) -> None:
        """Everything that has come in, as one ring."""
        heard: set[str] = set()
        try:
            while self._socket is not None:
                heard.update(msgspec.json.decode(self._socket.recv(LONGEST_RING + 1), type=list[str]))
        except (BlockingIOError, InterruptedError):
            pass
        except (OSError, msgspec.DecodeError) as error:
            log.debug("store.bad_ring", error=str(error))
        self._heard(sorted(heard))


def _each(on_wake: OnWake) -> Callable[[Sequence[str]], None]:
    def heard(queues: Sequence[str]) -> None:
        for queue in queues:
            on_wake(queue)

    return heard


def wake_directory(path: str) -> Path:
    """Beside the file, or, where that makes too long a name for a socket, among the temporary files."""
    real = os.path.realpath(path)
    beside = Path(f"{real}-wake")
    if len(os.fsencode(beside)) + 32 <= LONGEST_PATH:
        return beside
    digest = hashlib.blake2b(os.fsencode(real), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir()) / f"headway-{os.getuid()}-{digest}"


def make_private(directory: Path) -> None:
    """A directory of our own. One that another user made in our place is not to be trusted."""
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.stat().st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "the directory belongs to another user", str(directory))


def leave(directory: Path) -> None:
    """Whoever is the last one takes it along."""
    try:
        directory.rmdir()
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
            log.warning("store.wake_directory_left", directory=str(directory), error=str(error))


def send(sockets: Sequence[Path], message: bytes) -> None:
    """To each of these sockets; those that nobody listens to any more are removed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for path in sockets:
            try:
                sender.sendto(message, str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
            except OSError as error:
                # Full: it has rings enough. Gone: it needs none.
                log.debug("store.ring_lost", listener=path.name, error=str(error))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
