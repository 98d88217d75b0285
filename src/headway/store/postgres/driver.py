"""Scripts on PostgreSQL: a connection per lane, transactions that outlive broken connections, LISTEN/NOTIFY."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import asyncpg

from headway.clock import Clock, SystemClock, sleep
from headway.model.errors import KeyBusy, SchemaError, StoreUnavailable
from headway.model.findings import Finding
from headway.observe.logs import get_logger
from headway.store import migrations
from headway.store.postgres import engine
from headway.store.postgres.dialing import Connection as _Connection
from headway.store.postgres.dialing import Dialer
from headway.store.sql import Lane
from headway.store.statements import Query, Script, load

T = TypeVar("T")

CHANNEL = "headway_wake"
MIGRATION_LOCK = 0x4845414457
_MIGRATION_TABLE = (
    "create schema if not exists headway;"
    "create table if not exists headway.migration (number integer primary key, name text not null,"
    " breaking boolean not null, applied_at timestamptz not null default now())"
)

_LOST = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
)
_COLLISIONS = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)

log = get_logger("headway.store")


class PostgresDriver:
    """Runs scripts. Each lane has a connection, made when first used and made again when it breaks."""

    def __init__(self, url: str, *, clock: Clock | None = None, patience: float = 15.0) -> None:
        self._url = url
        self._dialer = Dialer(url)
        self._injected = clock
        self._clock = clock or SystemClock()
        self._patience = patience
        self._statements = load("headway.store.postgres.sql", "$")
        self._lanes = {lane: _Line(self) for lane in Lane}
        self._on_wake: Callable[[str], None] | None = None
        self._closed = False

    async def open(self, patience: float | None = None) -> None:
        line = self._lanes[Lane.WRITE]
        async with line.lock:
            connection = await self._connect_patiently(line, patience)
            applied = await _applied(connection)
        migrations.check(migrations.load("headway.store.postgres.migrations"), applied)

    async def migrate(self) -> list[str]:
        connection = await self._dialer.dial()
        try:
            async with connection.transaction():
                # Another process may be at it: this one, unlike all others, waits for its turn.
                await connection.execute("set local lock_timeout = '60s'")
                await connection.execute(f"select pg_advisory_xact_lock({MIGRATION_LOCK})")
                await connection.execute(_MIGRATION_TABLE)
                known = migrations.load("headway.store.postgres.migrations")
                todo = migrations.missing(known, await _applied(connection))
                for step in todo:
                    await connection.execute(step.sql)
                    await connection.execute(
                        "insert into headway.migration (number, name, breaking) values ($1, $2, $3)",
                        step.number,
                        step.name,
                        step.breaking,
                    )
        finally:
            await connection.close()
        return [step.name for step in todo]

    async def close(self) -> None:
        self._closed = True
        for line in self._lanes.values():
            await line.close()

    async def listen(self, on_wake: Callable[[str], None]) -> Callable[[], None]:
        self._on_wake = on_wake
        line = self._lanes[Lane.CLAIM]
        async with line.lock:
            await self._hear(await self._connect_patiently(line))
        return self._stop_listening

    def _stop_listening(self) -> None:
        self._on_wake = None

    async def vacuum(self) -> None:
        """Claims walk over dead rows until they are vacuumed, and autovacuum comes too late for a busy queue.

        By a connection of its own: on a big table this takes a while, and nothing may wait for it.
        """
        connection = await self._dialer.dial()
        try:
            await connection.execute("vacuum (skip_locked) headway.job", timeout=600)
            await connection.execute("vacuum (skip_locked) headway.lease", timeout=600)
        finally:
            await connection.close()

    async def examine(self, long_open: float = engine.LONG_OPEN) -> list[Finding]:
        return await self.run(lambda: engine.examine(long_open), Lane.READ)

    async def run(
        self,
        script: Callable[[], Script[T]],
        lane: Lane,
        *,
        again: Callable[[], Script[T]] | None = None,
        single: bool = False,
    ) -> T:
        line = self._lanes[lane]
        async with line.lock:
            return await self._persist(line, script, again or script, single=single)

    async def _persist(
        self, line: _Line, script: Callable[[], Script[T]], again: Callable[[], Script[T]], *, single: bool
    ) -> T:
        """Run until it is known to have happened. A broken connection leaves the outcome of a commit unknown: from then
        on it is `again` that runs, which finds out what is stored."""
        while True:
            connection = await self._connect_patiently(line)
            try:
                return await self._attempt(connection, script(), single=single)
            except _COLLISIONS as error:
                log.info("store.collision", error=str(error))
            except asyncpg.LockNotAvailableError as error:
                raise KeyBusy(f"rows are locked by another transaction for too long: {error}") from error
            except asyncpg.UndefinedTableError as error:
                raise SchemaError(f"the store has no Headway tables: run `headway migrate` ({error})") from error
            except asyncpg.InsufficientPrivilegeError as error:
                raise StoreUnavailable(f"this user lacks rights in the store {redacted(self._url)}: {error}") from error
            except _LOST as error:
                # asyncpg reports wrong parameters as InterfaceError too: those would be wrong again for ever.
                if isinstance(error, asyncpg.InterfaceError) and not connection.is_closed():
                    raise
                log.warning("store.connection_lost", error=repr(error))
                line.drop()
                script = again

    async def _attempt(self, connection: _Connection, script: Script[T], *, single: bool) -> T:
        now = self._injected.now() if self._injected else None
        if single and not self._dialer.pooled:
            return await self._drive(connection, script, now)
        try:
            await connection.execute(self._dialer.begin)
            result = await self._drive(connection, script, now)
            await connection.execute("commit")
        except BaseException:
            await asyncio.shield(_undo(connection))
            raise
        return result

    async def _drive(self, connection: _Connection, script: Script[T], now: object) -> T:
        """Feed the script with rows until it returns."""
        rows: list[Any] | None = None
        while True:
            try:
                query = script.send(rows)  # type: ignore[arg-type]  # a fresh generator takes None
            except StopIteration as stop:
                result: T = stop.value
                return result
            rows = await self._fetch(connection, query, now)

    async def _fetch(self, connection: _Connection, query: Query, now: object) -> list[Any]:
        statement = self._statements[query.name]
        columns = list(zip(*query.rows, strict=True)) if query.rows else [() for _ in statement.row_parameters]
        shared = [now if name == "now" else query.parameters[name] for name in statement.parameters]
        return await connection.fetch(statement.text, *columns, *shared)

    async def _connect_patiently(self, line: _Line, patience: float | None = None) -> _Connection:
        """The line's connection, waiting for a server that is just not there, up to `patience` seconds."""
        started, wait = self._clock.monotonic(), 0.05
        patience = self._patience if patience is None else patience
        while True:
            if line.connection is not None and not line.connection.is_closed():
                return line.connection
            if self._closed:
                raise StoreUnavailable("the store is closed")
            try:
                line.connection = await self._dialer.dial()
                if line is self._lanes[Lane.CLAIM] and self._on_wake:
                    await self._hear(line.connection)
                    self._on_wake("")
            except (asyncpg.InvalidCatalogNameError, asyncpg.InvalidAuthorizationSpecificationError) as error:
                raise StoreUnavailable(f"can't use the store {redacted(self._url)}: {error}") from error
            except _LOST as error:
                if self._clock.monotonic() - started > patience:
                    raise StoreUnavailable(
                        f"can't reach the store {redacted(self._url)}: {str(error) or type(error).__name__}; "
                        "check that PostgreSQL runs there and the address is right"
                    ) from error
                await sleep(self._clock if self._injected is None else SystemClock(), wait)
                wait = min(wait * 2, 1.0)

    async def _hear(self, connection: _Connection) -> None:
        if not self._dialer.pooled:
            await connection.add_listener(CHANNEL, self._heard)

    def _heard(self, _connection: object, _pid: int, _channel: str, queue: object) -> None:
        if self._on_wake:
            self._on_wake(str(queue))


