"""Where is measured: stores made, copied, filled and thrown away, for one engine."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from headway.bench.bare import sqlite as bare_sqlite
from headway.clock import Clock, SystemClock
from headway.model.errors import ConfigurationError
from headway.store import make_store


class Site(Protocol):
    """Stores of one engine. `bare` is the module whose roles play without Headway."""

    name: str
    bare: str

    async def settings(self) -> dict[str, str]:
        """What the engine is and how it is set, for the header of the report."""

    async def fresh(self) -> str:
        """The URL of an empty store with the schema."""

    async def copy(self, url: str) -> str:
        """The URL of a store with the same rows. Nobody may be using the original."""

    async def drop(self, url: str) -> None: ...

    async def fill(self, url: str, what: str, count: int) -> None:
        """Rows by the million, put there by the engine itself: `fill_future`, `fill_finished` or `fill_full_key`."""

    async def completed(self, url: str) -> int:
        """How many jobs the store shows as completed."""

    async def transactions(self, url: str) -> int | None:
        """How many the store has seen so far; None where nobody counts them."""


class SqliteSite:
    """Files in a directory."""

    name = "SQLite"
    bare = "bare.sqlite"

    def __init__(self, directory: Path, clock: Clock | None = None) -> None:
        self._directory = directory
        self._clock = clock or SystemClock()

    async def settings(self) -> dict[str, str]:
        pragmas = dict(pragma.removeprefix("pragma ").split(" = ") for pragma in bare_sqlite.PRAGMAS)
        return {"version": sqlite3.sqlite_version, **pragmas}

    async def fresh(self) -> str:
        url = self._new()
        store = make_store(url)
        await store.open()
        await store.close()
        return url

    async def copy(self, url: str) -> str:
        with bare_sqlite.connect(url) as connection:
            connection.execute("pragma wal_checkpoint(truncate)")
        connection.close()
        copy = self._new()
        shutil.copyfile(bare_sqlite.path_of(url), bare_sqlite.path_of(copy))
        return copy

    async def drop(self, url: str) -> None:
        path = Path(bare_sqlite.path_of(url))
        for left in path.parent.glob(f"{path.name}*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()

    async def fill(self, url: str, what: str, count: int) -> None:
        connection = bare_sqlite.connect(url)
        connection.create_function("id_at", 2, _id_at)
        connection.execute(bare_sqlite.SQL[what].text, (count, bare_sqlite.now_us()))
        connection.execute("pragma wal_checkpoint(truncate)")
        connection.close()

    async def completed(self, url: str) -> int:
        connection = bare_sqlite.connect(url)
        [(jobs,)] = connection.execute(bare_sqlite.SQL["count_completed"].text).fetchall()
        connection.close()
        return int(jobs)

    async def transactions(self, url: str) -> int | None:
        return None

    def _new(self) -> str:
        return f"sqlite:///{self._directory}/{secrets.token_hex(4)}.db"


class PostgresSite:
    """Databases on a server on which we may create them."""

    name = "PostgreSQL"
    bare = "bare.postgres"

    def __init__(self, admin_url: str) -> None:
        self._admin_url = admin_url
        self._empty: str | None = None

    async def settings(self) -> dict[str, str]:
        names = ("fsync", "synchronous_commit", "shared_buffers", "max_wal_size", "max_connections")
        version = str(await self._value("show server_version"))
        return {"version": version.partition(" ")[0], **{name: await self._value(f"show {name}") for name in names}}

    async def fresh(self) -> str:
        if self._empty is None:
            self._empty = await self._create("template0")
            store = make_store(self._empty)
            await store.migrate()
            await store.close()
        return await self.copy(self._empty)

    async def copy(self, url: str) -> str:
        return await self._create(_database(url))

    async def drop(self, url: str) -> None:
        await self._execute(f'drop database if exists "{_database(url)}" with (force)')

    async def fill(self, url: str, what: str, count: int) -> None:
        from headway.bench.bare.postgres import SQL

        connection = await _connect(url)
        await connection.execute(SQL[what].text, count)
        await connection.close()

    async def completed(self, url: str) -> int:
        from headway.bench.bare.postgres import SQL

        connection = await _connect(url)
        jobs: int = await connection.fetchval(SQL["count_completed"].text)
        await connection.close()
        return jobs

    async def transactions(self, url: str) -> int | None:
        return int(
            await self._value(
                "select xact_commit + xact_rollback from pg_stat_database where datname = $1", _database(url)
            )
        )

    async def close(self) -> None:
        if self._empty is not None:
            await self.drop(self._empty)

    async def _create(self, template: str) -> str:
        name = f"headway_bench_{secrets.token_hex(4)}"
        await self._execute(f'create database "{name}" template "{template}"')
        return urlsplit(self._admin_url)._replace(path=f"/{name}").geturl()

    async def _execute(self, statement: str) -> None:
        connection = await _connect(self._admin_url)
        await connection.execute(statement)
        await connection.close()

    async def _value(self, query: str, *values: Any) -> Any:
        connection = await _connect(self._admin_url)
        value = await connection.fetchval(query, *values)
        await connection.close()
        return value


async def _connect(url: str) -> Any:
    try:
        import asyncpg
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "to measure PostgreSQL, install its driver: pip install 'headway[postgres]'; or use --sqlite-only"
        ) from error
    try:
        return await asyncpg.connect(url, timeout=10)
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        raise ConfigurationError(f"can't reach PostgreSQL: {error}; check --postgres") from error


def _id_at(microsecond: int, number: int) -> bytes:
    """An id of that time."""
    return (microsecond // 1000 << 80 | 0x7 << 76 | number).to_bytes(16, "big")


def _database(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")
