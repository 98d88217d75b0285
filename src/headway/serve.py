"""A worker for an app: opens a store, announces the app's functions, makes the executors, and serves."""

from __future__ import annotations

import asyncio
import gc
import random as chance
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import msgspec

from headway.alerts.making import make_watch
from headway.bus import make_bus
from headway.bus.contract import Bus
from headway.client import Client
from headway.clock import Clock, sleep
from headway.components.assembly import ALL, assemble
from headway.declaring import Calendar, Declared
from headway.duties.census import Census
from headway.executors import make_executors
from headway.executors.call.executor import CHILDREN
from headway.executors.call.functions import Registry
from headway.executors.contract import Executor, Setup
from headway.hooks import HookCaller, HookList
from headway.kinds import load_kinds
from headway.model.errors import ConfigurationError, HeadwayError, KeyBusy
from headway.model.job import Claim
from headway.model.limits import Retention
from headway.observe.family import Signs
from headway.observe.logs import get_logger
from headway.outgoing.guard import Endpoint
from headway.outgoing.own import own_endpoints
from headway.output import make_outputs
from headway.output.contract import Outputs
from headway.scheduler.post import Post
from headway.settings import load
from headway.store.contract import Store
from headway.store.lending import Stores
from headway.vault.selftest import check_if_used
from headway.vault.vault import Vault
from headway.worker import protection
from headway.worker.parts import Options, Parts
from headway.worker.worker import Worker

ANNOUNCE_ATTEMPTS = 10
SWEEP_OUTPUT_EVERY = 600.0

log = get_logger("headway.worker")


