"""Scripts on SQLite: one writer with group commit, readers apart, a doorbell for other processes on the same file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from headway.clock import Clock, SystemClock
from headway.model.errors import ConfigurationError
from headway.model.events import Transition
from headway.model.findings import Finding
from headway.store import migrations
from headway.store.metered import Metered
from headway.store.sql import Lane
from headway.store.sqlite import engine
from headway.store.sqlite.rows import Plans
from headway.store.sqlite.runner import Runner, ThreadRunner
from headway.store.sqlite.session import Parts, Session, connect
from headway.store.sqlite.storetime import StoreTime
from headway.store.sqlite.trouble import explain
from headway.store.sqlite.wake import Bell
from headway.store.sqlite.watch import Watchers
from headway.store.statements import Script, load

T = TypeVar("T")

MEMORY = ":memory:"
OLDEST = (3, 37, 0)

_MIGRATION_TABLE = (
    "create table if not exists headway_migration (number integer primary key, name text not null,"
    " breaking integer not null, applied_at integer not null default (strftime('%s', 'now') * 1000000)) strict"
)


class SqliteDriver(Metered):
    """Runs scripts on one file, or on a database in memory. Usable from any event loop and any thread."""

    def __init__(self, path: str | Path, *, clock: Clock | None = None, runner: Runner | None = None) -> None:
        super().__init__(clock or SystemClock())
        self._path = str(path)
        self._in_memory = self._path == MEMORY
        self._bell = Bell(None if self._in_memory else self._path)
        self._watchers = Watchers(None if self._in_memory else self._path)
        self._statements = load("headway.store.sqlite.sql", "?")
        self._parts = Parts(
            path=self._path,
            plans=Plans(self._statements),
            time=StoreTime(clock or SystemClock()),
            ring=self._bell.ring,
            tell=self._watchers.committed,
        )
        self._known = migrations.load("headway.store.sqlite.migrations")
        self._runner = runner or ThreadRunner()
        self._runner.attach(self._connect, readers=not self._in_memory)

    async def open(self, patience: float | None = None) -> None:
        """Connect, and bring the schema up to date: a file has no administrator who would do it."""
        await self.migrate()
        self.be_metered()

    async def migrate(self) -> list[str]:
        return await self._runner.write(self._migrate)

    async def close(self) -> None:
        self.be_unmetered()
        self._bell.close()
        self._watchers.close()
        await self._runner.close()

    async def listen(self, on_wake: Callable[[str], None]) -> Callable[[], None]:
        return self._bell.listen(on_wake)

    async def watch(self, heard: Callable[[Sequence[Transition]], None]) -> Callable[[], None]:
        return self._watchers.watch(heard)

    async def tell(self, changes: Sequence[Transition]) -> None:
        self._watchers.tell(changes)

    @property
    def deaf(self) -> bool:
        return False

    async def vacuum(self) -> None:
        """Updates leave nothing behind here. Nor are there statistics to be kept fresh: see `forget_statistics`."""

    async def examine(self) -> list[Finding]:
        return await self._runner.read(lambda session: engine.examine(session.connection, self._path))

    def connections(self) -> int:
        return self._runner.sessions()

    async def transact(
        self, script: Callable[[], Script[T]], lane: Lane, again: Callable[[], Script[T]] | None, *, single: bool
    ) -> T:
        """A transaction is the same with one statement as with many, and the outcome of a commit is always known."""

        def operation(session: Session) -> T:
            return session.drive(script())

        if lane is Lane.READ:
            return await self._runner.read(operation)
        return await self._runner.write(operation)

    def _connect(self) -> Session:
        if sqlite3.sqlite_version_info < OLDEST:
            raise ConfigurationError(
                f"SQLite {sqlite3.sqlite_version} is too old, Headway needs 3.37 or newer: use a newer Python build"
            )
        if not self._in_memory:
            check_path(Path(self._path))
        try:
            connection: sqlite3.Connection = connect(self._path)
            forget_statistics(connection)
            return Session(self._parts, connection)
        except sqlite3.Error as error:
            raise explain(error, self._path) from error

    def _migrate(self, session: Session) -> list[str]:
        execute = session.connection.execute
        execute(_MIGRATION_TABLE)
        applied = dict(execute("select number, breaking from headway_migration").fetchall())
        todo = migrations.missing(self._known, applied)
        for step in todo:
            for statement in split(step.sql):
                execute(statement)
            execute(
                "insert into headway_migration (number, name, breaking) values (?, ?, ?)",
                (step.number, step.name, int(step.breaking)),
            )
        return [step.name for step in todo]


def forget_statistics(connection: sqlite3.Connection) -> None:
    """Our statements name their indexes and the order of their joins. Where the planner has statistics all the same, it
    puts Bloom filters before its searches, and fills each by a walk through all of a table: a claim then costs what the
    backlog holds, and a list what there is. Earlier releases gathered some."""
    gathered = connection.execute("select 1 from sqlite_master where name = 'sqlite_stat1'").fetchone()
    if gathered and connection.execute("select 1 from sqlite_stat1 where tbl glob 'headway_*'").fetchone():
        connection.execute("delete from sqlite_stat1 where tbl glob 'headway_*'")
        connection.execute("analyze sqlite_master")


def check_path(path: Path) -> None:
    """Say what is wrong with a path before SQLite says "unable to open database file"."""
    directory = path.absolute().parent
    if path.is_dir():
        raise ConfigurationError(f"the store {path} is a directory: name a file in it, such as {path / 'headway.db'}")
    if not directory.is_dir():
        raise ConfigurationError(f"the store {path} can't be made, there is no directory {directory}: create it first")
    if not os.access(directory, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ConfigurationError(
            f"the store {path} can't be written to by this user: change the rights of the file and of its directory "
            f"{directory} (SQLite needs to write to both), or name a file elsewhere"
        )


def split(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit before them."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
