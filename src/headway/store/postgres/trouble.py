"""What went wrong in PostgreSQL: with the connection, with the server, or with what it was given."""

from __future__ import annotations

import asyncpg

from headway.model.errors import HeadwayError, KeyBusy, NotStorable, SchemaError, StoreUnavailable
from headway.store.postgres.dialing import Connection

COLLISIONS = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
"""Two transactions got into each other's way: run again, one of them passes."""
FAILURES = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""All that a connection may raise."""
READ_ONLY = "25006"

_HOPELESS = (
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InsufficientPrivilegeError,
)
"""Refusals of a connection that waiting won't change."""
_SCHEMA_STATES = {"42P01", "42703", "42883"}
"""Of a table, a column or a function that isn't there."""
_CONTENT_CLASSES = {"22", "23", "54"}
"""Data, constraints, sizes: the same content would be refused again."""
_ADVICE = {
    READ_ONLY: "it takes no writes now: it is a standby, or default_transaction_read_only is on",
    "42501": "this user lacks rights there: grant them",
    "53": "the server has run out of something (disk, memory, connections): the jobs stored so far are safe",
    "55": "the server is not ready for it: try again",
    "57": "the server has broken it off (statement_timeout, a person, a shutdown): try again",
    "58": "the server has trouble with its disk: see its log",
    "XX": "the server has met an error of its own: see its log",
}
"""By state or class of states: conditions of the server, which say nothing of what it was given."""


def lost(error: Exception, connection: Connection | None = None) -> bool:
    """Whether the connection is of no use any more. asyncpg reports wrong parameters as InterfaceError too: those would
    be wrong again for ever, on any connection."""
    if isinstance(error, asyncpg.PostgresError):
        fatal = getattr(error, "severity_en", None) in {"FATAL", "PANIC"}
        return fatal or isinstance(error, asyncpg.PostgresConnectionError) or _closed(connection)
    if isinstance(error, asyncpg.InterfaceError):
        return connection is None or _closed(connection)
    return isinstance(error, FAILURES)


def hopeless(error: Exception) -> bool:
    """Whether a server that refused a connection like this will do so again."""
    return isinstance(error, _HOPELESS)


def explain(error: Exception, url: str) -> HeadwayError | None:
    """The error as a user should meet it; None: nobody's fault but ours, and to be met as it is."""
    state = getattr(error, "sqlstate", None) or ""
    if isinstance(error, asyncpg.LockNotAvailableError):
        return KeyBusy(f"rows are locked by another transaction for too long: {error}")
    if state in _SCHEMA_STATES:
        return SchemaError(f"the store's tables are not as this code needs them: run `headway migrate` ({error})")
    if state[:2] in _CONTENT_CLASSES:
        return NotStorable(f"the store can't take this: {error}")
    if advice := _ADVICE.get(state) or _ADVICE.get(state[:2]):
        return StoreUnavailable(f"can't use the store {redacted(url)}: {advice} ({error})")
    return None


def redacted(url: str) -> str:
    """The address without its password."""
    head, at, tail = url.rpartition("@")
    user, colon, _ = head.partition("://")[2].partition(":")
    return f"{head.partition('://')[0]}://{user}:***@{tail}" if at and colon else url


def _closed(connection: Connection | None) -> bool:
    return connection is not None and connection.is_closed()
