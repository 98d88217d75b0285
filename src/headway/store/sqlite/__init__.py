"""The store on SQLite, by the standard library's sqlite3."""

from __future__ import annotations

from pathlib import Path

from headway.clock import Clock, SystemClock
from headway.store.sql import SqlStore
from headway.store.sqlite.driver import SqliteDriver
from headway.store.sqlite.runner import InlineRunner, Runner, ThreadRunner

__all__ = ["InlineRunner", "Runner", "SqliteDriver", "ThreadRunner", "from_url", "sqlite_store"]


def sqlite_store(path: str | Path, *, clock: Clock | None = None, runner: Runner | None = None) -> SqlStore:
    """A store in this file (or ":memory:"). The machine's clock decides what is due, unless one is given (in tests)."""
    return SqlStore(SqliteDriver(path, clock=clock, runner=runner), clock or SystemClock())


def from_url(url: str, clock: Clock | None) -> SqlStore:
    """The maker behind `sqlite:///relative.db`, `sqlite:////absolute.db` and `sqlite://` (memory)."""
    path = url.partition("://")[2].removeprefix("/")
    return sqlite_store(path or ":memory:", clock=clock)
