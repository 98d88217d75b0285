"""The database under all worlds of this process: made once, and emptied for each world.

Making its schema and preparing its statements would cost as much as many a world. What a world sees is the same:
empty tables, by the same migrations, through the same driver.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

from headway.store.sqlite.driver import MEMORY, SqliteDriver
from headway.store.sqlite.session import Session, connect

_KEPT = "headway_migration"


class Watcher(Protocol):
    """Who is told of every change."""

    def row(self, kind: str, *values: Any) -> None: ...
    def lease(self, lease_id: bytes, until: int | None) -> None: ...


class Ground(sqlite3.Connection):
    """The connection. It outlives the sessions that it is lent to."""

    watcher: Watcher | None = None
    """The world that has it now."""

    def close(self) -> None:
        """A world is over."""
        self.watcher = None
        self.rollback()

    def empty(self) -> None:
        for (table,) in self.execute("select name from sqlite_master where type = 'table'").fetchall():
            if table != _KEPT:
                self.execute(f"delete from {table}")

    def be_watched(self, watcher: Watcher, columns: Sequence[str]) -> None:
        """Tell `watcher` of every change in the tables of jobs and leases, by triggers."""
        self.watcher = watcher
        if not self.execute("select count(*) from temp.sqlite_master").fetchone()[0]:
            self._make_triggers(columns)

    def _make_triggers(self, columns: Sequence[str]) -> None:
        self.create_function("sim_row", len(columns) + 1, self._row)
        self.create_function("sim_lease", 2, self._lease)
        new, old = (", ".join(f"{side}.{column}" for column in columns) for side in ("new", "old"))
        for event, row in (("insert", new), ("update", new), ("delete", old)):
            self.execute(
                f"create temp trigger sim_{event} after {event} on main.headway_job "
                f"begin select sim_row('{event}', {row}); end"
            )
        for event, until in (("insert", "new.until"), ("update", "new.until"), ("delete", "null")):
            side = "old" if event == "delete" else "new"
            self.execute(
                f"create temp trigger sim_lease_{event} after {event} on main.headway_lease "
                f"begin select sim_lease({side}.id, {until}); end"
            )

    def _row(self, kind: str, *values: Any) -> None:
        if self.watcher is not None:
            self.watcher.row(kind, *values)

    def _lease(self, lease_id: bytes, until: int | None) -> None:
        if self.watcher is not None:
            self.watcher.lease(lease_id, until)


class GroundDriver(SqliteDriver):
    """The real driver, on the ground that is there."""

    def _connect(self) -> Session:
        ground = _ground()
        ground.empty()
        return Session(self._parts, ground)


@cache
def _ground() -> Ground:
    return connect(MEMORY, Ground)
