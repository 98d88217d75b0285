"""Fixtures that the suites share. In a package's `conftest.py`: `pytest_plugins = ["headway.contracts.fixtures"]`"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from headway.clock import FakeClock
from headway.contracts.buses.town import Town
from headway.contracts.stores.house import House, Maker, moved_in
from headway.store import make_store as store_of
from headway.store.contract import Store


@pytest.fixture
def clock() -> FakeClock:
    """What stores under test go by: it stands still unless a test moves it."""
    return FakeClock()


@pytest.fixture
async def house(make_store: Maker, clock: FakeClock) -> AsyncIterator[House]:
    """A store under test."""
    async with moved_in(House, make_store, clock) as house:
        yield house


@pytest.fixture
def shared(house: House) -> House:
    """A store that several processes can share."""
    return house


@pytest.fixture
async def town(bus_url: str) -> AsyncIterator[Town]:
    """The buses of several processes, under test."""
    async with AsyncExitStack() as stack:
        yield Town(bus_url, stack)


@pytest.fixture
def queue() -> str:
    """A queue for this test alone."""
    return f"queue {uuid4()}"


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    """A store in memory, for executors under test and the worker that runs them."""
    made = store_of("sqlite://")
    await made.open()
    yield made
    await made.close()
