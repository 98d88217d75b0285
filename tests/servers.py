"""Real PostgreSQL servers, started by the tests themselves in temporary directories.

`Postgres` hands out databases on some server. `PostgresServer` is a server of our own, which can also be
killed and started again; what it stands on is `headway.bench.server`, which `headway bench` uses too.

Every call blocks. An async test that must go on meanwhile writes `await asyncio.to_thread(server.restart)`.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from urllib.parse import urlsplit

import psutil
import psycopg
from psycopg import sql

from headway.bench.server import PATIENCE, PrivatePostgres, StopMode, find_binaries, free_port, wait_until

__all__ = [
    "Postgres",
    "PostgresServer",
    "StopMode",
    "alive",
    "database_of",
    "find_binaries",
    "free_port",
    "kill_family",
    "wait_until",
]

SETTINGS = {"shared_buffers": "256MB", "max_connections": "400", "max_wal_size": "2GB"}


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


class PostgresServer(PrivatePostgres, Postgres):
    """A private server: started on construction, gone without a trace after `close`."""

    def __init__(self) -> None:
        super().__init__(SETTINGS)

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """End the server as a power cut would, as far as its processes can tell."""
        if self._process is not None and self.running:
            kill_family(psutil.Process(self._process.pid))
            self._process.wait(PATIENCE)


def database_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


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
