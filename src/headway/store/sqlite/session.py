"""One connection to the file, and transactions on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from headway.store.scripts.news import News
from headway.store.sqlite.rows import Plan
from headway.store.sqlite.storetime import StoreTime
from headway.store.sqlite.trouble import explain
from headway.store.statements import Query, Row, Script, one

T = TypeVar("T")
C = TypeVar("C", bound=sqlite3.Connection)

_PRAGMAS = (
    "pragma busy_timeout = 30000",
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "pragma cache_size = -65536",
    "pragma wal_autocheckpoint = 4000",
    # What a statement of many rows would need to be undone is a file by default, made and removed for each.
    "pragma temp_store = memory",
)


LOOK_EVERY = 3
"""Milliseconds for which SQLite itself waits for the write lock. It looks for it less and less often, at last every
tenth of a second; so it is asked again and again."""
LOOKS = 10_000


class Outcome(msgspec.Struct, frozen=True):
    """What came of one operation."""

    result: Any = None
    error: Exception | None = None


class Parts(msgspec.Struct, frozen=True):
    """What a session works with; the same for all sessions of a driver."""

    path: str
    plans: Mapping[str, Plan]
    time: StoreTime
    ring: Callable[[Sequence[str]], None]
    tell: Callable[[Sequence[News]], None]


def connect(path: str, factory: type[C] = sqlite3.Connection) -> C:  # type: ignore[assignment]  # https://github.com/python/mypy/issues/3737
    """A connection with our settings. Which thread uses it is the runner's care."""
    connection = sqlite3.connect(
        path, timeout=30, isolation_level=None, check_same_thread=False, cached_statements=256, factory=factory
    )
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


class Session:
    """Runs operations on its connection; used by one thread at a time."""

    def __init__(self, parts: Parts, connection: sqlite3.Connection) -> None:
        self._parts = parts
        self.connection = connection
        self._cursor = connection.cursor()
        self._now = 0
        self._wakes: list[str] = []
        self._news: list[News] = []
        self.commits = 0
        self._impatient = False

    def drive(self, script: Script[T]) -> T:
        """Feed the script with rows until it returns."""
        rows: list[Row] | None = None
        while True:
            try:
                query = script.send(rows)  # type: ignore[arg-type]  # a fresh generator takes None
            except StopIteration as stop:
                result: T = stop.value
                return result
            rows = self.fetch(query)

    def fetch(self, query: Query) -> list[Row]:
        if "wake" in query.parameters:
            self._wakes += query.parameters["wake"]
        if "news" in query.parameters:
            self._news.append(query.parameters["news"])
        return self._parts.plans[query.name].run(self._cursor, query, self._now)

    def write(self, operations: Sequence[Operation[Any]]) -> list[Outcome]:
        """All operations in one transaction, each undone by itself if it fails; the bell is rung behind the commit."""
        self._wakes.clear()
        self._news.clear()
        try:
            jumped = self._begin()
            # One by itself needs no savepoint: if it fails, nothing else is to be kept.
            act = self._apart if jumped or len(operations) > 1 else self._alone
            outcomes = [act(operation) for operation in operations]
            if self.connection.in_transaction:
                self._cursor.execute("commit")
        except sqlite3.Error as error:
            self._roll_back()
            return [Outcome(error=explain(error, self._parts.path)) for _ in operations]
        self.commits += 1
        if self._wakes:
            self._parts.ring(sorted(set(self._wakes)))
        if self._news:
            self._parts.tell(self._news)
        return outcomes

    def read(self, operations: Sequence[Operation[Any]]) -> list[Outcome]:
        """Each operation by itself, on one unchanging view of the file."""
        return [self._look(operation) for operation in operations]

    def close(self) -> None:
        self._cursor.close()
        self.connection.close()

    def _begin(self) -> bool:
        """Whether something was changed already, because of a jump of the clock."""
        # Time is read behind the lock, for which we may have waited.
        self._lock()
        self._now, jump = self._parts.time.read()
        if jump:
            self.fetch(one("prolong_leases" if jump > 0 else "shorten_leases", before=self._now - jump))
        return jump != 0

    def _lock(self) -> None:
        if not self._impatient:
            self._cursor.execute(f"pragma busy_timeout = {LOOK_EVERY}")
            self._impatient = True
        for left in reversed(range(LOOKS)):
            try:
                self._cursor.execute("begin immediate")
                return
            except sqlite3.OperationalError as error:
                if not left or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise

    def _alone(self, operation: Operation[Any]) -> Outcome:
        try:
            return Outcome(operation(self))
        except Exception as error:
            if not self.connection.in_transaction:
                # As below.
                raise
            self._cursor.execute("rollback")
            self._wakes.clear()
            self._news.clear()
            return Outcome(error=self._told(error))

    def _apart(self, operation: Operation[Any]) -> Outcome:
        self._cursor.execute("savepoint operation")
        wakes, news = len(self._wakes), len(self._news)
        try:
            result = operation(self)
        except Exception as error:
            if not self.connection.in_transaction:
                # The engine has given up the whole transaction (disk full, input/output error).
                raise
            self._cursor.execute("rollback to operation")
            self._cursor.execute("release operation")
            del self._wakes[wakes:], self._news[news:]
            return Outcome(error=self._told(error))
        self._cursor.execute("release operation")
        return Outcome(result)

    def _look(self, operation: Operation[Any]) -> Outcome:
        self._now = self._parts.time.look()
        try:
            self._cursor.execute("begin")
            result = operation(self)
            self._cursor.execute("commit")
        except Exception as error:
            self._roll_back()
            return Outcome(error=self._told(error))
        return Outcome(result)

    def _roll_back(self) -> None:
        if self.connection.in_transaction:
            self._cursor.execute("rollback")

    def _told(self, error: Exception) -> Exception:
        """Wrong calls of the engine are our own fault, and stay as they are."""
        ours = isinstance(error, sqlite3.ProgrammingError)
        return explain(error, self._parts.path) if isinstance(error, sqlite3.DatabaseError) and not ours else error


Operation = Callable[[Session], T]
