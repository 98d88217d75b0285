"""For users' own tests: their app on the true engine, in memory, with time that moves only when told to.

async def test_a_reminder_follows_after_a_day():
    async with rehearsal(app) as stage:
        job = await signup.asubmit("ann@example.org")
        await stage.settle()
        await stage.advance(days=1)
        assert [j.name for j in await app.ajobs(state="completed")] == ["reminder", "signup"]

Schedules in the app's code fire too, and those made by `app.schedule`, as time passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from headway.app import Headway
from headway.clock import FakeClock, SystemClock, sleep
from headway.declaring import declare
from headway.executors import make_executors
from headway.executors.contract import Setup
from headway.hooks import HookCaller
from headway.model.errors import WaitTimeout
from headway.model.states import HELD
from headway.scheduler import Scheduler
from headway.store.contract import Store
from headway.store.lending import Stores
from headway.worker.parts import Options, Parts
from headway.worker.worker import Worker

PATIENCE = 30.0
"""Real seconds after which `settle` gives up."""

_real = SystemClock()


class Stage:
    """Where the app plays: a worker on all of its queues, a scheduler, and the hand on the clock."""

    def __init__(self, clock: FakeClock, store: Store, worker: Worker, queues: list[str], *, fires: bool) -> None:
        self.clock = clock
        self.store = store
        self._worker = worker
        self._queues = queues
        self._scheduler = Scheduler(clock, poll=float("inf")) if fires else None

    async def settle(self) -> None:
        """Until everything that is due has ended."""
        started = _real.monotonic()
        await self._fire()
        while await self._busy():
            if _real.monotonic() - started > PATIENCE:
                raise WaitTimeout(f"jobs are still running after {PATIENCE:g} s: do they wait for time to pass?")
            # Polling goes by the clock, and it stands still.
            self._worker.wake()
            await sleep(_real, 0.001)

    async def advance(self, **by: float) -> None:
        """Let time pass: `advance(hours=2)`. What falls due on the way is run at its own time."""
        left = timedelta(**by).total_seconds()
        await self.settle()
        while left > 0:
            step = min(left, max(min(await self._next_due(), await self._fire()), 0.001))
            self.clock.advance(step)
            left -= step
            await self.settle()

    async def _busy(self) -> bool:
        """Asked of the store: a claim just committed may not have reached the worker yet."""
        if self._worker.in_hand or await self._next_due() <= 0:
            return True
        counts = await self.store.counts()
        return any(state in HELD for states in counts.values() for state in states)

    async def _fire(self) -> float:
        """What schedules have due; seconds until the next one has."""
        return await self._scheduler.tick(self.store) if self._scheduler is not None else float("inf")

    async def _next_due(self) -> float:
        return min((await self.store.peek(self._queues)).values(), default=float("inf"))


@asynccontextmanager
async def rehearsal(app: Headway, *, schedules: bool = True) -> AsyncIterator[Stage]:
    """Put the app on stage; afterwards it has its own store and clock again. Without `schedules` none fires."""
    clock = FakeClock()
    stores = Stores("sqlite://", clock)
    queues = app.registry.queues()
    store = await stores.acquire()
    with app.staged(stores, clock):
        executors = make_executors(
            Setup(clock=clock, registry=app.registry, provider=app.services, reference=app.found())
        )
        hooks = HookCaller(app.hooks, app.aget)
        parts = Parts(store=store, executors=executors, stores=None, clock=clock, hooks=hooks)
        worker = Worker(parts, Options(queues=dict.fromkeys(queues)))
        app.client.adopt(store)
        await worker.start()
        if schedules:
            await declare(store, app.declaration(), clock)
        try:
            yield Stage(clock, store, worker, queues, fires=schedules)
        finally:
            await _stop(worker, clock)
            await hooks.finish()
            for executor in executors.values():
                await executor.close()
            await stores.close()


async def _stop(worker: Worker, clock: FakeClock) -> None:
    """A stopping worker waits for its jobs by the clock: it has to run on meanwhile."""
    stopping = asyncio.ensure_future(worker.stop(grace=0))
    while not stopping.done():
        clock.advance(0.1)
        await sleep(_real, 0.001)
    await stopping
