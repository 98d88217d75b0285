"""A scheduler for an app, or for none: opens a store, declares the app's schedules, and fires."""

from __future__ import annotations

import asyncio

import msgspec

from headway.alerts.making import make_watch
from headway.components.assembly import ALL
from headway.declaring import declare
from headway.duties import backlog
from headway.duties.census import Census
from headway.hooks import HookCaller
from headway.model.limits import Retention
from headway.model.overview import SILENT_AFTER
from headway.observe.family import Signs
from headway.scheduler.post import Post
from headway.scheduler.service import Options, SchedulerService
from headway.serve import Plan, post_of, stopping
from headway.store.contract import Store


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a scheduler of an app works."""

    name: str | None = None
    retention: Retention = Retention()
    components: tuple[str, ...] = ALL
    """Which of the components act on commands from the bus."""
    tell_backlog: bool = False
    """Whether to write lines for CloudWatch (`observe/cloudwatch.py`) on standard output."""


class AppScheduler:
    """Fires the schedules of a store, those of the app's code among them. With a bus it also rings for due jobs there,
    and acts on commands."""

    def __init__(self, plan: Plan, settings: SchedulerSettings) -> None:
        self._plan = plan
        self._settings = settings
        self._store: Store | None = None
        self._caller: HookCaller | None = None
        self._service: SchedulerService | None = None
        self._serving: asyncio.Task[None] | None = None
        self._post: Post | None = None
        self._watch = make_watch(plan.client, (plan.stores.url, plan.bus), plan.vault, plan.clock)
        self._telling: asyncio.Task[None] | None = None
        self.census = Census(plan.client.call, plan.clock)
        """What the whole store looks like."""
        self.signs = Signs(health=self._trouble, ready=self._unready)
        """How it is."""

    def _trouble(self) -> str | None:
        service = self._service
        if service is None or service.silent <= SILENT_AFTER:
            return None
        return f"no sign of life has reached the store for {service.silent:.0f} s"

    def _unready(self) -> str | None:
        service = self._service
        return "it has not begun to fire" if service is None else self._trouble() or service.scheduler.stalled()

    async def start(self) -> None:
        """Begin to fire; returns when the store knows what the code declares."""
        plan = self._plan
        store = self._store = await plan.stores.acquire()
        try:
            plan.client.adopt(store)
            if plan.declared is not None:
                await declare(store, plan.declared, plan.clock)
            self._caller = HookCaller(plan.hooks, plan.get)
            self._service = SchedulerService(plan.clock, self._options(), on_rescued=self._caller.rescued)
            # Before anything runs: what it is told to do may be impossible.
            self._post = post_of(plan, self._service.id, self._settings.components)
            self._serving = asyncio.create_task(self._service.serve(store))
            self._watch.start()
            if self._post is not None:
                self._post.open(store)
            if self._settings.tell_backlog:
                self._telling = asyncio.create_task(backlog.tell(store, self._service.id, plan.clock))
        except BaseException:
            await self._let_go()
            raise

    async def stop(self) -> None:
        """End with the tick under way."""
        await self._watch.stop()
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait([self._telling])
        if self._post is not None:
            await self._post.close()
        if self._service is not None and self._serving is not None:
            self._service.stop()
            await asyncio.wait([self._serving])
        if self._caller is not None:
            await self._caller.finish()
        await self._let_go()

    async def run(self) -> int:
        """Fire until SIGTERM or SIGINT; the exit status."""
        with stopping() as stop:
            await self.start()
            await stop.wait()
        await self.stop()
        return 0

    def _options(self) -> Options:
        return Options(
            name=self._settings.name, retention=self._settings.retention, code_version=self._plan.code_version
        )

    async def _let_go(self) -> None:
        if self._store is not None:
            store, self._store = self._store, None
            self._plan.client.leave(store)
            await self._plan.stores.release(store)
