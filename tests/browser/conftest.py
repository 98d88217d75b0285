"""One browser for all tests, and services on each kind of store. All of it lives on one loop: browsers are slow to
start, and what playwright opens belongs to the loop that opened it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.browser.chrome import EXECUTABLE, FLAGS, Visitor
from tests.browser.house import TOKEN, House
from tests.servers import Postgres


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browsers share a loop for the whole session."""
    for item in items:
        if "tests/browser/" in item.nodeid and iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chrome() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=EXECUTABLE, args=FLAGS)
        yield browser
        await browser.close()


@pytest.fixture(scope="session")
def sqlite_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    directory = tmp_path_factory.mktemp("sqlite")
    yield from _serving(directory, f"sqlite:///{directory / 'headway.db'}")


@pytest.fixture(scope="session")
def postgres_house(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[House]:
    url = postgres.create_database()
    yield from _serving(tmp_path_factory.mktemp("postgres"), url)
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgres"])
def house(request: pytest.FixtureRequest) -> House:
    """A service on each kind of store, which other tests use too."""
    found: House = request.getfixturevalue(f"{request.param}_house")
    return found


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service full of life."""
    directory = tmp_path_factory.mktemp("demo")
    house = House(directory, f"sqlite:///{directory / 'headway.db'}", "--demo", HEADWAY_ADMIN_TOKEN=TOKEN)
    house.start()
    yield house
    house.close()


@pytest_asyncio.fixture(loop_scope="session")
async def visit(chrome: Browser) -> AsyncIterator[Callable[..., Visitor]]:
    """Makes visitors: `async with visit(house) as ann: …`"""

    def make(house: House, **view: Any) -> Visitor:
        return Visitor(chrome, house.url, **view)

    yield make


def _serving(directory: Path, store: str) -> Iterator[House]:
    # Jobs of the tests ask servers of the tests, on this machine.
    house = House(directory, store, "--app", "jobs:app", HEADWAY_ADMIN_TOKEN=TOKEN, HEADWAY_ALLOW_PRIVATE="127.0.0.1")
    house.start()
    yield house
    house.close()
