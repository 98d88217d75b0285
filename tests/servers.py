"""Real PostgreSQL servers, started by the tests themselves in temporary directories.

`Postgres` hands out databases on some server. `PostgresServer` is a server of our own, which can also be
killed and started again. It works beside any other server: it has a port and a directory to itself. When
its owner ends, even by SIGKILL, a small guard process (this file, run as a script) ends it and removes its
files.

Every call blocks. An async test that must go on meanwhile writes `await asyncio.to_thread(server.restart)`.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

import psutil
import psycopg
from psycopg import sql

StopMode = Literal["smart", "fast", "immediate"]

STOP_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}

# Durability is switched on: what the tests prove must hold for a server as people run it.
SETTINGS = """
listen_addresses = '127.0.0.1'
fsync = on
synchronous_commit = on
shared_buffers = 256MB
max_connections = 400
max_wal_size = 2GB
"""

# PostgreSQL refuses to run as root.
ACCOUNT = "postgres" if os.geteuid() == 0 else None

PATIENCE = 60.0


class Postgres:
    """Databases on a PostgreSQL server that somebody else runs, reached with the rights to create them."""

    def __init__(self, admin_url: str) -> None:
        self.admin_url = admin_url

    def url(self, database: str) -> str:
        return urlsplit(self.admin_url)._replace(path=f"/{database}").geturl()

    def create_database(self, template: str | None = None) -> str:
        """Create a database and return its URL: empty, or a copy of the one at the URL `template`.

        Nobody may be connected to the template while it is copied.
        """
        name = f"headway_{secrets.token_hex(6)}"
        # template0 and not template1: nobody can be connected to it, so parallel copies never fail.
        source = database_of(template) if template else "template0"
        self._execute("CREATE DATABASE {} TEMPLATE {}", name, source)
        return self.url(name)

    def drop_database(self, url: str) -> None:
        self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", database_of(url))

    def _execute(self, statement: str, *names: str) -> None:
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


class PostgresServer(Postgres):
    """A private server: started on construction, gone without a trace after `close`."""

    def __init__(self) -> None:
        self.binaries = find_binaries()
        self.port = free_port()
        # Not $TMPDIR: the path of a Unix socket may have no more than a hundred characters or so.
        self.directory = Path(tempfile.mkdtemp(prefix="headway-postgres-", dir="/tmp"))
        self.data = self.directory / "data"
        self.log = self.directory / "log"
        super().__init__(f"postgresql://postgres@127.0.0.1:{self.port}/postgres")
        self._process: subprocess.Popen[bytes] | None = None
        self._guard = subprocess.Popen(
            [sys.executable, __file__, str(self.directory)], stdin=subprocess.PIPE, start_new_session=True
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

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """End the server as a power cut would, as far as its processes can tell."""
        if self._process is not None and self.running:
            kill_family(psutil.Process(self._process.pid))
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
            raise RuntimeError(f"initdb failed: {self._log_tail()}")
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS)
            settings.write(f"port = {self.port}\nunix_socket_directories = '{self.directory}'\n")

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Run a program as our own child: under pg_ctl nobody might reap it, and a dead postmaster
        that is not reaped counts as a running one when it is started again."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [self.binaries / program, *arguments],
                user=ACCOUNT,
                group=ACCOUNT,
                extra_groups=[] if ACCOUNT else None,
                cwd=self.directory,
                env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C at the terminal is for pytest; the server is stopped by the fixture.
                start_new_session=True,
            )

    def _takes_connections(self) -> bool:
        if not self.running:
            raise RuntimeError(f"PostgreSQL did not start: {self._log_tail()}")
        try:
            psycopg.connect(self.admin_url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def database_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def find_binaries() -> Path:
    """The directory of the newest PostgreSQL installed."""
    # Debian keeps its versions apart and off the path.
    versions = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if versions:
        return max(versions, key=lambda path: float(path.parent.name))
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    raise RuntimeError("PostgreSQL is not installed; tools/servers installs it")


def free_port() -> int:
    """A loopback port below the range that systems give to outgoing connections.

    From within that range, a client that knocks while the server is down may be given the very port
    it knocks at, connect to itself, and keep the server from coming back.
    """
    for port in random.sample(range(15000, 30000), 200):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port on 127.0.0.1")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}")
        time.sleep(0.02)


def kill_family(postmaster: psutil.Process) -> None:
    """SIGKILL a postmaster and all its children: a backend left over would keep the shared memory
    in use, and the server could not start again."""
    # Held first, so that it can't fork another child after we have looked.
    postmaster.suspend()
    wait_until(lambda: postmaster.status() == psutil.STATUS_STOPPED, "the postmaster to hold")
    family = [*postmaster.children(recursive=True), postmaster]
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    wait_until(lambda: not any(map(alive, family)), "the killed server to end")


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def guard(directory: Path) -> None:
    """Wait until the owner closes our standard input, if only by dying; then remove its server."""
    sys.stdin.read()
    with suppress(OSError, ValueError, psutil.NoSuchProcess):
        postmaster = psutil.Process(int((directory / "data/postmaster.pid").read_text().split()[0]))
        # The file outlives a killed server, and its number may belong to a stranger by now.
        if str(directory / "data") in postmaster.cmdline():
            kill_family(postmaster)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
