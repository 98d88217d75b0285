"""Every bus that must keep the promises, each on a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import pika
import pytest

from headway.bus.commands import Handler, Options, serve_commands
from headway.bus.rabbit.desk import Desk
from headway.contracts.buses.town import Town
from headway.contracts.fixtures import queue, town  # noqa: F401 - fixtures are found by their names
from tests.bus.clerk import Serve
from tests.bus.client import QUEUE, Client
from tests.bus.cutter import Cutter
from tests.rabbit import Rabbit
from tests.servers import Postgres

BUSES = ["local", "notify", "rabbit"]
FAR = ["notify", "rabbit"]
"""Those with a broker that can be lost."""


@pytest.fixture(scope="session")
def postgres_bus_url(postgres: Postgres) -> str:
    return postgres.create_database()


@pytest.fixture(params=BUSES)
def bus_url(request: pytest.FixtureRequest) -> str:
    return _url(request)


@pytest.fixture(params=FAR)
async def far_url(request: pytest.FixtureRequest) -> str:
    return _url(request)


@pytest.fixture
async def cutter(far_url: str) -> AsyncIterator[Cutter]:
    """In front of a broker that the test may lose."""
    async with Cutter(far_url) as cutter:
        yield cutter


@pytest.fixture
async def far_town(cutter: Cutter) -> AsyncIterator[Town]:
    """A town whose way to the broker can be cut."""
    async with AsyncExitStack() as stack:
        yield Town(cutter.url, stack)


@pytest.fixture
async def rabbit_town(rabbit: Rabbit) -> AsyncIterator[Town]:
    async with AsyncExitStack() as stack:
        yield Town(rabbit.url, stack)


@pytest.fixture
def foreign(rabbit: Rabbit) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    """A channel of a client that knows nothing of Headway."""
    with rabbit.connect() as connection:
        yield connection.channel()


@pytest.fixture
def client(rabbit: Rabbit) -> Iterator[Client]:
    rabbit.delete(QUEUE)
    with Client(rabbit) as client:
        yield client


@pytest.fixture
async def serve(rabbit: Rabbit, client: Client) -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:

        async def act(handler: Handler, url: str | None = None, **options: Any) -> Desk:
            desk = await serve_commands(url or rabbit.url, handler, options=Options(**options))
            stack.push_async_callback(desk.close)
            return desk

        yield act


def _url(request: pytest.FixtureRequest) -> str:
    match request.param:
        case "notify":
            url: str = request.getfixturevalue("postgres_bus_url")
            return url
        case "rabbit":
            rabbit: Rabbit = request.getfixturevalue("rabbit")
            return rabbit.url
        case _:
            return f"local://{uuid4()}"