class _Line:
    """A lane's connection, used by one script at a time."""

    def __init__(self, driver: PostgresDriver) -> None:
        self.lock = asyncio.Lock()
        self.connection: _Connection | None = None
        self._driver = driver

    def drop(self) -> None:
        if self.connection is not None:
            self.connection.terminate()
        self.connection = None

    async def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None and not connection.is_closed():
            try:
                await connection.close(timeout=5)
            except _LOST:
                connection.terminate()


async def _undo(connection: _Connection) -> None:
    """Leave no transaction open behind; a connection that can't even do this is of no use any more."""
    try:
        if connection.is_in_transaction():
            await connection.execute("rollback")
    except _LOST:
        connection.terminate()


async def _applied(connection: _Connection) -> dict[int, bool]:
    """The steps taken so far. Only reads: a worker's user need not be allowed to make tables."""
    if await connection.fetchval("select to_regclass('headway.migration') is null"):
        return {}
    rows = await connection.fetch("select number, breaking from headway.migration")
    return {row["number"]: row["breaking"] for row in rows}


def redacted(url: str) -> str:
    """The address without its password."""
    head, at, tail = url.rpartition("@")
    user, colon, _ = head.partition("://")[2].partition(":")
    return f"{head.partition('://')[0]}://{user}:***@{tail}" if at and colon else url
