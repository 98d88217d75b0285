"""Scripts on a connection that belongs to somebody else: inside their transaction, by their driver.

Every parameter travels as text and is cast by the server (`$1::text::uuid[]`). So whatever codecs, dumpers and row
factories the owner has set on the connection, none of them comes between, and nothing has to be set or set back.

A connection that is in no transaction and wouldn't begin one by itself gets one around the script: its jobs are stored
at once, and still all together. Errors of the driver go through as they are, because the owner's code knows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from headway.model.errors import SchemaError
from headway.store.statements import Query, Script, Statement, load

if TYPE_CHECKING:
    import asyncpg
    import psycopg

    AsyncpgConnection = asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]

T = TypeVar("T")

_CAST = re.compile(r"(\$\d+)::")
_SCHEMA_STATES = {"42P01", "42703"}
"""What PostgreSQL says of a table or a column that isn't there."""


async def run_asyncpg(connection: AsyncpgConnection, script: Script[T]) -> T:
    """By asyncpg, on a connection or what a pool gives out for one."""

    async def drive() -> T:
        work = _Work(script)
        while not work.done:
            rows = await connection.fetch(work.text, *work.values)
            work.go_on([tuple(row) for row in rows], list(rows[0].keys()) if rows else [])
        return work.result

    with _told():
        if connection.is_in_transaction():
            return await drive()
        async with connection.transaction():
            return await drive()


def run_psycopg(connection: psycopg.Connection[Any], script: Script[T]) -> T:
    """By psycopg 3, blocking."""
    from psycopg import RawCursor
    from psycopg.rows import tuple_row

    def drive() -> T:
        work = _Work(script)
        with RawCursor(connection, row_factory=tuple_row) as cursor:
            while not work.done:
                cursor.execute(work.text, work.values)
                work.go_on(cursor.fetchall() if cursor.description else [], _names(cursor.description))
        return work.result

    with _told():
        if not _alone(connection):
            return drive()
        with connection.transaction():
            return drive()


async def run_psycopg_async(connection: psycopg.AsyncConnection[Any], script: Script[T]) -> T:
    """By psycopg 3, async."""
    from psycopg import AsyncRawCursor
    from psycopg.rows import tuple_row

    async def drive() -> T:
        work = _Work(script)
        async with AsyncRawCursor(connection, row_factory=tuple_row) as cursor:
            while not work.done:
                await cursor.execute(work.text, work.values)
                work.go_on(await cursor.fetchall() if cursor.description else [], _names(cursor.description))
        return work.result

    with _told():
        if not _alone(connection):
            return await drive()
        async with connection.transaction():
            return await drive()


class ForeignRow:
    """A row by name and by position, of the types that scripts expect."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: Sequence[Any]) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, which: str | int) -> Any:
        return self._values[which if isinstance(which, int) else self._places[which]]


class _Work(Generic[T]):
    """A script on its way: the statement it asks for next, until it is done."""

    def __init__(self, script: Script[T]) -> None:
        self._script = script
        self.done = False
        self.result: T
        self.text = ""
        self.values: list[str | None] = []
        self._send(None)

    def go_on(self, rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> None:
        """Here are the rows of the statement asked for."""
        places = {name: place for place, name in enumerate(names)}
        readers = [_reader(name) for name in names]
        self._send(
            [ForeignRow(places, [read(value) for read, value in zip(readers, row, strict=True)]) for row in rows]
        )

    def _send(self, rows: list[ForeignRow] | None) -> None:
        try:
            query = self._script.send(rows)  # type: ignore[arg-type]  # a fresh generator takes None
        except StopIteration as stop:
            self.done, self.result = True, stop.value
            return
        statement = _statements()[query.name]
        self.text, self.values = statement.text, list(_values(statement, query))


@cache
def _statements() -> dict[str, Statement]:
    """The statements of the store, made to take text for every parameter."""
    return {
        name: Statement(name, _CAST.sub(r"\1::text::", own.text), own.row_parameters, own.parameters)
        for name, own in load("headway.store.postgres.sql", "$").items()
    }


def _values(statement: Statement, query: Query) -> Iterator[str | None]:
    columns = zip(*query.rows, strict=True) if query.rows else [() for _ in statement.row_parameters]
    for column in columns:
        yield _text(column)
    for name in statement.parameters:
        # Without a time of ours the server's own holds.
        yield None if name == "now" else _text(query.parameters[name])


def _text(value: Any) -> str | None:  # noqa: PLR0911 - one line per type reads best
    """A value as PostgreSQL reads it."""
    match value:
        case None:
            return None
        case str():
            return str(value)
        case bool():
            return "true" if value else "false"
        case bytes():
            return f"\\x{value.hex()}"
        case datetime():
            return value.astimezone(UTC).isoformat()
        case list() | tuple():
            return f"{{{','.join(map(_element, value))}}}"
        case _:
            return str(value)


def _element(value: Any) -> str:
    text = _text(value)
    if text is None:
        return "NULL"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _reader(name: str) -> Callable[[Any], Any]:
    if name == "id" or name.endswith("_id"):
        return _read_id
    if name.endswith("_at"):
        return _read_time
    return _read_bytes if name == "digest" else _read_as_is


def _read_id(value: Any) -> UUID | None:
    return value if value is None or isinstance(value, UUID) else UUID(str(value))


def _read_time(value: Any) -> datetime | None:
    if value is None:
        return None
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment.astimezone(UTC)


def _read_bytes(value: Any) -> bytes:
    return bytes.fromhex(value.removeprefix("\\x")) if isinstance(value, str) else bytes(value)


def _read_as_is(value: Any) -> Any:
    return value


def _names(description: Sequence[Any] | None) -> list[str]:
    return [column.name for column in description or ()]


def _alone(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether each statement would be a transaction of its own."""
    from psycopg.pq import TransactionStatus

    return connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Both drivers' errors carry the server's code under this name.
        if getattr(error, "sqlstate", None) not in _SCHEMA_STATES:
            raise
        raise SchemaError(
            "the database of this connection lacks Headway's tables, or has older ones: run `headway migrate` with "
            f"its URL as the store, as in HEADWAY_STORE=postgresql://…/database ({error})"
        ) from error
