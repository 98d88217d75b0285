"""A courier and a watch, made of what a process has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from headway.alerts.courier import Courier, Secrets
from headway.alerts.watch import Watch
from headway.clock import Clock
from headway.outgoing.guard import Allowed, Guard
from headway.outgoing.own import own_endpoints
from headway.settings import load
from headway.store.contract import Store

T = TypeVar("T")


class Reach(Protocol):
    """The way to the store."""

    async def call(self, act: Callable[[Store], Awaitable[T]]) -> T: ...


def make_courier(urls: tuple[str | None, ...], secrets: Secrets | None, clock: Clock) -> Courier:
    """One that goes nowhere near the service's own `urls` (store, bus, API)."""
    held = load()
    return Courier(clock, Guard(Allowed.parse(held.allow_private), own_endpoints(urls, held)), secrets)


def make_watch(reach: Reach, urls: tuple[str | None, ...], secrets: Secrets | None, clock: Clock) -> Watch:
    """For the processes that fire schedules."""
    return Watch(reach.call, make_courier(urls, secrets, clock), clock)
