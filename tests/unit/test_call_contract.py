"""The executor of functions, held to the contract of executors: in all three ways of running them."""

from __future__ import annotations

import asyncio
import time

import pytest

from headway.clock import SystemClock
from headway.contracts.executors import *  # noqa: F403 - tests are found by their names
from headway.contracts.executors import Trial
from headway.contracts.fixtures import store  # noqa: F401 - fixtures are found by their names
from headway.executors.call import make
from headway.executors.call.functions import Function, Registry
from headway.executors.contract import Executor, Setup, current
from tests.unit import child_app


async def good() -> int:
    return 42


async def bad() -> None:
    raise ValueError("no good")


async def endless() -> None:
    await asyncio.Event().wait()


def good_in_thread() -> int:
    return 42


def bad_in_thread() -> None:
    raise ValueError("no good")


def endless_in_thread() -> None:
    while not current().cancelled:
        time.sleep(0.01)


WAYS = {
    "coroutine": [Function.of(target) for target in (good, bad, endless)],
    "thread": [Function.of(target) for target in (good_in_thread, bad_in_thread, endless_in_thread)],
    "process": [child_app.good, child_app.bad, child_app.endless],
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> list[Function]:
    return WAYS[request.param]


@pytest.fixture
def executor(way: list[Function]) -> Executor:
    registry = Registry()
    for function in way:
        registry.add(function)
    return make(Setup(clock=SystemClock(), registry=registry, reference="tests.unit.child_app:app"))


@pytest.fixture
def trial(way: list[Function]) -> Trial:
    good, bad, endless = (function.arguments.pack((), {}) for function in way)
    return Trial(good=good, bad=bad, endless=endless)
