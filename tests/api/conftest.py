"""The service over real HTTP, in this process, on each kind of store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import sql

from headway import Headway
from headway.api.gate import TokenGate
from headway.api.process import AppApi
from headway.store import make_store
from tests.flow.processes import Processes
from tests.servers import Postgres

TOKEN = "a-token-of-the-tests"
PREFIX = "/api/v1"
TARGET = {"name": "box", "host": "box.example.com", "user": "deploy", "credential": {"password": "a password"}}


class Site:
    """A service that runs, its app, and a client of it."""

    def __init__(self, app: Headway, api: AppApi, client: httpx.AsyncClient) -> None:
        self.app = app
        self.api = api
        self.client = client

    async def ask(self, method: str, path: str, **rest: Any) -> httpx.Response:
        """A request below /api/v1."""
        return await self.client.request(method, f"{PREFIX}{path}", **rest)

    async def get(self, path: str, **rest: Any) -> httpx.Response:
        return await self.ask("GET", path, **rest)

    async def post(self, path: str, body: Any = None, **rest: Any) -> httpx.Response:
        return await self.ask("POST", path, json=body, **rest)

    async def submit(self, **body: Any) -> dict[str, Any]:
        """A new job."""
        answer = await self.post("/jobs", {"kind": "call", "function": "nobody.knows", **body})
        assert answer.status_code == 201, answer.text
        job: dict[str, Any] = answer.json()
        return job


@pytest.fixture(scope="session")
def api_template(postgres: Postgres) -> Iterator[str]:
    """A migrated database that the tests use one after another."""
    url = postgres.create_database()
    asyncio.run(_migrate(url))
    yield url
    postgres.drop_database(url)


@pytest.fixture
def postgres_store_url(api_template: str) -> str:
    """The same database, empty again: a tenth of the time a new one takes."""
    with psycopg.connect(api_template, autocommit=True) as connection:
        found = connection.execute(
            "select tablename from pg_tables where schemaname = 'headway' and tablename <> 'migration'"
        )
        names = [sql.Identifier(row[0]) for row in found.fetchall()]
        connection.execute(sql.SQL("").join(sql.SQL("delete from headway.{};").format(name) for name in names))
    return api_template


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where keys are kept: not in the directory in which the tests run."""
    directory = tmp_path / "data"
    monkeypatch.setenv("HEADWAY_DATA", str(directory))
    return directory


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store ready for use, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'headway.db'}"
    url: str = request.getfixturevalue("postgres_store_url")
    return url


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as started:
        yield started


@pytest.fixture
async def site(store_url: str) -> AsyncIterator[Site]:
    """The service on each kind of store."""
    async with serving(Headway(store_url)) as site:
        yield site


@pytest.fixture
async def memory_site() -> AsyncIterator[Site]:
    """The service on a store in memory, for what doesn't depend on the store."""
    async with serving(Headway("sqlite://")) as site:
        yield site


@pytest.fixture
async def sites(store_url: str) -> AsyncIterator[Callable[[Headway], Any]]:
    """Makes services for apps of the test's own."""
    async with AsyncExitStack() as stack:

        async def make(app: Headway) -> Site:
            return await stack.enter_async_context(serving(app))

        yield make


@asynccontextmanager
async def serving(app: Headway) -> AsyncIterator[Site]:
    """The API of an app, and a client with a token."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    api = AppApi(app, TokenGate(TOKEN), port=0)
    client = httpx.AsyncClient(base_url=api.url, headers=headers, trust_env=False, timeout=60)
    async with api, client:
        yield Site(app, api, client)
    await app.aclose()


async def _migrate(url: str) -> None:
    store = make_store(url)
    await store.migrate()
    await store.close()
