"""Executors that send requests, held to the contract of executors."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from headway.clock import SystemClock
from headway.contracts.executors import *  # noqa: F403 - tests are found by their names
from headway.contracts.executors import Trial
from headway.contracts.fixtures import store  # noqa: F401 - fixtures are found by their names
from headway.executors import fetch, http
from headway.executors.contract import Executor, Setup
from headway.store.contract import Store
from tests.outgoing.conftest import read_body
from tests.outgoing.site import Site

ADDRESS = {"http": "callback_url", "fetch": "url"}
MAKE = {"http": http.make, "fetch": fetch.make}


@pytest.fixture(params=MAKE)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def executor(kind: str, store: Store) -> Executor:  # noqa: F811 - pytest's way
    return MAKE[kind](Setup(clock=SystemClock(), store=store))


@pytest.fixture
async def trial(kind: str, site: Site) -> Trial:
    async def never(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async def good(request: web.Request) -> web.Response:
        return web.Response(text="here you are")

    async def bad(request: web.Request) -> web.Response:
        return web.Response(status=500)

    async def payload(url: str) -> str:
        return (await read_body({"kind": kind, ADDRESS[kind]: url})).payload

    return Trial(
        good=await payload(site.on("/good", good)),
        bad=await payload(site.on("/bad", bad)),
        endless=await payload(site.on("/never", never)),
    )
