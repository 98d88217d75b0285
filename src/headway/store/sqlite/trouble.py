"""What went wrong in SQLite, in words that say what to do."""

from __future__ import annotations

import sqlite3

from headway.model.errors import HeadwayError, NotStorable, SchemaError, StoreUnavailable

_ADVICE = {
    sqlite3.SQLITE_BUSY: "another process has held its write lock for too long: look for a program that keeps a "
    "transaction open on this file",
    sqlite3.SQLITE_LOCKED: "another connection of this process has locked a table of it: end its transaction",
    sqlite3.SQLITE_FULL: "the disk is full: free some space, the jobs stored so far are safe",
    sqlite3.SQLITE_READONLY: "it can't be written to: check the rights of the file and of its directory, and that the "
    "file system is not mounted read-only",
    sqlite3.SQLITE_PERM: "it can't be written to: check the rights of the file and of its directory",
    sqlite3.SQLITE_CANTOPEN: "it can't be opened: check that the directory exists and that this user may write there",
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database: name another file",
    sqlite3.SQLITE_CORRUPT: "it is damaged: stop all processes that use it and restore it from a backup, or try "
    "`sqlite3 FILE .recover`",
    sqlite3.SQLITE_IOERR: "the disk doesn't do as it is told: check the disk and the kernel's log",
}


def explain(error: sqlite3.Error, path: str) -> HeadwayError:
    """The error as a user should meet it."""
    if "no such table: headway_" in str(error) or "no such column" in str(error):
        return SchemaError(f"the tables in {path} are not as this code needs them: run `headway migrate` ({error})")
    if isinstance(error, sqlite3.IntegrityError | sqlite3.DataError):
        return NotStorable(f"the store can't take this: {error}")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    advice = _ADVICE.get(code, "see the message of SQLite")
    return StoreUnavailable(f"can't use the store {path}: {advice} ({error})")
