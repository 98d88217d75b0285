"""A site to send requests to, and apps whose workers may reach it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headway import Headway, Job, Retry
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies, Origin
from headway.kinds.contract import Kind
from headway.model.submission import Submission
from headway.model.worker import FunctionInfo
from tests.flow.conftest import (  # noqa: F401 - fixtures are found by their names
    flow_template,
    migrated,
    processes,
    sqlite_url,
    store_url,
)
from tests.outgoing.site import Site

QUICK = Retry(max_attempts=3, wait=0.01)
ONCE = Retry(max_attempts=1)


def result_of(job: Job[Any]) -> Any:
    assert job.error is None, job.error
    return job.result


class NoFunctions:
    async def function(self, name: str) -> FunctionInfo | None:
        return None


async def read_body(body: dict[str, Any], **kinds: Kind) -> Submission:
    """The submission that a body asks for."""
    return (await Bodies({**load_kinds(), **kinds}, NoFunctions()).read(body, Origin())).submission


@pytest.fixture(autouse=True)
def _reach_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_ALLOW_PRIVATE", "127.0.0.1")
    for name in ("HEADWAY_FETCH_WINDOW", "HEADWAY_FETCH_MAX_SIZE", "HEADWAY_HOST_LIMITS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


class Bench:
    """An app with a worker at work."""

    def __init__(self, app: Headway) -> None:
        self.app = app

    async def http(self, url: str, **fields: Any) -> Job[Any]:
        """A request, done or failed."""
        return await self.ended("http", {"callback_url": url, **fields})

    async def fetch(self, url: str, **fields: Any) -> Job[Any]:
        """A fetch, done or failed."""
        return await self.ended("fetch", {"url": url, **fields})

    async def ended(self, kind: str, fields: dict[str, Any], **options: Any) -> Job[Any]:
        job = await self.app.asubmit(kind, fields, **{"retry": QUICK, **options})
        return await self.app.await_ended(job.id, 60)


@asynccontextmanager
async def at_work(url: str = "sqlite://", **settings: Any) -> AsyncIterator[Bench]:
    app = Headway(url)
    try:
        async with app.worker(**settings):
            yield Bench(app)
    finally:
        await app.aclose()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """On a store in memory, for what does not depend on the store."""
    async with at_work() as bench:
        yield bench


@pytest.fixture
async def stored(store_url: str) -> AsyncIterator[Bench]:  # noqa: F811 - pytest's way
    """On each kind of store."""
    async with at_work(store_url) as bench:
        yield bench
