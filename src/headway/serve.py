"""A worker for an app: opens a store, announces the app's functions, makes the executors, and serves."""

from __future__ import annotations

import asyncio
import gc
import random as chance
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import msgspec

from headway.bus import make_bus
from headway.bus.contract import Bus
from headway.client import Client
from headway.clock import Clock, sleep
from headway.components.assembly import ALL, assemble
from headway.declaring import Calendar, Declared
from headway.executors import make_executors
from headway.executors.call.functions import Registry
from headway.executors.contract import Executor, Setup
from headway.hooks import HookCaller, HookList
from headway.kinds import load_kinds
from headway.model.errors import ConfigurationError, KeyBusy
from headway.model.job import Claim
from headway.model.limits import Retention
from headway.observe.logs import get_logger
from headway.scheduler.post import Post
from headway.store.contract import Store
from headway.store.lending import Stores
from headway.worker.worker import SLOTS, Options, Parts, Worker

ANNOUNCE_ATTEMPTS = 10

log = get_logger("headway.worker")


def tune_process() -> None:
    """For processes that do nothing but work: a claim brings hundreds of objects that live for milliseconds, and the
    collector's defaults would walk over everything else again and again to find them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker of an app works. `queues`: names, or names with their number of slots."""

    queues: str | Sequence[str] | Mapping[str, int] = ("default",)
    concurrency: int = SLOTS
    lease: float = 30.0
    grace: float = 30.0
    name: str | None = None
    retention: Retention = Retention()
    scheduler: bool = False
    """Whether to fire schedules as well."""

    def options(self, code_version: str | None) -> Options:
        slots = (
            self.queues if isinstance(self.queues, Mapping) else dict.fromkeys(_names(self.queues), self.concurrency)
        )
        return Options(
            queues=slots,
            lease=self.lease,
            grace=self.grace,
            name=self.name,
            retention=self.retention,
            fires=self.scheduler,
            code_version=code_version,
        )


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What an app brings to its workers."""

    stores: Stores
    client: Client
    registry: Registry
    provider: Any
    hooks: HookList
    get: Callable[[UUID], Any]
    clock: Clock
    reference: str | None = None
    code_version: str | None = None
    bus: str | None = None
    """Where doorbells come from; without one the store rings."""
    declared: Declared | None = None
    """The schedules in its code."""


def post_of(plan: Plan, holder: UUID, components: Collection[str] = ALL) -> Post | None:
    """What a process that fires does at the plan's broker, if there is one."""
    if plan.bus is None:
        return None
    return Post(plan.bus, holder, assemble(plan.client, load_kinds(), plan.clock, components), plan.clock)


class AppWorker:
    """A worker that lives in the user's own process: `async with app.worker() as worker: …`"""

    def __init__(self, plan: Plan, settings: WorkerSettings) -> None:
        self._plan = plan
        self._settings = settings
        self._store: Store | None = None
        self._executors: dict[str, Executor] = {}
        self._bus: Bus | None = None
        self._caller: HookCaller | None = None
        self._calendar: Calendar | None = None
        self._post: Post | None = None
        self.worker: Worker | None = None
        self.left = 0
        """Jobs that could not be stopped when the worker did: their threads still run."""

    async def start(self) -> None:
        """Begin to serve; returns when jobs can be claimed."""
        self._store = await self._plan.stores.acquire()
        try:
            await self._begin(self._store)
        except BaseException:
            await self._let_go()
            raise

    async def _begin(self, store: Store) -> None:
        plan = self._plan
        plan.client.adopt(store)
        await _announce(store, plan)
        self._calendar = Calendar(plan.declared, plan.stores, plan.clock)
        await self._calendar.open(store, fires=self._settings.scheduler)
        self._executors = make_executors(self._setup())
        for executor in self._executors.values():
            await executor.start()
        self._caller = HookCaller(plan.hooks, plan.get)
        if plan.bus:
            self._bus = make_bus(plan.bus)
            await self._bus.join()
        parts = Parts(
            store=store,
            executors=self._executors,
            stores=plan.stores,
            clock=plan.clock,
            hooks=self._caller,
            bus=self._bus,
        )
        self.worker = Worker(parts, self._settings.options(plan.code_version))
        await self.worker.start()
        if self._settings.scheduler and (post := post_of(plan, self.worker.id)):
            self._post = post
            post.open(store)

    async def stop(self, grace: float | None = None) -> None:
        """Stop as gently as `grace` seconds allow; everything begun is recorded or given back."""
        if self.worker is None:
            return
        if self._calendar is not None:
            await self._calendar.close()
        if self._post is not None:
            await self._post.close()
        await self.worker.stop(grace)
        if self._caller is not None:
            await self._caller.finish()
        self.left, self.worker = self.worker.running, None
        await self._let_go()

    async def _let_go(self) -> None:
        if self._calendar is not None:
            await self._calendar.close()
        for executor in self._executors.values():
            await executor.close()
        self._executors = {}
        if self._bus is not None:
            bus, self._bus = self._bus, None
            await bus.close()
        if self._store is not None:
            store, self._store = self._store, None
            self._plan.client.leave(store)
            await self._plan.stores.release(store)

    def start_queue(self, queue: str, slots: int | None = None) -> None:
        """Serve a queue, for the first time or again."""
        self._running().start_queue(queue, slots)

    async def stop_queue(self, queue: str) -> None:
        """Serve a queue no longer; its running jobs go on."""
        await self._running().stop_queue(queue)

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT, or until a stuck job makes this process useless; the exit status."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await self.start()
        waits = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(self._running().stuck.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        stuck = self._running().stuck.is_set()
        for wait in waits:
            wait.cancel()
        for number in (signal.SIGTERM, signal.SIGINT):
            # A second signal ends the process at once: the leases see to the rest.
            loop.remove_signal_handler(number)
        await self.stop()
        return REPLACE if stuck else 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _setup(self) -> Setup:
        plan = self._plan
        return Setup(
            clock=plan.clock,
            registry=plan.registry,
            provider=plan.provider,
            reference=plan.reference,
            on_stuck=self._stuck,
        )

    def _stuck(self, claim: Claim) -> None:
        log.error("worker.job_stuck", job_id=str(claim.id), name=claim.name, help="this process will be replaced")
        self._running().give_up(claim)

    def _running(self) -> Worker:
        if self.worker is None:
            raise ConfigurationError("this worker has not been started: await worker.start() first")
        return self.worker


async def _announce(store: Store, plan: Plan) -> None:
    """Many may start at this very moment, and write down the same."""
    for attempt in range(ANNOUNCE_ATTEMPTS):
        try:
            return await store.announce(plan.registry.infos())
        except KeyBusy as error:
            log.info("worker.announcement_delayed", error=str(error))
            await sleep(plan.clock, 0.1 * (attempt + chance.random()))
    return await store.announce(plan.registry.infos())


REPLACE = 75
"""The exit status of a worker process that must be replaced because a job in it can't be stopped."""


def _names(queues: str | Sequence[str]) -> Sequence[str]:
    return [queues] if isinstance(queues, str) else queues
