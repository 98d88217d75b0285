"""Scripts on a sqlite3 connection that belongs to somebody else: inside their transaction, whatever its settings.

The tables must lie in the connection's main database. Where sqlite3 would begin a transaction by itself at the first
write, it is begun here, before the script has read anything; the owner commits it. Where each statement would be a
transaction of its own, the script gets one that is committed at once.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from headway.clock import SystemClock
from headway.model.errors import SchemaError
from headway.store.sqlite.rows import Plan, microseconds
from headway.store.sqlite.wake import Bell
from headway.store.statements import Row, Script, load

T = TypeVar("T")

_RELEASE = "release headway_submit"
_OUR_TYPES = {"INTEGER", "REAL", "TEXT", "BLOB"}
_RESULT = re.compile(r"^select (?:distinct )?(?P<select>.+?)\s+from\b|\breturning (?P<returning>.+)$", re.DOTALL)
_COLUMN = re.compile(r"(?<!as )((?:\b\w+\.)?\b(\w+))(?=\s*,)")
_LAST_COLUMN = re.compile(r"(?<!as )((?:\b\w+\.)?\b(\w+))(?=\s*(?:,|$))")


def run_sqlite(connection: sqlite3.Connection, script: Script[T]) -> T:
    """By the standard library's sqlite3.

    Workers are woken when the jobs are stored at once; nobody tells us of the owner's commit, so after that the
    workers' polling finds them (a second at most).
    """
    with _own_ways(connection) as cursor, _told():
        if connection.in_transaction:
            with _undone_on_error(cursor, "savepoint headway_submit", "rollback to headway_submit", _RELEASE):
                done = _drive(cursor, script)
                cursor.execute(_RELEASE)
            return done.result
        with _undone_on_error(cursor, "begin immediate", "rollback"):
            done = _drive(cursor, script)
            if _alone(connection):
                cursor.execute("commit")
                _ring(cursor, done.wakes)
        return done.result


@contextmanager
def _undone_on_error(cursor: sqlite3.Cursor, begin: str, *undo: str) -> Iterator[None]:
    """All of it or nothing: a statement that fails doesn't end a transaction here, as it would on PostgreSQL."""
    cursor.execute(begin)
    try:
        yield
    except BaseException:
        # The engine may have given up the whole transaction (disk full, input/output error).
        for statement in undo if cursor.connection.in_transaction else ():
            cursor.execute(statement)
        raise


class _Done(msgspec.Struct, Generic[T], frozen=True):
    result: T
    wakes: list[str]


def _drive(cursor: sqlite3.Cursor, script: Script[T]) -> _Done[T]:
    plans = _shielded_plans() if _OUR_TYPES & sqlite3.converters.keys() else _plans()
    now = microseconds(SystemClock().now())
    wakes: list[str] = []
    rows: list[Row] | None = None
    while True:
        try:
            query = script.send(rows)  # type: ignore[arg-type]  # a fresh generator takes None
        except StopIteration as stop:
            return _Done(stop.value, wakes)
        wakes += query.parameters.get("wake", ())
        rows = plans[query.name].run(cursor, query, now)


@cache
def _plans() -> dict[str, Plan]:
    return {name: Plan(statement) for name, statement in load("headway.store.sqlite.sql", "?").items()}


@cache
def _shielded_plans() -> dict[str, Plan]:
    """For programs that have registered a converter for a type of our columns."""
    return {
        name: Plan(msgspec.structs.replace(statement, text=shield(statement.text)))
        for name, statement in load("headway.store.sqlite.sql", "?").items()
    }


def shield(text: str) -> str:
    """A statement whose results have no declared type, so that `detect_types` doesn't convert them: `id` becomes
    `+id as id`, an expression. What stands behind the first bracket is taken to be expressions already."""
    found = _RESULT.search(text)
    if found is None:
        return text
    which = "select" if found["select"] else "returning"
    columns, bracket, rest = found[which].partition("(")
    column = _COLUMN if bracket else _LAST_COLUMN
    return text[: found.start(which)] + column.sub(r"+\1 as \2", columns) + bracket + rest + text[found.end(which) :]


@contextmanager
def _own_ways(connection: sqlite3.Connection) -> Iterator[sqlite3.Cursor]:
    """A cursor that gives plain tuples and plain text; the connection is as before afterwards."""
    text_factory: Callable[[bytes], Any] = connection.text_factory
    # Not connection.cursor(): a subclass may make something else of that.
    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = None
    connection.text_factory = str
    try:
        yield cursor
    finally:
        connection.text_factory = text_factory
        cursor.close()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "no such table: headway_" not in str(error) and "no such column" not in str(error):
            raise
        raise SchemaError(
            "the file of this connection lacks Headway's tables, or has older ones: run `headway migrate` with it as "
            f"the store, as in HEADWAY_STORE=sqlite:///path/to/file.db ({error})"
        ) from error


def _alone(connection: sqlite3.Connection) -> bool:
    """Whether the owner has switched implicit transactions off (`autocommit` is new in Python 3.12)."""
    mode = getattr(connection, "autocommit", -1)
    return mode is True or (mode == -1 and connection.isolation_level is None)


def _ring(cursor: sqlite3.Cursor, queues: list[str]) -> None:
    path = next((row[2] for row in cursor.execute("pragma database_list") if row[1] == "main"), "")
    if queues and path:
        Bell(path).ring(sorted(set(queues)))
