"""The life of a worker: it starts, serves its queues, drains, stops."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from headway.clock import sleep
from headway.duties.tending import Tending
from headway.executors.contract import Mindful
from headway.model.errors import ConfigurationError
from headway.model.job import OUTLIVING, Claim, Ended, Finish, Release
from headway.model.worker import WorkerInfo
from headway.observe.logs import get_logger
from headway.output.stored import StoredOutputs
from headway.store.scripts.cancel import worker_channel
from headway.store.scripts.news import WATCHED
from headway.worker.attempt import Attempt, Stop
from headway.worker.endurance import delayed, endure
from headway.worker.finisher import Finisher
from headway.worker.herald import Herald
from headway.worker.judge import Move
from headway.worker.keeper import Callbacks, Keeper, KeeperThread, Leases
from headway.worker.lane import Intake, Lane, idle
from headway.worker.parts import Accepted, Options, Parts
from headway.worker.shipping import Shipping
from headway.worker.tally import Entry, Tally, watch_heartbeat, watch_lanes
from headway.worker.wakeups import Wakeups

SLOTS = 100
STOP_PATIENCE = 10.0
"""How long a stopping worker waits for jobs that it has told to stop."""
STALLED = 60.0
"""Seconds without a claim that was answered, though one was asked for, after which something is wrong."""

_lease_of = attrgetter("lease")
log = get_logger("headway.worker")


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
        # Asked once: whether an object follows a protocol takes longer to find out than to run a short job.
        self._mindful = {kind: executor for kind, executor in parts.executors.items() if isinstance(executor, Mindful)}
        self._leases = Leases()
        self._tally = Tally()
        self._finisher = Finisher(parts.store, parts.clock, self._recorded, self._tally)
        self._keeper = Keeper(self.info, self._leases, options.lease, parts.clock)
        self._keeper_thread: KeeperThread | None = None
        self._herald = Herald(parts.store, parts.bus, parts.clock)
        calls = {worker_channel(self.id): self._hurry}
        if parts.bus is None:
            calls[WATCHED] = self._herald.watched
        self._wakeups = Wakeups(self.id, parts.store, parts.clock, parts.random, self._lanes, calls)
        self._stop_listening: Callable[[], None] = lambda: None
        self._watches: list[Callable[[], None]] = []
        outputs = parts.outputs or StoredOutputs(parts.store)
        self._shipping = Shipping(parts.store, outputs, parts.clock, self._begun)
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop
        self._tending: Tending

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
    def silent(self) -> float:
        """Seconds since the last sign of life that the store has taken."""
        return self._keeper.silent()

    def stalled(self) -> str | None:
        """Why nothing is claimed that may be due, if that is so; may be asked by any thread."""
        now = self._clock.monotonic()
        waits = {
            lane.queue: now - since for lane in [*self._lanes.values()] if (since := lane.asking_since) is not None
        }
        queue = max(waits, key=lambda name: waits[name], default=None)
        if queue is not None and waits[queue] > STALLED:
            return f"claiming stalls: no claim of the queue {queue} has been answered for {waits[queue]:.0f} s"
        blocked = self._keeper_thread.blocked() if self._keeper_thread is not None else 0.0
        return f"claiming stalls: a job has held the loop for {blocked:.0f} s" if blocked > STALLED else None

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
        for queue in self.options.queues:
            self._lanes[queue] = self._lane(queue)
        self._watches = [*watch_lanes(self._lanes.values), watch_heartbeat(self._keeper.silent)]
        self._start_keeper()
        loops: dict[str, Callable[[], Awaitable[None]]] = {
            "finisher": self._finisher.run,
            "poll": partial(self._wakeups.poll, self.options.poll),
            "herald": self._herald.run,
        }
        self._services += self._shipping.start()
        self._services += [asyncio.create_task(endure(loop, self._clock, name)) for name, loop in loops.items()]
        for queue in self.options.queues:
            self.start_queue(queue)
        log.info(
            "worker.started", worker=str(self.id), queues={lane.queue: lane.slots for lane in self._lanes.values()}
        )

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
        lane = self._lanes.setdefault(queue, self._lane(queue))
        lane.open = True
        if slots:
            lane.slots, lane.light = slots, frozenset()
        if queue not in self._intakes:
            self._intakes[queue] = asyncio.create_task(self._serve(lane))

    def _lane(self, queue: str) -> Lane:
        """Who gives a number means it, whatever the jobs are; otherwise light ones may be many."""
        if slots := self.options.queues.get(queue):
            return Lane(queue, slots)
        light = frozenset(kind for kind, executor in self._parts.executors.items() if executor.defaults.light)
        return Lane(queue, SLOTS, light)

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
        for attempt in [attempt for attempt in lane.running if attempt.held_up]:
            attempt.stop(Stop.GIVE_BACK)

    # Claiming and running

    async def _serve(self, lane: Lane) -> None:
        if self._parts.bus is not None:
            await self._parts.bus.listen(lane.queue, self._wakeups.rung)
        intake = Intake(lane, self._store, self._leases, self._clock, self._tally.claimed)
        await endure(partial(self._claim_on, lane, intake), self._clock, f"queue {lane.queue}")

    async def _claim_on(self, lane: Lane, intake: Intake) -> None:
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
            elif pause := intake.gives_way(self._wakeups.crowd, self._parts.random):
                self._fill(lane)
                await self._sit_out(lane, pause)

    async def _sit_out(self, lane: Lane, pause: float) -> None:
        """Leave the store, and what is rung for meanwhile, to others."""
        lane.sits_out = True
        try:
            await sleep(self._clock, pause)
        finally:
            lane.sits_out = False
        if lane.deaf:
            self._hear_again(lane)

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
        attempt.prepare(self._parts.executors.get(attempt.claim.kind), self._shipping.heard)
        attempt.lane.begin(attempt)
        attempt.task = self._loop.create_task(self._run(attempt))

    async def _run(self, attempt: Attempt) -> None:
        move = await attempt.run(self._clock, self._parts.random)
        if attempt.output is not None:
            await self._shipping.end(attempt, attempt.output, move)
        lane = attempt.lane
        lane.end(attempt)
        if self._stuck:
            self._stuck.discard(attempt.claim.id)
        if move is None:
            self._let_go([attempt])
        else:
            self._finisher.add(attempt, move)
        if lane.waiting:
            self._fill(lane)
        elif not lane.running:
            lane.emptied_at = self._clock.monotonic()

    def give_up(self, claim: Claim) -> None:
        """This job was told to stop long ago, and nothing stops it: it is not to be waited for."""
        self._stuck.add(claim.id)
        self.stuck.set()

    def _give_back(self, attempt: Attempt) -> None:
        """One that has not begun."""
        self._finisher.add(attempt, Release.give_back(attempt.claim))

    def _recorded(self, entries: Sequence[Entry], ends: Sequence[Ended]) -> None:
        """The store has answered: these jobs are out of our hands, and hooks may hear of them."""
        self._let_go([attempt for attempt, _ in entries])
        answered = [(*entry, end) for entry, end in zip(entries, ends, strict=True)]
        accepted: list[Accepted] = [answer for answer in answered if answer[2].state is not None]
        if len(accepted) < len(answered):
            self._refused([move for _, move, end in answered if end.state is None])
        if self._mindful:
            for attempt, _, _ in accepted:
                if mindful := self._mindful.get(attempt.claim.kind):
                    mindful.recorded(attempt.claim)
        self.ended += len(accepted)
        self._parts.hooks.ended(accepted)
        self._herald.ended(accepted)

    def _refused(self, moves: Sequence[Move]) -> None:
        self.fenced += len(moves)
        for move in moves:
            log.warning("worker.write_refused", job_id=str(move.job_id), token=move.token)

    def _let_go(self, attempts: Sequence[Attempt]) -> None:
        """Those of a claim mostly come together: what they share is seen to once."""
        for lease, group in groupby(attempts, key=_lease_of):
            together = list(group)
            self._leases.give(lease, len(together))
            for attempt in together:
                self._held.pop(attempt, None)
                if attempt.kept is not None:
                    attempt.kept()
            lane = together[0].lane
            lane.let_go(together)
            if lane.deaf and not lane.sits_out:
                self._hear_again(lane)

    def _hear_again(self, lane: Lane) -> None:
        """It can be answered again: look once, for what was rung meanwhile went to others."""
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
                attempt.stop(Stop.CANCEL)
                if attempt.claim.kind == OUTLIVING:
                    # An earlier attempt may still run: whoever claims it next looks.
                    self._give_back(attempt)
                else:
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
                self._let_go([attempt])

    async def _drain(self, grace: float) -> None:
        """Wait for running jobs, then stop them; those that can't be stopped are left to the lapse of their lease."""
        await self._until_idle(grace)
        for attempt in self._begun():
            attempt.stop(Stop.GIVE_BACK)
        await self._until_idle(STOP_PATIENCE)
        if self.running:
            log.warning("worker.jobs_left", running=self.running)

    async def _until_idle(self, limit: float) -> None:
        ends = self._clock.monotonic() + limit
        while self.running > len(self._stuck) and (left := ends - self._clock.monotonic()) > 0:
            await sleep(self._clock, min(left, 0.02))

    # Keeper

    def _start_keeper(self) -> None:
        at_work = partial(self._at_work, asyncio.get_running_loop())
        tell = Callbacks(self._lose, self._cancel, self._wakeups.count, at_work)
        self._tending = tending = Tending(
            self.id,
            self._clock,
            retention=self.options.retention,
            ended=lambda: self.ended,
            on_rescued=self._parts.hooks.rescued,
            counted=self._tally,
            crowd=lambda: self._wakeups.crowd,
        )
        if self._parts.stores is None:
            keep = partial(self._keeper.run, self._store, tell, tending)
            self._services.append(asyncio.create_task(endure(keep, self._clock, "keeper")))
        else:
            self._keeper_thread = KeeperThread(self._keeper, self._parts.stores, tending, tell)
            self._keeper_thread.start()

    def _at_work(self, loop: asyncio.AbstractEventLoop) -> str | None:
        """Which job the loop is at; asked when it stands still, so nothing changes meanwhile."""
        task = asyncio.current_task(loop)
        return next((attempt.claim.name for attempt in self._begun() if attempt.task is task), None)

    def _begun(self) -> list[Attempt]:
        return [attempt for lane in self._lanes.values() for attempt in lane.running]

    def _hurry(self) -> None:
        if self._keeper_thread is not None:
            self._keeper_thread.hurry()
        else:
            self._keeper.hurry()

    async def _end_services(self) -> None:
        """Last of all the leases: until here they had to be kept."""
        self._stop_listening()
        for end in self._watches:
            end()
        if self._keeper_thread is not None:
            await self._keeper_thread.stop()
        for service in self._services:
            service.cancel()
        await asyncio.wait(self._services)
        try:
            await self._store.renew(self.info(), self.options.lease, self._leases.take_done(), held=[])
            await self._store.leave(self.id)
            await self._tending.recorder.flush(self._store)
        except Exception as error:
            delayed("worker.farewell_failed", error)
