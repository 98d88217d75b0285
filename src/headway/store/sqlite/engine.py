"""What an SQLite file and the place where it lies mean for our promises."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from headway.model.findings import Finding, fine, problem, warning
from headway.model.words import size

LITTLE = 1 << 30
TOO_LITTLE = 100 << 20
LONG_JOURNAL = 256 << 20
MOUNTS = Path("/proc/mounts")
NETWORK = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs"),
    *("gfs2", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs"),
}


def examine(connection: sqlite3.Connection, path: str) -> list[Finding]:
    """One finding for each thing that could hurt."""
    if path == ":memory:":
        return [fine("file", "in the memory of this process")]
    file = Path(path).absolute()
    mounts = MOUNTS.read_text() if MOUNTS.exists() else ""
    return [
        rights(file),
        disk(file.parent, shutil.disk_usage(file.parent).free),
        file_system(file.parent.resolve(), mounts),
        journal(connection, file),
        stored(connection, file),
    ]


def rights(file: Path) -> Finding:
    for path in (file, file.parent):
        if not os.access(path, os.W_OK):
            return problem("rights", f"this user may not write to {path}", f"chown or chmod {path}: SQLite needs both")
    return fine("rights", f"{file} and its directory can be read and written")


def disk(directory: Path, free: int) -> Finding:
    text = f"{size(free)} are free in {directory}"
    if free >= LITTLE:
        return fine("disk", text)
    return (problem if free < TOO_LITTLE else warning)(
        "disk", text, "free some space: when the disk is full, no job can be stored"
    )


def file_system(directory: Path, mounts: str) -> Finding:
    """SQLite's locks and its shared memory don't work over a network."""
    kind = file_system_of(directory, mounts)
    if kind in NETWORK:
        return problem(
            "file system",
            f"{directory} lies on a network file system ({kind}), where SQLite's locks can't be trusted",
            "put the file on a local disk, or use PostgreSQL for several machines",
        )
    return fine("file system", f"{kind}, local" if kind else "not known")


def file_system_of(directory: Path, mounts: str) -> str | None:
    """The type of the file system that holds the directory, by a text like that of /proc/mounts."""
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(fields[1].replace("\\040", " "))
        # Of two on the same point the later one lies on top.
        if directory.is_relative_to(point) and (found is None or len(point.parts) >= found[0]):
            found = len(point.parts), fields[2]
    return found[1] if found else None


def journal(connection: sqlite3.Connection, file: Path) -> Finding:
    mode, synchronous = (connection.execute(f"pragma {name}").fetchone()[0] for name in ("journal_mode", "synchronous"))
    log = file.with_name(file.name + "-wal")
    length = log.stat().st_size if log.exists() else 0
    if mode != "wal" or synchronous < 2:
        return problem(
            "journal",
            f"journal_mode is {mode}, synchronous is {synchronous}: jobs that were accepted can be lost",
            "see that the file lies on a local disk that supports shared memory",
        )
    if length > LONG_JOURNAL:
        return warning(
            "journal", f"the write-ahead log has {size(length)}", "look for a program that keeps a transaction open"
        )
    return fine("journal", f"write-ahead log ({size(length)}), synchronous FULL")


def stored(connection: sqlite3.Connection, file: Path) -> Finding:
    [jobs] = connection.execute("select count(*) from headway_job").fetchone()
    [free] = connection.execute("pragma freelist_count").fetchone()
    [page] = connection.execute("pragma page_size").fetchone()
    return fine("size", f"{jobs:,} jobs; {size(file.stat().st_size)}, {size(free * page)} of it free for new ones")
