"""Holds on to a worker's leases, and keeps the store in order, apart from the loop on which jobs run.

In production it lives on a thread with a loop and a store of its own, so that a job that blocks the worker's loop for
minutes costs no lease. In the simulator it is a task like any other.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from uuid import UUID

import msgspec

from headway.clock import Clock, sleep
from headway.duties.tending import Tending
from headway.model.worker import WorkerInfo
from headway.observe import series
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.lending import Stores
from headway.store.thread import StoreThread
from headway.worker.endurance import delayed, endure

STALL = 1.0
"""A loop that does not turn for this long is reported, with what holds it."""

log = get_logger("headway.worker")


class Lease:
    """One claim's hold on its jobs. `deadline` is steady time until which it is surely ours, counted from before the
    store was asked."""

    __slots__ = ("deadline", "id", "jobs")

    def __init__(self, lease_id: UUID, jobs: int, deadline: float) -> None:
        self.id = lease_id
        self.jobs = jobs
        self.deadline = deadline


class Leases:
    """The leases in a worker's hands. Written by the worker's loop, read by the keeper: single steps only."""

    def __init__(self) -> None:
        self.held: dict[UUID, Lease] = {}
        self._done: list[UUID] = []

    def take(self, lease_id: UUID, jobs: int, deadline: float) -> Lease:
        lease = self.held[lease_id] = Lease(lease_id, jobs, deadline)
        return lease

    def give(self, lease: Lease, jobs: int) -> None:
        """So many jobs less; with the last one the lease is done, unless it was lost before."""
        lease.jobs -= jobs
        if lease.jobs == 0 and self.held.pop(lease.id, None) is not None:
            self._done.append(lease.id)

    def forget(self, lease_ids: set[UUID]) -> None:
        for lease_id in lease_ids:
            self.held.pop(lease_id, None)

    def take_done(self) -> list[UUID]:
        done, self._done = self._done, []
        return done

    def put_back(self, done: list[UUID]) -> None:
        self._done += done


class Callbacks(msgspec.Struct, frozen=True):
    """How the worker hears from its keeper; called on the worker's loop."""

    lost: Callable[[set[UUID]], None]
    cancel: Callable[[frozenset[UUID]], None]
    crowd: Callable[[int], None]
    """How many workers there are."""
    at_work: Callable[[], str | None] = lambda: None
    """The name of the job that the loop is at right now; alone of all these it is called on the keeper's thread."""


class Keeper:
    """Renews leases at a third of their time and carries out the duties in between."""

    def __init__(self, worker: Callable[[], WorkerInfo], leases: Leases, ttl: float, clock: Clock) -> None:
        self._worker = worker
        self._leases = leases
        self._ttl = ttl
        self.clock = clock
        self._renew_now = asyncio.Event()
        self._seen = clock.monotonic()

    def silent(self) -> float:
        """Seconds since the last sign of life that the store has taken."""
        return self.clock.monotonic() - self._seen

    def hurry(self) -> None:
        """A cancel may be waiting: renew at once. Called on the keeper's loop."""
        self._renew_now.set()

    async def run(self, store: Store, tell: Callbacks, tending: Tending) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep(store, tell))
            group.create_task(tending.run(store))

    async def _keep(self, store: Store, tell: Callbacks) -> None:
        while True:
            await self.renew(store, tell)
            timer = self.clock.call_later(self._ttl / 3, self._renew_now.set)
            try:
                await self._renew_now.wait()
            finally:
                timer.cancel()
            self._renew_now.clear()

    async def renew(self, store: Store, tell: Callbacks) -> None:
        """Once. What the store no longer has, or what could not be renewed in time, is lost."""
        asked_at = self.clock.monotonic()
        held, done = list(self._leases.held.values()), self._leases.take_done()
        try:
            renewal = await store.renew(self._worker(), self._ttl, done, held=[lease.id for lease in held])
        except Exception as error:
            delayed("worker.renewal_failed", error)
            self._leases.put_back(done)
            now = self.clock.monotonic()
            gone = {lease.id for lease in held if lease.deadline <= now}
        else:
            self._seen = asked_at
            for lease in held:
                if lease.id in renewal.leases:
                    lease.deadline = asked_at + self._ttl
            gone = {lease.id for lease in held if lease.id not in renewal.leases and lease.id in self._leases.held}
            if renewal.cancels:
                tell.cancel(renewal.cancels)
            tell.crowd(renewal.crowd)
        if gone:
            log.warning("worker.leases_lost", leases=len(gone))
            series.leases_lost.add((), len(gone))
            tell.lost(gone)


class KeeperThread:
    """A keeper on a thread of its own."""

    def __init__(self, keeper: Keeper, stores: Stores, tending: Tending, tell: Callbacks) -> None:
        self._keeper = keeper
        self._tending = tending
        self._home = asyncio.get_running_loop()
        self._home_thread = threading.get_ident()
        self._tell = Callbacks(
            lost=lambda lost: self._post(tell.lost, lost),
            cancel=lambda cancels: self._post(tell.cancel, cancels),
            crowd=lambda crowd: self._post(tell.crowd, crowd),
            at_work=tell.at_work,
        )
        self._asked: float | None = None
        self._thread = StoreThread("keeper", self._keep, stores, keeper.clock)

    def blocked(self) -> float:
        """Seconds for which the worker's loop has not turned; may be asked by any thread."""
        asked = self._asked
        return 0.0 if asked is None else self._keeper.clock.monotonic() - asked

    def start(self) -> None:
        self._thread.start()

    def hurry(self) -> None:
        """Called on the worker's loop."""
        self._thread.call(self._keeper.hurry)

    async def stop(self) -> None:
        await self._thread.stop()

    def _post(self, act: Callable[..., object], *args: object) -> None:
        if not self._home.is_closed():
            self._home.call_soon_threadsafe(act, *args)

    async def _keep(self, store: Store) -> None:
        """A keeper that dies would cost every lease: whatever goes wrong, it goes on."""
        clock = self._keeper.clock
        async with asyncio.TaskGroup() as group:
            group.create_task(endure(self._watch_home, clock, "watch"))
            group.create_task(endure(lambda: self._keeper.run(store, self._tell, self._tending), clock, "keeper"))

    def _turned(self, asked: float, keepers: asyncio.AbstractEventLoop, turned: asyncio.Event) -> None:
        """On the worker's loop, once it has come round."""
        self._asked = None
        series.loop_lag.observe((max(self._keeper.clock.monotonic() - asked, 0.0),))
        keepers.call_soon_threadsafe(turned.set)

    async def _watch_home(self) -> None:
        """Report what keeps the worker's loop from turning."""
        clock = self._keeper.clock
        while True:
            asked = self._asked = clock.monotonic()
            turned = asyncio.Event()
            loop = asyncio.get_running_loop()
            self._post(self._turned, asked, loop, turned)
            await sleep(clock, STALL)
            if not turned.is_set():
                frame = sys._current_frames().get(self._home_thread)
                stack = "".join(traceback.format_stack(frame)[-6:]) if frame else ""
                stalled = round(clock.monotonic() - asked, 1)
                log.warning("worker.loop_blocked", job=self._tell.at_work(), seconds=stalled, stack=stack)
                await turned.wait()
