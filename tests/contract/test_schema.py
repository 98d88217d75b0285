"""The schema's steps, and code of another age."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from headway.clock import FakeClock
from headway.model.errors import SchemaError
from headway.model.submission import Submission
from headway.store.sql import SqlStore
from headway.store.statements import load
from tests.contract.house import House

AddStep = Callable[[bool], None]


@pytest.fixture(params=["sqlite-file", "postgres"])
def aged(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> tuple[Callable[[], SqlStore], AddStep]:
    """A store of the test's own, and a way to take a step that this code doesn't know."""
    if request.param == "postgres":
        from headway.store.postgres import postgres_store

        url: str = request.getfixturevalue("migrated_url")

        def add_postgres(breaking: bool) -> None:
            with psycopg.connect(url) as connection:
                connection.execute("insert into headway.migration values (9999, '9999_future', %s)", [breaking])

        return lambda: postgres_store(url, clock=clock), add_postgres

    from headway.store.sqlite import sqlite_store

    path = tmp_path / "aged.db"

    def add_sqlite(breaking: bool) -> None:
        connection = sqlite3.connect(path)
        connection.execute(
            "insert into headway_migration (number, name, breaking) values (9999, '9999_future', ?)", [int(breaking)]
        )
        connection.commit()
        connection.close()

    return lambda: sqlite_store(str(path), clock=clock), add_sqlite


async def test_to_migrate_twice_is_harmless(house: House) -> None:
    job_id = await house.submit()
    assert await house.store.migrate() == []
    assert not await house.gone(job_id)


async def test_a_store_ahead_of_this_code_is_fine_without_a_breaking_step(
    aged: tuple[Callable[[], SqlStore], AddStep], clock: FakeClock
) -> None:
    make, add_step = aged
    store = make()
    await store.migrate()
    add_step(False)
    await store.close()
    again = make()
    await again.open()
    assert await again.migrate() == []
    assert await again.now() == clock.now()
    await again.close()


async def test_a_breaking_step_ahead_of_this_code_locks_it_out(
    aged: tuple[Callable[[], SqlStore], AddStep],
) -> None:
    make, add_step = aged
    store = make()
    await store.migrate()
    add_step(True)
    await store.close()
    again = make()
    with pytest.raises(SchemaError, match="upgrade headway"):
        await again.open()
    with pytest.raises(SchemaError, match="upgrade headway"):
        await again.migrate()
    await again.close()


async def test_an_empty_database_asks_to_be_migrated(postgres_url: str, clock: FakeClock) -> None:
    from headway.store.postgres import postgres_store

    store = postgres_store(postgres_url, clock=clock)
    with pytest.raises(SchemaError, match="headway migrate"):
        await store.open()
    await store.migrate()
    await store.open()
    await store.close()


async def test_statistics_that_would_mislead_the_planner_are_forgotten(tmp_path: Path, clock: FakeClock) -> None:
    """With them each claim on SQLite walks through the whole backlog to fill a Bloom filter."""
    from headway.store.sqlite import sqlite_store

    path = tmp_path / "analyzed.db"
    store = sqlite_store(str(path), clock=clock)
    await store.open()
    await store.submit([_job(number) for number in range(200)])
    await store.vacuum()
    await store.close()
    assert "BLOOM" not in _plan_of_a_claim(path)
    outsider = sqlite3.connect(path)
    outsider.execute("analyze")
    outsider.close()
    assert "BLOOM" in _plan_of_a_claim(path)
    again = sqlite_store(str(path), clock=clock)
    await again.open()
    await again.close()
    assert "BLOOM" not in _plan_of_a_claim(path)


def _job(number: int) -> Submission:
    return Submission(id=UUID(int=number), kind="call", name="mail", payload="{}")


def _plan_of_a_claim(path: Path) -> str:
    statement = load("headway.store.sqlite.sql", "?")["claim_due"]
    connection = sqlite3.connect(path)
    steps = connection.execute(f"explain query plan {statement.text}", [None] * len(statement.parameters)).fetchall()
    connection.close()
    return "\n".join(step[3] for step in steps)
