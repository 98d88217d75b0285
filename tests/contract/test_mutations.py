"""The suite proves itself: each deliberate fault in the SQL must make a test fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headway.store.statements import load
from tests.contract.conftest import MUTATION
from tests.contract.mutations import MUTATIONS
from tests.servers import Postgres

PATIENCE = 120.0
"""Seconds: some faults make a test go round for ever."""
DIALECTS = {"postgres": ("headway.store.postgres.sql", "$"), "sqlite-memory": ("headway.store.sqlite.sql", "?")}
TESTS = {"postgres": "not sqlite", "sqlite-memory": "sqlite-memory"}
"""Tests that need PostgreSQL don't all say so in their names."""
# A fault that makes the SQL invalid would be caught by anything, and prove nothing.
INVALID = re.compile(r"asyncpg\.exceptions|sqlite3\.\w*Error|headway\.model\.errors|the mutation changes nothing")


@pytest.mark.parametrize(
    ("name", "dialect"), [(name, dialect) for name, mutation in MUTATIONS.items() for dialect in mutation.dialects]
)
def test_every_mutation_changes_something(name: str, dialect: str) -> None:
    MUTATIONS[name].apply(load(*DIALECTS[dialect]))


@pytest.mark.prove
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_mutation_is_caught(dialect: str, postgres: Postgres) -> None:
    names = [name for name, mutation in MUTATIONS.items() if dialect in mutation.dialects]
    caught = {name: run_with(name, dialect, postgres.admin_url) for name in names}
    print(f"\nMutations on {dialect}:")
    for name, test in caught.items():
        print(f"  {name:55} → {test or 'NOT CAUGHT'}")
    print(f"  {sum(map(bool, caught.values()))} of {len(caught)} caught")
    assert all(caught.values())


def run_with(name: str, dialect: str, postgres_url: str) -> str | None:
    """The first test that fails when every store has this fault."""
    arguments = [f"tests/contract/{MUTATIONS[name].caught_in}.py", "-x", "-q", "--tb=short", "-k", TESTS[dialect]]
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
            cwd=Path(__file__).parents[2],
            env={**os.environ, MUTATION: name, "HEADWAY_TEST_POSTGRES_URL": postgres_url},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"a test that goes on for more than {PATIENCE:g} s"
    assert run.returncode in {0, 1}, run.stdout + run.stderr
    assert not INVALID.search(run.stdout), run.stdout
    found = re.search(r"^(?:FAILED|ERROR) \S+::(\S+)", run.stdout, re.MULTILINE)
    return found[1] if found else None
