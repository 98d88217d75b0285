"""Servers and databases for every test. A server that a test asks for is started here, never looked for."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.rabbit import Rabbit, RabbitServer
from tests.servers import Postgres, PostgresServer
from tests.watchdog import Watchdog

# How long an example takes says more about the machine, on which several tests run at a time, than about the code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Watchdog(config))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The PostgreSQL server that all tests share; do it no harm.

    It is our own, unless HEADWAY_TEST_POSTGRES_URL names another on which databases may be created.
    """
    if url := os.environ.get("HEADWAY_TEST_POSTGRES_URL"):
        yield Postgres(url)
        return
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The URL of an empty database, for this test alone."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def private_postgres() -> Iterator[PostgresServer]:
    """A server for this test alone, to be stopped, killed and started again."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def rabbit() -> Iterator[Rabbit]:
    """The RabbitMQ broker that all tests share; do it no harm.

    It is our own, unless HEADWAY_TEST_AMQP_URL names another.
    """
    if url := os.environ.get("HEADWAY_TEST_AMQP_URL"):
        yield Rabbit(url)
        return
    with RabbitServer() as server:
        yield server


@pytest.fixture(scope="session")
def _breakable_rabbit() -> Iterator[RabbitServer]:
    with RabbitServer() as server:
        yield server


@pytest.fixture
def private_rabbit(_breakable_rabbit: RabbitServer) -> RabbitServer:
    """A broker to be killed, wiped and started again. One serves all such tests: a start takes seconds."""
    _breakable_rabbit.start()
    return _breakable_rabbit
