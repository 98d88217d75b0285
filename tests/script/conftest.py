"""One OpenSSH server for all tests here, and others for those that break theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from uuid import uuid4

import pytest

from headway.executors.script.hosts import Access
from headway.model.target import Target, TargetKind
from tests.flow.conftest import migrate
from tests.script.far import Bench
from tests.servers import Postgres
from tests.sshd import SshServer, kill_runs


@pytest.fixture(scope="session")
def sshd() -> Iterator[SshServer]:
    """Shared: do it no harm."""
    with SshServer() as server:
        yield server


@pytest.fixture(scope="session")
def migrated(postgres: Postgres) -> Iterator[str]:
    """A migrated database to copy: quicker than migrating one for every test."""
    url = postgres.create_database()
    asyncio.run(migrate(url))
    yield url
    postgres.drop_database(url)


@pytest.fixture
def private_sshd() -> Iterator[SshServer]:
    """To be killed, and to change its key."""
    with SshServer() as server:
        yield server


@pytest.fixture
async def bench(sshd: SshServer) -> AsyncIterator[Bench]:
    """An executor for the shared server, logged in by key."""
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:
        yield bench


@pytest.fixture(params=["user", "root", "local"])
async def any_bench(
    request: pytest.FixtureRequest, sshd: SshServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Bench]:
    """A normal user, root, and the machine itself."""

    directory = tmp_path_factory.mktemp("local")

    def local() -> Target:
        return Target(id=uuid4(), name="here", kind=TargetKind.LOCAL, directory=str(directory))

    makers: dict[str, Callable[[], Target]] = {"user": sshd.target, "root": sshd.root_target, "local": local}
    async with Bench(Access(makers[request.param](), sshd.by_key)) as bench:
        yield bench
    kill_runs(directory / "runs")
