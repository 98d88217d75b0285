"""SUBMIT inside the user's own transaction: the job exists if, and only if, that transaction commits.

Takes connections of asyncpg, psycopg 3, SQLAlchemy (over these, or over sqlite3) and sqlite3. None of them is imported
here unless the user has imported it. Times count from the start of the transaction, as PostgreSQL's `now()` does.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeVar

import msgspec

from headway.model.errors import ConfigurationError
from headway.model.submission import OnConflict, Submission
from headway.store.scripts import submit
from headway.store.scripts.submit import Answer
from headway.store.statements import Script, one

T = TypeVar("T")

_WORKING = (
    "an asyncpg connection, a psycopg 3 connection (psycopg.Connection or AsyncConnection), a sqlite3 connection, "
    "or a SQLAlchemy Connection, Session, AsyncConnection or AsyncSession over one of these"
)


def submit_in(connection: Any, jobs: Sequence[Submission], *, notify: bool = True) -> list[Answer]:
    """Store jobs in the transaction that this connection is in; one answer each, in order.

    Nothing is committed here, except on a connection in autocommit, where the jobs are stored at once. A key that
    another transaction holds is not waited for: its submission is answered `KeyBusy`. Workers are woken by the commit
    unless `notify` is False.
    """
    if not jobs:
        return []
    if _is_sqlalchemy(connection):
        connection = _driver_of(connection)
    script = _script(jobs, notify=notify)
    if isinstance(connection, sqlite3.Connection):
        from headway.store.sqlite.foreign import run_sqlite

        return run_sqlite(connection, script)
    if _is_a(connection, "psycopg", "Connection"):
        answers: list[Answer] = _postgres().run_psycopg(connection, script)
        return answers
    if _is_async(connection):
        raise ConfigurationError(
            f"{_describe(connection)} is asynchronous, submit can't wait for it: use `await asubmit(…)` with it"
        )
    raise _unknown(connection)


async def asubmit_in(connection: Any, jobs: Sequence[Submission], *, notify: bool = True) -> list[Answer]:
    """As `submit_in`, for code on an event loop. Blocking connections are taken too, and block as they always do."""
    if not jobs:
        return []
    if _is_async_sqlalchemy(connection):
        connection = await _async_driver_of(connection)
    if _is_asyncpg(connection):
        run = _postgres().run_asyncpg
    elif _is_a(connection, "psycopg", "AsyncConnection"):
        run = _postgres().run_psycopg_async
    else:
        return submit_in(connection, jobs, notify=notify)
    answers: list[Answer] = await run(connection, _script(jobs, notify=notify))
    return answers


def _script(jobs: Sequence[Submission], *, notify: bool) -> Script[list[Answer]]:
    script = submit.plain(jobs) if all(job.plain for job in jobs) else _keyed(jobs)
    return script if notify else _silent(script)


def _keyed(jobs: Sequence[Submission]) -> Script[list[Answer]]:
    """A conflict with a job that this transaction can't see would go unnoticed: better no answer than a wrong one."""
    if any(job.on_conflict is not OnConflict.ALLOW for job in jobs):
        [row] = yield one("frozen_view")
        if row["frozen"]:
            raise ConfigurationError(
                "on_conflict can't be judged in a transaction of the level repeatable read or serializable, which "
                "doesn't see jobs stored since it began: use read committed, or on_conflict='allow'"
            )
    return (yield from submit.keyed(jobs))


def _silent(script: Script[T]) -> Script[T]:
    """The script with nobody woken by it."""
    rows: Any = None
    while True:
        try:
            query = script.send(rows)
        except StopIteration as stop:
            result: T = stop.value
            return result
        if "wake" in query.parameters:
            query = msgspec.structs.replace(query, parameters={**query.parameters, "wake": []})
        rows = yield query


def _driver_of(connection: Any) -> Any:
    """The driver's connection under a SQLAlchemy Connection or Session."""
    if not _is_a(connection, "sqlalchemy.engine", "Connection"):
        connection = connection.connection()
    if not connection.in_transaction():
        # SQLAlchemy commits only what it knows to have begun, and it begins with a statement of its own.
        connection.exec_driver_sql("select 1").close()
    return connection.connection.driver_connection


async def _async_driver_of(connection: Any) -> Any:
    """The driver's connection under an AsyncConnection or AsyncSession."""
    if not _is_a(connection, "sqlalchemy.ext.asyncio", "AsyncConnection"):
        connection = await connection.connection()
    # As above; over asyncpg it even puts off BEGIN until its first statement, also within `begin()`.
    await connection.exec_driver_sql("select 1")
    return (await connection.get_raw_connection()).driver_connection


def _is_sqlalchemy(connection: Any) -> bool:
    return _is_a(connection, "sqlalchemy.engine", "Connection") or _is_a(
        connection, "sqlalchemy.orm", "Session", "scoped_session"
    )


def _is_async_sqlalchemy(connection: Any) -> bool:
    names = ("AsyncConnection", "AsyncSession", "async_scoped_session")
    return _is_a(connection, "sqlalchemy.ext.asyncio", *names)


def _is_asyncpg(connection: Any) -> bool:
    return _is_a(connection, "asyncpg", "Connection") or _is_a(connection, "asyncpg.pool", "PoolConnectionProxy")


def _is_async(connection: Any) -> bool:
    return (
        _is_asyncpg(connection) or _is_async_sqlalchemy(connection) or _is_a(connection, "psycopg", "AsyncConnection")
    )


def _is_a(value: Any, module: str, *names: str) -> bool:
    """Whether the value is of one of these classes; a module that nobody has imported has made no value."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, tuple(getattr(loaded, name) for name in names))


def _postgres() -> ModuleType:
    try:
        from headway.store.postgres import foreign
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"a store on PostgreSQL needs the package {error.name!r}: pip install 'headway[postgres]'"
        ) from error
    return foreign


def _unknown(connection: Any) -> ConfigurationError:
    if hasattr(connection, "acquire") or hasattr(connection, "getconn") or hasattr(connection, "connect"):
        return ConfigurationError(
            f"{_describe(connection)} gives out connections but is none: take one from it, begin a transaction, and "
            "submit with that"
        )
    return ConfigurationError(f"a job can't be stored through {_describe(connection)}: use {_WORKING}")


def _describe(connection: Any) -> str:
    """The object's class as users know it, such as `psycopg2.extensions.connection`."""
    cls = type(connection)
    return f"{cls.__module__}.{cls.__qualname__}"
