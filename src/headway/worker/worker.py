"""The life of a worker: it starts, serves its queues, drains, stops."""

from __future__ import annotations

import asyncio
import os
import random as chance
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from headway.bus.contract import Bus
from headway.clock import Clock, SystemClock, sleep
from headway.duties.tending import Tending
from headway.executors.contract import Executor
from headway.model.errors import ConfigurationError, StoreUnavailable
from headway.model.job import Claim, Ended, Finish, Release
from headway.model.limits import Retention
from headway.model.retry import Random
from headway.model.worker import WorkerInfo
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.lending import Stores
from headway.store.scripts.tend import Rescued
from headway.worker.attempt import Attempt, Stop
from headway.worker.finisher import Finisher
from headway.worker.herald import Herald
from headway.worker.judge import Move
from headway.worker.keeper import Callbacks, Keeper, KeeperThread, Leases
from headway.worker.lane import Intake, Lane, idle
from headway.worker.output import Output
from headway.worker.wakeups import Wakeups

POLL = 1.0
"""Seconds between looks at the store when no wake-up comes."""
REPORT_EVERY = 0.5
SLOTS = 100
STOP_PATIENCE = 10.0
"""How long a stopping worker waits for jobs that it has told to stop."""

log = get_logger("headway.worker")


class Hooks:
    """Called after the store has recorded a change, in the process that recorded it, at most once. Subclass to use."""

    def ended(self, claim: Claim, move: Move, end: Ended) -> None:
        """A job of this worker moved on; `end.state` is where it is now."""

    def rescued(self, jobs: list[Rescued]) -> None:
        """Jobs of another worker were taken back."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker works."""

    queues: Mapping[str, int] = msgspec.field(default_factory=lambda: {"default": SLOTS})
    lease: float = 30.0
    grace: float = 30.0
    poll: float = POLL
    name: str | None = None
    code_version: str | None = None
    retention: Retention = Retention()
    fires: bool = False
    """Whether schedules are fired beside it."""

    def __post_init__(self) -> None:
        if not self.queues:
            raise ConfigurationError("a worker needs at least one queue, e.g. queues={'default': 100}")
        for queue, slots in self.queues.items():
            if slots < 1:
                raise ConfigurationError(f"queue {queue!r} needs at least one slot, not {slots}")
        if self.lease <= 0:
            raise ConfigurationError(f"the lease must be a positive number of seconds, not {self.lease}")


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is made of. `stores` lends the keeper a store for its thread; without, it stays on this loop."""

    store: Store
    executors: Mapping[str, Executor]
    stores: Stores | None
    clock: Clock = SystemClock()
    random: Random = chance.random
    new_id: Callable[[], UUID] = uuid7
    hooks: Hooks = Hooks()
    bus: Bus | None = None
    """What rings for due jobs and hears of them; without one the store does."""


class Worker:
    """Runs jobs of its queues until stopped. Its id is new with each start."""

    def __init__(self, parts: Parts, options: Options) -> None:
        self.id = parts.new_id()
        self.options = options
        self.ended = 0
        """Jobs whose end this worker has recorded."""
        self.fenced = 0
        """Writes that the store refused because the job was no longer ours."""
        self.stuck = asyncio.Event()
        """Set when a job in a thread does not stop: this process should be replaced."""
        self._stuck: set[UUID] = set()
        self._parts = parts
        self._store = parts.store
        self._clock = parts.clock
        self._lanes: dict[str, Lane] = {}
        self._intakes: dict[str, asyncio.Task[None]] = {}
        self._services: list[asyncio.Task[None]] = []
        self._held: dict[Attempt, None] = {}
        self._leases = Leases()
        self._finisher = Finisher(parts.store, parts.clock, self._recorded)
        self._keeper = Keeper(self.info, self._leases, options.lease, parts.clock)
        self._keeper_thread: KeeperThread | None = None
        self._herald = Herald(parts.bus, parts.clock)
        self._wakeups = Wakeups(self.id, parts.store, parts.clock, self._lanes, self._hurry)
        self._stop_listening: Callable[[], None] = lambda: None
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop

    def info(self) -> WorkerInfo:
        """How other processes see this worker."""
        return WorkerInfo(
            id=self.id,
            name=self.options.name or f"{socket.gethostname()}-{os.getpid()}",
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=tuple(queue for queue, lane in self._lanes.items() if lane.open),
            slots=sum(lane.slots for lane in self._lanes.values()),
            fires=self.options.fires,
            code_version=self.options.code_version,
        )

    @property
    def running(self) -> int:
        """How many jobs are running now."""
        return sum(len(lane.running) for lane in self._lanes.values())

    @property
    def in_hand(self) -> int:
        """How many jobs are claimed and not yet recorded as ended."""
        return len(self._held)

    async def start(self) -> None:
        """Begin to serve; returns when jobs can be claimed."""
        self._loop = asyncio.get_running_loop()
        self._stop_listening = await self._wakeups.listen(self._parts.bus)
        for queue, slots in self.options.queues.items():
            self._lanes[queue] = Lane(queue, slots)
        self._start_keeper()
        acts = (self._finisher.run(), self._wakeups.poll(self.options.poll), self._report())
        self._services += [asyncio.create_task(act) for act in acts]
        for queue, slots in self.options.queues.items():
            self.start_queue(queue, slots)
        log.info("worker.started", worker=str(self.id), queues=dict(self.options.queues))

    def wake(self) -> None:
        """Look at all queues now."""
        self._wakeups.all()

    async def stop(self, grace: float | None = None) -> None:
        """Stop claiming, give back what has not begun, let the rest end within `grace` seconds, then stop it."""
        if self._stopping:
            return
        self._stopping = True
        log.info("worker.stopping", running=self.running)
        for queue in list(self._intakes):
            await self.stop_queue(queue)
        await self._drain(self.options.grace if grace is None else grace)
        await self._finisher.flushed()
        await self._end_services()
        log.info("worker.stopped", worker=str(self.id), ended=self.ended)

    def start_queue(self, queue: str, slots: int | None = None) -> None:
        """Serve a queue, for the first time or again."""
        lane = self._lanes.setdefault(queue, Lane(queue, slots or SLOTS))
        lane.open, lane.slots = True, slots or lane.slots
        if queue not in self._intakes:
            self._intakes[queue] = asyncio.create_task(self._serve(lane))

    async def stop_queue(self, queue: str) -> None:
        """Claim no more of this queue; jobs not begun are given back, running ones go on."""
        intake = self._intakes.pop(queue, None)
        if intake is None:
            raise ConfigurationError(f"this worker does not serve the queue {queue!r}")
        lane = self._lanes[queue]
        lane.open = False
        intake.cancel()
        await asyncio.wait([intake])
        if self._parts.bus is not None:
            await self._parts.bus.unlisten(queue)
        while lane.waiting:
            self._give_back(lane.waiting.popleft())

    # Claiming and running

    async def _serve(self, lane: Lane) -> None:
        if self._parts.bus is not None:
            await self._parts.bus.listen(lane.queue, self._wakeups.rung)
        intake = Intake(lane, self._store, self._leases, self._clock)
        while True:
            if not intake.worthwhile:
                self._fill(lane)
                await intake.room()
            # A claim under way is never dropped: what it brings is run, or given back.
            claiming = asyncio.ensure_future(intake.claim(self.id, self._parts.new_id(), self.options.lease))
            # What came with the one before begins behind it, so that the store and the jobs work at the same time.
            self._fill(lane)
            try:
                attempts, wait = await asyncio.shield(claiming)
            except asyncio.CancelledError:
                self._take(lane, (await claiming)[0])
                raise
            self._take(lane, attempts)
            if wait is not None:
                self._fill(lane)
                self._wakeups.claimed(lane, empty=not attempts)
                await idle(lane, self._clock, wait)

    def _take(self, lane: Lane, attempts: Sequence[Attempt]) -> None:
        self._held.update(dict.fromkeys(attempts))
        lane.waiting.extend(attempts)
        if attempts:
            self._herald.began([attempt.claim for attempt in attempts])

    def _fill(self, lane: Lane) -> None:
        """Begin waiting jobs while there are free slots."""
        now = self._clock.monotonic()
        while (attempt := lane.next_to_begin()) is not None:
            if attempt.lease.deadline > now:
                self._begin(attempt)
            else:
                # Not recorded, it would stay ours if the lease turns out to live.
                self._give_back(attempt)

    def _begin(self, attempt: Attempt) -> None:
        attempt.prepare(self._parts.executors.get(attempt.claim.kind))
        attempt.lane.running[attempt] = None
        attempt.task = self._loop.create_task(self._run(attempt))

    async def _run(self, attempt: Attempt) -> None:
        move = await attempt.run(self._clock, self._parts.random)
        if attempt.output is not None:
            await self._store_output(attempt, attempt.output, last=True)
        lane = attempt.lane
        del lane.running[attempt]
        if self._stuck:
            self._stuck.discard(attempt.claim.id)
        if move is None:
            self._let_go(attempt)
        else:
            self._finisher.add(attempt, move)
        self._fill(lane)

    def give_up(self, claim: Claim) -> None:
        """This job was told to stop long ago, and nothing stops it: it is not to be waited for."""
        self._stuck.add(claim.id)
        self.stuck.set()

    def _give_back(self, attempt: Attempt) -> None:
        """One that has not begun."""
        self._finisher.add(attempt, Release.give_back(attempt.claim))

    def _recorded(self, attempt: Attempt, move: Move, end: Ended) -> None:
        """The store has answered: the job is out of our hands, and hooks may hear of it."""
        self._let_go(attempt)
        if end.accepted:
            self.ended += 1
            self._parts.hooks.ended(attempt.claim, move, end)
            self._herald.ended(attempt.claim, end)
        else:
            self.fenced += 1
            log.warning("worker.write_refused", job_id=str(move.job_id), token=move.token)

    def _let_go(self, attempt: Attempt) -> None:
        self._held.pop(attempt, None)
        self._leases.give(attempt.lease)
        lane = attempt.lane
        lane.in_hand -= 1
        lane.freed.set()
        if lane.deaf:
            self._hear_again(lane)

    def _hear_again(self, lane: Lane) -> None:
        """There is room again: look once, for what was rung meanwhile went to others."""
        lane.deaf = False
        lane.wake.set()
        if self._parts.bus is not None:
            self._parts.bus.ready(lane.queue)

    # Stopping single jobs

    def _cancel(self, job_ids: frozenset[UUID]) -> None:
        """Someone asked for these jobs to end."""
        for attempt in [attempt for attempt in self._held if attempt.claim.id in job_ids]:
            if attempt in attempt.lane.running:
                attempt.stop(Stop.CANCEL)
            elif attempt in attempt.lane.waiting:
                attempt.lane.waiting.remove(attempt)
                self._finisher.add(attempt, Finish.cancelled(attempt.claim, None, "cancelled on request"))

    def _lose(self, lease_ids: set[UUID]) -> None:
        """These leases are not ours any more: their jobs stop, and nothing is recorded of them."""
        # Forgotten first: a lease that is let go job by job would be taken as done, and dropped before its rescue.
        self._leases.forget(lease_ids)
        for attempt in [attempt for attempt in self._held if attempt.lease.id in lease_ids]:
            if attempt in attempt.lane.running:
                attempt.stop(Stop.LEASE_LOST)
            elif attempt in attempt.lane.waiting:
                attempt.lane.waiting.remove(attempt)
                self._let_go(attempt)

    async def _drain(self, grace: float) -> None:
        """Wait for running jobs, then stop them; those that can't be stopped are left to the lapse of their lease."""
        await self._until_idle(grace)
        for lane in self._lanes.values():
            for attempt in list(lane.running):
                attempt.stop(Stop.GIVE_BACK)
        await self._until_idle(STOP_PATIENCE)
        if self.running:
            log.warning("worker.jobs_left", running=self.running)

    async def _until_idle(self, limit: float) -> None:
        ends = self._clock.monotonic() + limit
        while self.running > len(self._stuck) and (left := ends - self._clock.monotonic()) > 0:
            await sleep(self._clock, min(left, 0.02))

    # News of running jobs

    async def _report(self) -> None:
        """Every now and then: start times of jobs that take longer, progress, output."""
        while True:
            await sleep(self._clock, REPORT_EVERY)
            running = [attempt for lane in self._lanes.values() for attempt in lane.running]
            try:
                await self._send_reports(running)
                for attempt in running:
                    # Meanwhile it may have ended, and taken its output along.
                    if attempt.output is not None and attempt in attempt.lane.running:
                        await self._store_output(attempt, attempt.output, last=False)
            except StoreUnavailable as error:
                log.warning("worker.report_delayed", error=str(error))

    async def _send_reports(self, running: Sequence[Attempt]) -> None:
        now = self._clock.monotonic()
        news = [attempt.report(now) for attempt in running if attempt.has_news(now)]
        if news:
            await self._store.report(news)

    async def _store_output(self, attempt: Attempt, output: Output, *, last: bool) -> None:
        chunks = output.take(last=last)
        while chunks:
            try:
                await self._store.append(attempt.claim, chunks)
            except StoreUnavailable as error:
                log.warning("worker.output_delayed", job_id=str(attempt.claim.id), error=str(error))
                await sleep(self._clock, 1.0)
            else:
                return

    # Keeper

    def _start_keeper(self) -> None:
        tell = Callbacks(self._lose, self._cancel, partial(self._at_work, asyncio.get_running_loop()))
        tending = Tending(
            self.id,
            self._clock,
            retention=self.options.retention,
            ended=lambda: self.ended,
            on_rescued=self._parts.hooks.rescued,
        )
        if self._parts.stores is None:
            self._services.append(asyncio.create_task(self._keeper.run(self._store, tell, tending)))
        else:
            self._keeper_thread = KeeperThread(self._keeper, self._parts.stores, tending, tell)
            self._keeper_thread.start()

    def _at_work(self, loop: asyncio.AbstractEventLoop) -> str | None:
        """Which job the loop is at; asked when it stands still, so nothing changes meanwhile."""
        task = asyncio.current_task(loop)
        running = [attempt for lane in self._lanes.values() for attempt in lane.running]
        return next((attempt.claim.name for attempt in running if attempt.task is task), None)

    def _hurry(self) -> None:
        if self._keeper_thread is not None:
            self._keeper_thread.hurry()
        else:
            self._keeper.hurry()

    async def _end_services(self) -> None:
        """Last of all the leases: until here they had to be kept."""
        self._stop_listening()
        if self._keeper_thread is not None:
            await self._keeper_thread.stop()
        for service in self._services:
            service.cancel()
        await asyncio.wait(self._services)
        try:
            await self._store.renew(self.info(), self.options.lease, self._leases.take_done(), held=[])
            await self._store.leave(self.id)
        except StoreUnavailable as error:
            log.warning("worker.farewell_failed", error=str(error))
