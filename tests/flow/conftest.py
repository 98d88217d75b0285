"""Stores as users have them: an SQLite file, a PostgreSQL database. And worker processes that surely end."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import Headway
from headway.serve import Plan
from headway.store import make_store
from tests.flow.processes import Processes, Project
from tests.servers import Postgres


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What commands print is seen on SQLite, and on PostgreSQL by `make prove`: every command starts a process, and
    both stores keep one contract."""
    for item in items:
        if item.path.name.startswith("test_cli_") and item.name.endswith("[postgres]"):
            item.add_marker("prove")


@pytest.fixture(scope="session")
def flow_template(postgres: Postgres) -> Iterator[str]:
    """A migrated database to copy: quicker than migrating one for every test."""
    url = postgres.create_database()
    asyncio.run(migrate(url))
    yield url
    postgres.drop_database(url)


@pytest.fixture
def migrated(postgres: Postgres, flow_template: str) -> Iterator[str]:
    """A migrated database on PostgreSQL, for this test alone."""
    url = postgres.create_database(flow_template)
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store ready for use, of each kind."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    url: str = request.getfixturevalue("migrated")
    return url


@pytest.fixture(autouse=True)
def on_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    """HEADWAY_BUS holds for workers and schedulers in this process too, however their app is made."""
    if url := os.environ.get("HEADWAY_BUS"):
        plan = Headway._plan

        def with_bus(app: Headway) -> Plan:
            app.bus = app.bus or url
            return plan(app)

        monkeypatch.setattr(Headway, "_plan", with_bus)


@pytest.fixture
def app(store_url: str) -> Iterator[Headway]:
    """An app on each kind of store; closed, it leaves nothing behind."""
    before = ours()
    app = Headway(store_url)
    yield app
    app.close()
    assert ours() == before


@pytest.fixture
def sqlite_app(tmp_path: Path) -> Iterator[Headway]:
    """An app on a file, for what does not depend on the store."""
    app = Headway(sqlite_url(tmp_path))
    yield app
    app.close()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Starts processes; whatever the test does, they are gone after it."""
    with Processes(tmp_path) as started:
        yield started


@pytest.fixture
def project(tmp_path: Path, store_url: str, processes: Processes) -> Iterator[Project]:
    """A user's directory with an app in `jobs.py`, on each kind of store."""
    with Project(tmp_path, store_url, processes) as project:
        yield project


@pytest.fixture
def sqlite_project(tmp_path: Path, processes: Processes) -> Iterator[Project]:
    with Project(tmp_path, sqlite_url(tmp_path), processes) as project:
        yield project


@pytest.fixture
def postgres_project(tmp_path: Path, migrated: str, processes: Processes) -> Iterator[Project]:
    with Project(tmp_path, migrated, processes) as project:
        yield project


def ours() -> set[threading.Thread]:
    """The threads of ours that run now."""
    return {
        thread
        for thread in threading.enumerate()
        if thread.name in {"headway-client", "headway-keeper", "headway-scheduler"}
    }


def sqlite_url(directory: Path) -> str:
    return f"sqlite:///{directory / 'headway.db'}"


async def migrate(url: str) -> None:
    store = make_store(url)
    await store.migrate()
    await store.close()
