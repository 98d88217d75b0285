"""The store on PostgreSQL, by asyncpg."""

from __future__ import annotations

from headway.clock import Clock, SystemClock
from headway.store.postgres.driver import PostgresDriver
from headway.store.sql import SqlStore


def postgres_store(url: str, *, clock: Clock | None = None, patience: float = 15.0) -> SqlStore:
    """A store on this database. The server's clock decides what is due, unless a clock is given (in tests)."""
    return SqlStore(PostgresDriver(url, clock=clock, patience=patience), clock or SystemClock())


def from_url(url: str, clock: Clock | None) -> SqlStore:
    """The maker behind `postgresql://…`."""
    return postgres_store(url, clock=clock)
