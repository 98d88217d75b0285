"""A PostgreSQL server of our own, in a temporary directory, on a free loopback port.

It works beside any other server, and when its owner ends, however that happens, `guard.py` ends it and removes its
files. Every call blocks.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self

from headway.bench import guard
from headway.clock import SystemClock
from headway.model.errors import ConfigurationError, StoreUnavailable

StopMode = Literal["smart", "fast", "immediate"]

STOP_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}

# Durability is switched on: what is measured or proven must hold for a server as people run it.
DURABLE = {"listen_addresses": "127.0.0.1", "fsync": "on", "synchronous_commit": "on"}

# PostgreSQL refuses to run as root.
ACCOUNT = "postgres" if os.geteuid() == 0 else None

PATIENCE = 60.0


class PrivatePostgres:
    """A private server: started on construction, gone without a trace after `close`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.binaries = find_binaries()
        self.port = free_port()
        # Not $TMPDIR: the path of a Unix socket may have no more than a hundred characters or so.
        self.directory = Path(tempfile.mkdtemp(prefix="headway-postgres-", dir="/tmp"))
        self.data = self.directory / "data"
        self.log = self.directory / "log"
        self.admin_url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self.settings = {**DURABLE, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._guard = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, guard.__file__, str(self.directory)], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            self._initialize()
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def socket_directory(self) -> Path:
        """Where the Unix socket lies, for clients that take `host=<directory>`."""
        return self.directory

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server and return when it takes connections, after crash recovery if it must."""
        if self.running:
            return
        self._process = self._spawn("postgres", "-D", str(self.data))
        wait_until(self._takes_connections, "PostgreSQL to take connections")

    def stop(self, mode: StopMode = "fast") -> None:
        if self._process is not None and self.running:
            self._process.send_signal(STOP_SIGNALS[mode])
            self._process.wait(PATIENCE)

    def close(self) -> None:
        self.stop("immediate")
        self._guard.communicate(timeout=PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _initialize(self) -> None:
        if ACCOUNT:
            shutil.chown(self.directory, ACCOUNT, ACCOUNT)
        options = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale"]
        if self._spawn("initdb", "-D", str(self.data), *options).wait(PATIENCE) != 0:
            raise StoreUnavailable(f"initdb failed: {self._log_tail()}")
        own = {"port": str(self.port), "unix_socket_directories": str(self.directory)}
        lines = [f"{name} = '{value}'\n" for name, value in {**self.settings, **own}.items()]
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.writelines(lines)

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Run a program as our own child: under pg_ctl nobody might reap it, and a dead postmaster
        that is not reaped counts as a running one when it is started again."""
        with self.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - a program that `find_binaries` has found
                [self.binaries / program, *arguments],
                user=ACCOUNT,
                group=ACCOUNT,
                extra_groups=[] if ACCOUNT else None,
                cwd=self.directory,
                env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C at the terminal is for the owner, who then stops the server.
                start_new_session=True,
            )

    def _takes_connections(self) -> bool:
        if not self.running:
            raise StoreUnavailable(f"PostgreSQL did not start: {self._log_tail()}")
        return self._spawn("pg_isready", "-q", "-h", str(self.directory), "-p", str(self.port)).wait(PATIENCE) == 0

    def _log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def find_binaries() -> Path:
    """The directory of the newest PostgreSQL installed."""
    # Debian keeps its versions apart and off the path.
    versions = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if versions:
        return max(versions, key=lambda path: float(path.parent.name))
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    raise ConfigurationError(
        "PostgreSQL is not installed: install it (Debian, Ubuntu: apt-get install postgresql; macOS: brew install "
        "postgresql), or name a server with a URL"
    )


def free_port() -> int:
    """A loopback port below the range that systems give to outgoing connections.

    From within that range, a client that knocks while the server is down may be given the very port
    it knocks at, connect to itself, and keep the server from coming back.
    """
    for port in random.sample(range(15000, 30000), 200):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise StoreUnavailable("no free port on 127.0.0.1")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE
    while not condition():
        if clock.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}")
        threading.Event().wait(0.02)
