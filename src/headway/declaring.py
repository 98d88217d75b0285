"""What the processes of an app do about the schedules in its code: tell the store, and see that somebody fires them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from headway.client import while_busy
from headway.clock import Clock, sleep
from headway.executors.call.functions import Registry
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies
from headway.model.errors import KeyBusy, StoreUnavailable
from headway.model.worker import FunctionInfo
from headway.observe.logs import get_logger
from headway.scheduler.thread import SchedulerThread
from headway.schedules import Drafting, declared_schedule
from headway.store.contract import Store
from headway.store.lending import Stores

PATIENCE = 10.0
"""Seconds for which a process that starts waits for others that declare at the same moment."""
FIRST_LOOK = 3.0
"""Seconds after the start of a worker in which a scheduler may still come."""
LOOK_EVERY = 60.0
NOBODY_FIRES = "nobody fires the schedules of this app: start `headway scheduler`, or a worker with --scheduler"

log = get_logger("headway.schedules")


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """The schedules of an app's code, as bodies, and whose they are."""

    source: str
    bodies: Callable[[], Iterable[Mapping[str, Any]]]
    registry: Registry
    code_version: str | None


class Calendar:
    """What one worker does about schedules, from `open` to `close`."""

    def __init__(self, declared: Declared | None, stores: Stores, clock: Clock) -> None:
        self._declared = declared
        self._stores = stores
        self._clock = clock
        self._thread: SchedulerThread | None = None
        self._watch: asyncio.Task[None] | None = None

    async def open(self, store: Store, *, fires: bool) -> None:
        """Tell the store of those in the code, and fire, or see that somebody does."""
        count = await declare(store, self._declared, self._clock) if self._declared is not None else 0
        if fires:
            self._thread = SchedulerThread(self._stores, self._clock)
            self._thread.start()
        elif count:
            self._watch = asyncio.create_task(_warn_without_scheduler(store, self._clock))

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._thread is not None:
            thread, self._thread = self._thread, None
            await thread.stop()


async def declare(store: Store, declared: Declared, clock: Clock) -> int:
    """Tell the store what the code says; how many schedules that are."""
    here = _Here(declared.registry)
    drafting = Drafting(Bodies(load_kinds(), here), here)
    schedules = [declared_schedule(body, clock.now(), declared.code_version) for body in declared.bodies()]
    drafts = [(await drafting.draft(schedule))[0] for schedule in schedules]
    try:
        notes = await while_busy(
            lambda: store.declare_schedules(drafts, declared.source, declared.code_version), clock, PATIENCE
        )
    except KeyBusy as error:
        # Those who are at it declare the same, most likely; and jobs must not wait for it.
        notes = [f"the schedules of {declared.source} are left as they are: {error}"]
    for note in notes:
        log.warning("schedules.left_alone", note=note)
    return len(drafts)


async def _warn_without_scheduler(store: Store, clock: Clock) -> None:
    """Say so, as long as this app's schedules are fired by nobody."""
    await sleep(clock, FIRST_LOOK)
    while True:
        try:
            if not await store.schedulers():
                log.warning("schedules.no_scheduler", help=NOBODY_FIRES)
        except StoreUnavailable as error:
            log.debug("schedules.unseen", error=str(error))
        await sleep(clock, LOOK_EVERY)


class _Here:
    """The functions of this process's own app."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def function(self, name: str) -> FunctionInfo | None:
        return self._registry.info(name)