def tune_process() -> None:
    """For processes that do nothing but work: a claim brings hundreds of objects that live for milliseconds, and the
    collector's defaults would walk over everything else again and again to find them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker of an app works. `queues`: names, or names with their number of slots; where nobody says, all that
    the app's functions name, and `default`.

    `concurrency` is the number of slots of queues without one. Where nobody says: 100, or 20 times as many of jobs that
    do nothing but wait for other servers. `children` is how many child processes run functions with `process=True`:
    where nobody says, one per core, or as many as there are slots by number.
    """

    queues: str | Sequence[str] | Mapping[str, int | None] | None = None
    concurrency: int | None = None
    children: int | None = None
    lease: float = 30.0
    grace: float = 30.0
    name: str | None = None
    retention: Retention = Retention()
    scheduler: bool = False
    """Whether to fire schedules as well."""
    components: tuple[str, ...] = ALL
    """Which of the components then act on commands from the bus."""

    def processes(self, plan: Plan) -> int:
        """Child processes at most: who gives slots by number means so many jobs at once, whatever they run in."""
        if self.children is None:
            return max(CHILDREN, sum(number or 0 for number in self.options(plan).queues.values()))
        if self.children < 1:
            raise ConfigurationError(f"a worker needs at least one child process, not {self.children}")
        return self.children

    def options(self, plan: Plan) -> Options:
        queues = plan.registry.queues() if self.queues is None else self.queues
        return Options(
            queues=queues if isinstance(queues, Mapping) else dict.fromkeys(_names(queues), self.concurrency),
            lease=self.lease,
            grace=self.grace,
            name=self.name,
            retention=self.retention,
            fires=self.scheduler,
            code_version=plan.code_version,
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
    vault: Vault | None = None
    """Where secrets, scripts and credentials are kept."""


def post_of(plan: Plan, holder: UUID, components: Collection[str]) -> Post | None:
    """What a process that fires does at the plan's broker, if there is one."""
    if plan.bus is None:
        return None
    assembled = assemble(plan.client, load_kinds(), plan.clock, components, safe=plan.vault, output=load().output)
    return Post(plan.bus, holder, assembled, plan.clock)


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
        self._protecting: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._outputs: Outputs | None = None
        self.worker: Worker | None = None
        self.own: list[str] = []
        """URLs at which this process listens: jobs of kind `http` may not go there."""
        self.near: set[Endpoint] = set()
        """Endpoints that they may reach although they are on this machine: the demo's."""
        self.left = 0
        """Jobs that could not be stopped when the worker did: their threads still run."""

        self._watch = make_watch(plan.client, (plan.stores.url, plan.bus), plan.vault, plan.clock)
        self.census = Census(plan.client.call, plan.clock)
        """What the whole store looks like."""
        self.signs = Signs(health=self._trouble, ready=self._unready)
        """How it is."""

    @property
    def fires(self) -> bool:
        """Whether it fires schedules as well."""
        return self._settings.scheduler

    def _trouble(self) -> str | None:
        worker = self.worker
        if worker is None or worker.silent <= 2 * self._settings.lease:
            return None
        return f"no sign of life has reached the store for {worker.silent:.0f} s"

    def _unready(self) -> str | None:
        worker = self.worker
        return "it has not begun to serve" if worker is None else self._trouble() or worker.stalled()

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
        _refuse_homeless(plan)
        plan.client.adopt(store)
        await _announce(store, plan)
        if plan.vault is not None:
            await check_if_used(plan.vault)
        self._calendar = Calendar(plan.declared, plan.stores, plan.clock)
        await self._calendar.open(store, fires=self._settings.scheduler)
        self._outputs = make_outputs(load().output, store)
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
            outputs=self._outputs,
        )
        self.worker = Worker(parts, self._settings.options(plan))
        if self._settings.scheduler:
            self._post = post_of(plan, self.worker.id, self._settings.components)
        await self.worker.start()
        self._sweeping = asyncio.create_task(self._sweep_output(store, self._outputs))
        if self._settings.scheduler:
            self._watch.start()
        if agent := protection.agent():
            worker = self.worker
            self._protecting = asyncio.create_task(protection.protect(agent, lambda: worker.in_hand > 0, plan.clock))
        if self._post is not None:
            self._post.open(store)

    async def stop(self, grace: float | None = None) -> None:
        """Stop as gently as `grace` seconds allow; everything begun is recorded or given back."""
        if self.worker is None:
            return
        await self._watch.stop()
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
        for task in (self._protecting, self._sweeping):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        for executor in self._executors.values():
            await executor.close()
        self._executors = {}
        if self._outputs is not None:
            outputs, self._outputs = self._outputs, None
            await outputs.close()
        if self._bus is not None:
            bus, self._bus = self._bus, None
            await bus.close()
        if self._store is not None:
            store, self._store = self._store, None
            self._plan.client.leave(store)
            await self._plan.stores.release(store)

    @property
    def queues(self) -> list[str]:
        """The queues that it is to serve."""
        return list(self._settings.options(self._plan).queues)

    def start_queue(self, queue: str, slots: int | None = None) -> None:
        """Serve a queue, for the first time or again."""
        self._running().start_queue(queue, slots)

    async def stop_queue(self, queue: str) -> None:
        """Serve a queue no longer; its running jobs go on."""
        await self._running().stop_queue(queue)

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT, or until a stuck job makes this process useless; the exit status."""
        with stopping() as stop:
            await self.start()
            status = await served(self._running(), stop)
        await self.stop()
        return status

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _sweep_output(self, store: Store, outputs: Outputs) -> None:
        """Output that isn't kept in the store goes a while after its job."""

        async def exist(job_ids: Sequence[UUID]) -> set[UUID]:
            return {job.id for job in await store.get(job_ids) if job is not None}

        while True:
            await sleep(self._plan.clock, SWEEP_OUTPUT_EVERY)
            try:
                await outputs.sweep(exist)
            except (HeadwayError, OSError) as error:
                log.warning("worker.output_not_swept", error=str(error))

    def _setup(self) -> Setup:
        plan = self._plan
        return Setup(
            clock=plan.clock,
            registry=plan.registry,
            provider=plan.provider,
            reference=plan.reference,
            children=self._settings.processes(plan),
            on_stuck=self._stuck,
            store=self._store,
            secrets=plan.vault,
            outputs=self._outputs,
            near=self.near,
            own=own_endpoints((plan.stores.url, plan.bus, *self.own), load()),
        )

    def _stuck(self, claim: Claim) -> None:
        log.error("worker.job_stuck", job_id=str(claim.id), name=claim.name, help="this process will be replaced")
        self._running().give_up(claim)

    def _running(self) -> Worker:
        if self.worker is None:
            raise ConfigurationError("this worker has not been started: await worker.start() first")
        return self.worker


def _refuse_homeless(plan: Plan) -> None:
    """Functions that child processes could not import would be parked for ever."""
    for function in plan.registry if plan.reference is None else ():
        if function.mode == "process":
            raise ConfigurationError(
                f"{function.name} runs in a child process, which has to import the app, and nobody knows from where: "
                "keep the app in a module of its own, or set app.reference = 'module:attribute'"
            )


async def _announce(store: Store, plan: Plan) -> None:
    """Many may start at this very moment, and write down the same."""
    for attempt in range(ANNOUNCE_ATTEMPTS):
        try:
            return await store.announce(plan.registry.infos())
        except KeyBusy as error:
            log.info("worker.announcement_delayed", error=str(error))
            await sleep(plan.clock, 0.1 * (attempt + chance.random()))
    return await store.announce(plan.registry.infos())


@contextmanager
def stopping() -> Iterator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set. Afterwards, while everything is brought to its end, another signal ends the
    process at once: the leases and the store see to the rest."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def served(worker: Worker, stop: asyncio.Event) -> int:
    """Until it is to stop, or a stuck job makes this process useless; the exit status."""
    waits = [asyncio.ensure_future(event.wait()) for event in (stop, worker.stuck)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    return REPLACE if worker.stuck.is_set() and not stop.is_set() else 0


REPLACE = 75
"""The exit status of a worker process that must be replaced because a job in it can't be stopped."""


def _names(queues: str | Sequence[str]) -> Sequence[str]:
    return [queues] if isinstance(queues, str) else queues
