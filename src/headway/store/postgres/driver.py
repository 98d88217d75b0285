"""Scripts on PostgreSQL: a connection per lane, transactions that outlive broken connections, LISTEN/NOTIFY."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from headway.clock import Clock, SystemClock, Timer, sleep
from headway.model.errors import StoreUnavailable
from headway.model.events import Transition
from headway.model.findings import Finding
from headway.observe.logs import get_logger
from headway.store import migrations
from headway.store.metered import Metered
from headway.store.postgres import engine
from headway.store.postgres.dialing import Connection as _Connection
from headway.store.postgres.dialing import Dialer
from headway.store.postgres.trouble import COLLISIONS, FAILURES, READ_ONLY, explain, hopeless, lost, redacted
from headway.store.scripts.news import News, pages, write_lines
from headway.store.sql import Lane
from headway.store.statements import Query, Script, load, one

T = TypeVar("T")

CHANNEL = "headway_wake"
NEWS = "headway_news"
MIGRATION_LOCK = 0x4845414457
AT_REST = 10.0
"""Seconds without use after which the connection of a lane that is not in use all the time is given back to the server:
a worker needs those once in some minutes."""
_STEADY = frozenset({Lane.CLAIM, Lane.WRITE})
_MIGRATION_TABLE = (
    "create schema if not exists headway;"
    "create table if not exists headway.migration (number integer primary key, name text not null,"
    " breaking boolean not null, applied_at timestamptz not null default now())"
)

log = get_logger("headway.store")


class PostgresDriver(Metered):
    """Runs scripts. Each lane has a connection, made when first used and made again when it breaks."""

    def __init__(self, url: str, *, clock: Clock | None = None, patience: float = 15.0) -> None:
        super().__init__(clock or SystemClock())
        self._url = url
        self._dialer = Dialer(url)
        self._injected = clock
        self._clock = clock or SystemClock()
        self._patience = patience
        self._statements = load("headway.store.postgres.sql", "$")
        self._lanes = {lane: _Line(self._clock, steady=lane in _STEADY) for lane in Lane}
        self._listeners: dict[object, Callable[[str], None]] = {}
        self._watchers: dict[object, Callable[[Sequence[Transition]], None]] = {}
        self._closed = False

    async def open(self, patience: float | None = None) -> None:
        line = self._lanes[Lane.WRITE]
        async with line.lock:
            connection = await self._connect_patiently(line, patience)
            applied = await _applied(connection)
        migrations.check(migrations.load("headway.store.postgres.migrations"), applied)
        self.be_metered()

    async def migrate(self) -> list[str]:
        """A step may take long on large tables, and there is nobody to whom it would be too long."""
        connection = await self._dialer.dial(unhurried=True)
        try:
            async with connection.transaction():
                # Another process may be at it: this one, unlike all others, waits for its turn.
                await connection.execute("set local lock_timeout = '60s'; set local statement_timeout = 0")
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
        self.be_unmetered()
        for line in self._lanes.values():
            await line.close()

    async def listen(self, on_wake: Callable[[str], None]) -> Callable[[], None]:
        return await self._enter(self._listeners, on_wake)

    @property
    def deaf(self) -> bool:
        return self._dialer.pooled

    async def watch(self, heard: Callable[[Sequence[Transition]], None]) -> Callable[[], None]:
        return await self._enter(self._watchers, heard)

    async def _enter(self, book: dict[object, T], heard: T) -> Callable[[], None]:
        """Tell one more, from now on; returns what ends it. They share the connection by which jobs are claimed."""
        place = object()
        book[place] = heard
        line = self._lanes[Lane.CLAIM]
        try:
            async with line.lock:
                await self._hear(await self._connect_patiently(line))
        except BaseException:
            del book[place]
            raise

        def leave() -> None:
            book.pop(place, None)

        return leave

    async def tell(self, changes: Sequence[Transition]) -> None:
        def script() -> Script[None]:
            yield one("tell", told=pages(changes))

        await self.run(script, Lane.WRITE, single=True)

    async def vacuum(self) -> None:
        """Claims walk over dead rows until they are vacuumed, and autovacuum comes too late for a busy queue.

        By a connection of its own: on a big table this takes a while, and nothing may wait for it. Room at the end of a
        table is kept: it is needed again at once, and to give it back takes a lock that nobody else may hold.
        """
        connection = await self._dialer.dial()
        try:
            for table in ("headway.job", "headway.lease"):
                await connection.execute(f"vacuum (skip_locked, truncate off) {table}", timeout=600)
        finally:
            await connection.close()

    async def examine(self, long_open: float = engine.LONG_OPEN) -> list[Finding]:
        return await self.run(lambda: engine.examine(long_open), Lane.READ)

    def connections(self) -> int:
        return sum(line.connection is not None and not line.connection.is_closed() for line in self._lanes.values())

    async def transact(
        self, script: Callable[[], Script[T]], lane: Lane, again: Callable[[], Script[T]] | None, *, single: bool
    ) -> T:
        line = self._lanes[lane]
        async with line.lock:
            try:
                return await self._persist(line, script, again or script, single=single)
            finally:
                line.used()

    async def _persist(
        self, line: _Line, script: Callable[[], Script[T]], again: Callable[[], Script[T]], *, single: bool
    ) -> T:
        """Run until it is known to have happened. A broken connection leaves the outcome of a commit unknown: from then
        on it is `again` that runs, which finds out what is stored."""
        while True:
            connection = await self._connect_patiently(line)
            try:
                return await self._attempt(connection, script(), single=single)
            except COLLISIONS as error:
                log.info("store.collision", error=str(error))
            except FAILURES as error:
                if not lost(error, connection):
                    self._explain(line, error)
                    raise
                log.warning("store.connection_lost", error=repr(error))
                line.drop()
                script = again

    def _explain(self, line: _Line, error: Exception) -> None:
        """Raise the error as the caller should meet it, if there is more to say than it does itself."""
        if getattr(error, "sqlstate", None) == READ_ONLY:
            # Another server may have taken over: who dials again finds it.
            line.drop()
        if told := explain(error, self._url):
            raise told from error

    async def _attempt(self, connection: _Connection, script: Script[T], *, single: bool) -> T:
        news: list[News] = []
        if single and not self._dialer.pooled:
            result = await self._drive(connection, script, news)
        else:
            result = await self._transact(connection, script, news)
        if news:
            write_lines(news)
        return result

    async def _transact(self, connection: _Connection, script: Script[T], news: list[News]) -> T:
        try:
            await connection.execute(self._dialer.begin)
            result = await self._drive(connection, script, news)
            await connection.execute("commit")
        except BaseException:
            await asyncio.shield(_undo(connection))
            raise
        return result

    async def _drive(self, connection: _Connection, script: Script[T], news: list[News]) -> T:
        """Feed the script with rows until it returns, and gather what it has to tell."""
        now = self._injected.now() if self._injected else None
        rows: list[Any] | None = None
        while True:
            try:
                query = script.send(rows)  # type: ignore[arg-type]  # a fresh generator takes None
            except StopIteration as stop:
                result: T = stop.value
                return result
            rows = await self._fetch(connection, query, now)
            if "news" in query.parameters:
                news.append(query.parameters["news"])

    async def _fetch(self, connection: _Connection, query: Query, now: object) -> list[Any]:
        statement = self._statements[query.name]
        columns = _columns(query.rows) if query.rows else [() for _ in statement.row_parameters]
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
                if line is self._lanes[Lane.CLAIM]:
                    await self._hear(line.connection)
                    self._look_again()
            except FAILURES as error:
                line.drop()
                if hopeless(error):
                    raise StoreUnavailable(f"can't use the store {redacted(self._url)}: {error}") from error
                if not lost(error):
                    self._explain(line, error)
                    raise
                if self._clock.monotonic() - started > patience:
                    raise StoreUnavailable(
                        f"can't reach the store {redacted(self._url)}: {str(error) or type(error).__name__}; "
                        "check that PostgreSQL runs there and the address is right"
                    ) from error
                await sleep(self._clock if self._injected is None else SystemClock(), wait)
                wait = min(wait * 2, 1.0)

    async def _hear(self, connection: _Connection) -> None:
        """Listen to what somebody here wants to hear. Both do nothing where that is done already."""
        if self._listeners and not self._dialer.pooled:
            await connection.add_listener(CHANNEL, self._heard)
        if self._watchers and not self._dialer.pooled:
            await connection.add_listener(NEWS, self._heard_news)

    def _look_again(self) -> None:
        """The connection is new: something may have been missed."""
        self._wake("")
        self._pass_on([])

    def _heard_news(self, _connection: object, _pid: int, _channel: str, message: object) -> None:
        try:
            changes = msgspec.json.decode(str(message), type=list[Transition])
        except msgspec.DecodeError as error:
            log.warning("store.bad_news", error=str(error))
            changes = []
        self._pass_on(changes)

    def _pass_on(self, changes: Sequence[Transition]) -> None:
        for heard in list(self._watchers.values()):
            heard(changes)

    def _heard(self, _connection: object, _pid: int, _channel: str, queue: object) -> None:
        self._wake(str(queue))

    def _wake(self, queue: str) -> None:
        for on_wake in list(self._listeners.values()):
            on_wake(queue)


class _Line:
    """A lane's connection, used by one script at a time."""

    def __init__(self, clock: Clock, *, steady: bool) -> None:
        self.lock = asyncio.Lock()
        self.connection: _Connection | None = None
        self._clock = clock
        self._steady = steady
        self._used_at = 0.0
        self._timer: Timer | None = None
        self._leaving: asyncio.Task[None] | None = None

    def used(self) -> None:
        """Begin to watch whether it is used again."""
        self._used_at = self._clock.monotonic()
        if not self._steady and self._timer is None:
            self._timer = self._clock.call_later(AT_REST, self._look)

    def _look(self) -> None:
        if (left := self._left()) > 0:
            self._timer = self._clock.call_later(left, self._look)
        else:
            self._timer, self._leaving = None, asyncio.get_running_loop().create_task(self._leave())

    def _left(self) -> float:
        """Seconds until it will have rested long enough to be given back."""
        return self._used_at + AT_REST - self._clock.monotonic()

    async def _leave(self) -> None:
        async with self.lock:
            # Somebody may have come meanwhile.
            if self._left() <= 0:
                await self._hang_up()

    def drop(self) -> None:
        if self.connection is not None:
            self.connection.terminate()
        self.connection = None

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._hang_up()

    async def _hang_up(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None and not connection.is_closed():
            try:
                await connection.close(timeout=5)
            except FAILURES:
                connection.terminate()


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...] | None]:
    """An array for each column. One in which nothing stands is left out, which `unnest` makes the same of: an array is
    written element by element, and most columns of most jobs are empty."""
    columns = zip(*rows, strict=True)
    return [None if column[0] is None and column.count(None) == len(column) else column for column in columns]


async def _undo(connection: _Connection) -> None:
    """Leave no transaction open behind; a connection that can't even do this is of no use any more."""
    try:
        if connection.is_in_transaction():
            await connection.execute("rollback")
    except FAILURES:
        connection.terminate()


async def _applied(connection: _Connection) -> dict[int, bool]:
    """The steps taken so far. Only reads: a worker's user need not be allowed to make tables."""
    if await connection.fetchval("select to_regclass('headway.migration') is null"):
        return {}
    rows = await connection.fetch("select number, breaking from headway.migration")
    return {row["number"]: row["breaking"] for row in rows}
