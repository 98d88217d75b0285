"""A private PgBouncer in front of a PostgreSQL server, with transaction pooling."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from headway.bench.server import ACCOUNT, PATIENCE, PrivatePostgres, free_port, wait_until

CONFIGURATION = """
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = trust
auth_file = {directory}/users
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = 2000
"""


class PgBouncer:
    """In front of `server`; ends with the block. `pool` is the number of connections it holds per database."""

    def __init__(self, server: PrivatePostgres, pool: int = 20) -> None:
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="headway-pgbouncer-", dir="/tmp"))
        (self.directory / "users").write_text('"postgres" ""\n')
        (self.directory / "pgbouncer.ini").write_text(
            CONFIGURATION.format(
                host="127.0.0.1", port=server.port, own_port=self.port, directory=self.directory, pool=pool
            )
        )
        if ACCOUNT:
            shutil.chown(self.directory, ACCOUNT, ACCOUNT)
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [find_pgbouncer(), self.directory / "pgbouncer.ini"],
                user=ACCOUNT,
                group=ACCOUNT,
                extra_groups=[] if ACCOUNT else None,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._takes_connections, "PgBouncer to take connections")

    def url(self, direct: str) -> str:
        """The same database, through this pooler."""
        return urlsplit(direct)._replace(netloc=f"postgres@127.0.0.1:{self.port}").geturl()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _takes_connections(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"PgBouncer did not start: {(self.directory / 'log').read_text()[-2000:]}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


def find_pgbouncer() -> str:
    # Debian keeps it in sbin, which is not on every user's path.
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise RuntimeError("PgBouncer is not installed; tools/servers installs it")
    return found
