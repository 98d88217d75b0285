"""Every store that must keep the promises, each driven by a clock of the test's own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from headway.clock import FakeClock
from headway.contracts.stores.house import moved_in
from headway.store.postgres import postgres_store
from headway.store.sql import SqlStore
from tests.contract.house import House
from tests.contract.mutations import mutate
from tests.servers import Postgres

STORES = ["sqlite-memory", "sqlite-file", "postgres"]
MUTATION = "HEADWAY_TEST_MUTATION"
"""Names a mutation of `mutations.py` that every store of this run is to carry: the suite must then fail."""

Maker = Callable[[], SqlStore]


@pytest.fixture(scope="session")
def postgres_template(postgres: Postgres) -> Iterator[str]:
    """A migrated database to copy: quicker than migrating one for every test."""
    url = postgres.create_database()
    asyncio.run(_migrate(url))
    yield url
    postgres.drop_database(url)


@pytest.fixture
def migrated_url(postgres: Postgres, postgres_template: str) -> Iterator[str]:
    """A migrated database on PostgreSQL, for this test alone."""
    url = postgres.create_database(postgres_template)
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="session")
def wipe_clean(postgres: Postgres, postgres_template: str) -> Iterator[Callable[[], str]]:
    """Makes the database that tests use one after another empty again: a tenth of the time a new copy takes."""
    url = postgres.create_database(postgres_template)
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "select tablename from pg_tables where schemaname = 'headway' and tablename <> 'migration'"
        )
        wipe = sql.SQL("").join(
            sql.SQL("delete from headway.{};").format(sql.Identifier(row[0])) for row in found.fetchall()
        )

        def act() -> str:
            connection.execute(wipe)
            return url

        yield act
    postgres.drop_database(url)


@pytest.fixture
def wiped_url(wipe_clean: Callable[[], str]) -> str:
    return wipe_clean()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=STORES)
def make_store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Maker:
    return _maker(request, tmp_path, clock)


@pytest.fixture(params=["sqlite-file", "postgres"])
def make_shared_store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Maker:
    return _maker(request, tmp_path, clock)


@pytest.fixture
async def house(make_store: Maker, clock: FakeClock) -> AsyncIterator[House]:
    """A store of each kind; whatever a test does with it, the sweep must find nothing to mend afterwards."""
    async with moved_in(House, make_store, clock) as house:
        yield house


@pytest.fixture
async def shared(make_shared_store: Maker, clock: FakeClock) -> AsyncIterator[House]:
    """A store that several processes can share."""
    async with moved_in(House, make_shared_store, clock) as house:
        yield house


@pytest.fixture
async def on_postgres(migrated_url: str, clock: FakeClock) -> AsyncIterator[House]:
    """A store on PostgreSQL, for what only it can promise."""
    async with moved_in(House, lambda: faulty(postgres_store(migrated_url, clock=clock)), clock) as house:
        yield house


def faulty(store: SqlStore) -> SqlStore:
    """With the fault that this run is to carry, if any."""
    if name := os.environ.get(MUTATION):
        mutate(store, name)
    return store


def _maker(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Maker:
    match request.param:
        case "postgres":
            url: str = request.getfixturevalue("wiped_url")
            return lambda: faulty(postgres_store(url, clock=clock))
        case "sqlite-file":
            from headway.store.sqlite import sqlite_store

            return lambda: faulty(sqlite_store(str(tmp_path / "headway.db"), clock=clock))
        case _:
            from headway.store.sqlite import sqlite_store

            return lambda: faulty(sqlite_store(":memory:", clock=clock))


async def _migrate(url: str) -> None:
    store = postgres_store(url)
    await store.migrate()
    await store.close()
