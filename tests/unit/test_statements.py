"""Both dialects say the same: the same statements, with the same parameters."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

import headway
from headway.store import migrations
from headway.store.sqlite.driver import split
from headway.store.statements import Statement, load

POSTGRES = load("headway.store.postgres.sql", "$")
SQLITE = load("headway.store.sqlite.sql", "?")

ONLY_SQLITE = {"prolong_leases", "shorten_leases"}
"""PostgreSQL's clock is the server's, and nobody there makes up for its jumps."""
ONLY_POSTGRES = {"server_facts", "lacking_rights", "long_transactions", "table_sizes"}
"""What a server can tell about itself; a file is looked at in other ways."""
LACKING_IN_SQLITE = {
    # No dead rows lie in the way of the next claim.
    "claim_due": {"ttl", "rescan", "hush"},
    # Open jobs are found by their key in an index, held ones too.
    "hold_lease": {"keys"},
}


def _parameters(statement: Statement, lacking: set[str]) -> tuple[list[str], list[str]]:
    return list(statement.row_parameters), [name for name in statement.parameters if name not in lacking]


def test_both_dialects_have_the_same_statements() -> None:
    assert set(POSTGRES) - ONLY_POSTGRES == set(SQLITE) - ONLY_SQLITE


@pytest.mark.parametrize("name", sorted(set(POSTGRES) - ONLY_POSTGRES))
def test_both_dialects_take_the_same_parameters(name: str) -> None:
    assert _parameters(SQLITE[name], set()) == _parameters(POSTGRES[name], LACKING_IN_SQLITE.get(name, set()))


def test_every_statement_is_asked_for() -> None:
    code = "".join(file.read_text() for file in Path(headway.__path__[0]).rglob("*.py"))
    assert [name for name in {**POSTGRES, **SQLITE} if f'"{name}"' not in code] == []


def test_no_statement_stands_in_two_files() -> None:
    for dialect in ("postgres", "sqlite"):
        package = f"headway.store.{dialect}.sql"
        assert len(load(package, "?")) == _headers(package)


def test_both_dialects_have_the_same_tables_and_columns() -> None:
    postgres, sqlite = _columns("headway.store.postgres.migrations"), _columns("headway.store.sqlite.migrations")
    postgres["lease"].remove("keys")
    # SQLite has indexes in their place, which its claims needn't write to.
    del postgres["arrival"], postgres["ended"]
    assert {table: sorted(names) for table, names in postgres.items()} == {
        table: sorted(names) for table, names in sqlite.items()
    }


@pytest.mark.parametrize("name", sorted(name for name, statement in SQLITE.items() if statement.text))
def test_sqlite_understands_every_statement(name: str, schema: sqlite3.Connection) -> None:
    text = SQLITE[name].text
    places = max((int(number) for number in re.findall(r"\?(\d+)", text)), default=0)
    schema.text_factory = bytes
    assert schema.execute(f"explain {text}", [None] * places).fetchall()


@pytest.mark.parametrize("name", ["claim_due", "due_candidates", "peek"])
def test_jobs_due_later_are_not_walked_over(name: str, schema: sqlite3.Connection) -> None:
    text = SQLITE[name].text
    places = max(int(number) for number in re.findall(r"\?(\d+)", text))
    plan = [row[3] for row in schema.execute(f"explain query plan {text}", [None] * places)]
    assert [step for step in plan if step.startswith("SCAN headway_") or "SCAN j" in step.replace("json", "")] == []
    assert any("headway_job_ready (queue=? AND rank=?" in step for step in plan)
    assert not any(step.startswith("SEARCH j ") and "headway_job_ready (queue=?)" in step for step in plan)
    # Keys that are full may be put in order, but no jobs: they are met in theirs.
    assert sum("TEMP B-TREE" in step for step in plan) == text.count("over (order by value)")


@pytest.fixture
def schema() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for step in migrations.load("headway.store.sqlite.migrations"):
        for statement in split(step.sql):
            connection.execute(statement)
    return connection


def _headers(package: str) -> int:
    from importlib.resources import files

    texts = [file.read_text() for file in files(package).iterdir() if file.name.endswith(".sql")]
    return sum(len(re.findall(r"^-- name: ", text, re.MULTILINE)) for text in texts)


def _columns(package: str) -> dict[str, list[str]]:
    """The columns of each table, as the migrations spell them."""
    text = "\n".join(step.sql for step in migrations.load(package))
    tables = re.findall(r"create table headway[._](\w+) \(\n(.*?)\n\)", text, re.DOTALL)
    return {
        table: [name for name in re.findall(r"^    (\w+) +\S", body, re.MULTILINE) if name != "primary"]
        for table, body in tables
    }
