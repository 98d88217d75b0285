"""What engines find out about themselves: the rules, on facts that no healthy server would show."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headway.model.findings import Finding, Level
from headway.store.postgres import engine as postgres
from headway.store.sqlite import engine as sqlite

FACTS: dict[str, Any] = {
    "version": "15.1",
    "standby": False,
    "read_only": False,
    "fsync": True,
    "full_page_writes": True,
    "autovacuum": True,
    "most": 97,
    "connections": 10,
    "workers": 3,
    "temp": True,
    "user_name": "app",
    "sees_all": True,
}


def facts(**changes: Any) -> Mapping[str, Any]:
    return {**FACTS, **changes}


def table(dead: int, live: int, vacuumed: float | None = None) -> list[dict[str, Any]]:
    return [{"table_name": "job", "dead": dead, "live": live, "octets": 1 << 20, "vacuumed": vacuumed}]


@pytest.mark.parametrize(
    ("finding", "level", "words"),
    [
        (postgres.server(FACTS), Level.OK, "PostgreSQL 15.1"),
        (postgres.server(facts(standby=True)), Level.PROBLEM, "is a standby"),
        (postgres.server(facts(read_only=True)), Level.PROBLEM, "read-only"),
        (postgres.durability(FACTS), Level.OK, "fsync on"),
        (postgres.durability(facts(fsync=False)), Level.PROBLEM, "fsync is off: jobs that were accepted can be lost"),
        (postgres.durability(facts(full_page_writes=False)), Level.PROBLEM, "full_page_writes is off"),
        (postgres.connections(FACTS), Level.OK, "10 of 97"),
        (postgres.connections(facts(connections=90)), Level.WARNING, "90 of 97"),
        (postgres.connections(facts(most=17)), Level.WARNING, "3 workers may need up to 9"),
        (postgres.rights(FACTS, []), Level.OK, "may read and write all tables"),
        (postgres.rights(facts(temp=False), []), Level.WARNING, "temporary"),
        (
            postgres.rights(FACTS, [{"privilege": "insert", "table_name": "job"}]),
            Level.PROBLEM,
            "app lacks insert on headway.job",
        ),
        (postgres.open_transactions(FACTS, [], 300), Level.OK, "none is open for longer than 5 min"),
        (postgres.open_transactions(facts(sees_all=False), [], 300), Level.OK, "pg_read_all_stats"),
        (
            postgres.open_transactions(
                FACTS,
                [
                    {
                        "pid": 7,
                        "user_name": "u",
                        "application_name": "psql",
                        "state": "idle in transaction",
                        "seconds": 900,
                    }
                ],
                300,
            ),
            Level.WARNING,
            "process 7 (psql, idle in transaction) for 15 min",
        ),
        (postgres.dead_rows(FACTS, table(100, 10)), Level.OK, "100 dead rows"),
        (postgres.dead_rows(FACTS, table(50_000, 1_000_000)), Level.OK, "(5%)"),
        (postgres.dead_rows(FACTS, table(50_000, 50_000, 3600)), Level.WARNING, "(50%), last vacuumed 1 h ago"),
        (postgres.dead_rows(facts(autovacuum=False), table(0, 0)), Level.WARNING, "autovacuum is off"),
        (postgres.stored(table(0, 1234)), Level.OK, "about 1,234 jobs; 1.0 MiB"),
        (sqlite.disk(Path("/data"), 5 << 30), Level.OK, "5.0 GiB"),
        (sqlite.disk(Path("/data"), 500 << 20), Level.WARNING, "500.0 MiB"),
        (sqlite.disk(Path("/data"), 50 << 20), Level.PROBLEM, "50.0 MiB"),
    ],
)
def test_each_danger_is_told_with_its_weight(finding: Finding, level: Level, words: str) -> None:
    assert finding.level is level
    assert words in finding.text
    assert bool(finding.mend) == (level is not Level.OK)


MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
server:/share /mnt/share nfs4 rw 0 0
/dev/sdb1 /mnt/share/local xfs rw 0 0
//files/x /mnt/with\\040space cifs rw 0 0
tmpfs /top tmpfs rw 0 0
server:/top /top nfs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("directory", "kind", "level"),
    [
        ("/home/ann", "ext4", Level.OK),
        ("/mnt/share", "nfs4", Level.PROBLEM),
        ("/mnt/share/deep/er", "nfs4", Level.PROBLEM),
        ("/mnt/shared", "ext4", Level.OK),
        ("/mnt/share/local/jobs", "xfs", Level.OK),
        ("/mnt/with space", "cifs", Level.PROBLEM),
        ("/top", "nfs", Level.PROBLEM),
    ],
)
def test_a_network_file_system_is_known_by_its_mount(directory: str, kind: str, level: Level) -> None:
    assert sqlite.file_system_of(Path(directory), MOUNTS) == kind
    assert sqlite.file_system(Path(directory), MOUNTS).level is level


def test_where_mounts_are_not_told_nothing_is_claimed() -> None:
    assert sqlite.file_system(Path("/"), "").text == "not known"


def test_a_journal_that_does_not_keep_promises_is_a_problem(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x.db")
    assert sqlite.journal(connection, tmp_path / "x.db").level is Level.PROBLEM
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    assert sqlite.journal(connection, tmp_path / "x.db").level is Level.OK
    with (tmp_path / "x.db-wal").open("wb") as log:
        log.truncate(sqlite.LONG_JOURNAL + 1)
    assert sqlite.journal(connection, tmp_path / "x.db").level is Level.WARNING
    connection.close()


def test_a_file_in_memory_has_nothing_to_be_looked_at() -> None:
    with sqlite3.connect(":memory:") as connection:
        assert [finding.level for finding in sqlite.examine(connection, ":memory:")] == [Level.OK]
    connection.close()
