"""One queue as a worker serves it: claims in batches, bounded by what it can run."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from uuid import UUID

from headway.clock import Clock, Timer, wait_for
from headway.model.job import Claim
from headway.model.retry import Random
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.scripts.work import Want
from headway.worker.attempt import Attempt
from headway.worker.endurance import delayed
from headway.worker.keeper import Leases
from headway.worker.parking import Parking

BATCH = 500
CROWD = 20
"""So many light jobs, which do nothing but wait for other servers, fit into one slot."""
FOREVER = float("inf")
RETRY_AFTER = 1.0
GATHER_SECONDS = 0.01
AT_ONCE = 8
"""Workers whose claims don't get into each other's way, about."""
PER_JOB = 0.00002
"""Seconds that each job adds to a claim, about."""
SLOW = 2.0
"""A claim that takes so many times as long as the quickest one, for its jobs, was held up by others."""
FORGET = 1.02
"""By so much the quickest one is forgotten with each further claim."""
TURN = 0.15
"""Seconds for which a worker that gives way leaves the store to others, for each `AT_ONCE` of them, on average."""
LONGEST_PAUSE = 3.0
PREFETCH_SECONDS = 0.05
"""Claim ahead only what is likely to begin within this time, so that long jobs are left to idle workers."""

Claimed = Callable[[str, Sequence[float]], None]
"""Told of every claim: its queue, and for how long each of the jobs had been due."""

log = get_logger("headway.worker")


class Lane:
    """The slots of one queue and the jobs in hand.

    A slot takes one job, or `CROWD` of the kinds that are light. What is in hand counts from claim until its end is
    recorded; it never exceeds twice the slots.
    """

    def __init__(self, queue: str, slots: int, light: frozenset[str] = frozenset()) -> None:
        self.queue = queue
        self.slots = slots
        self.light = light
        self._in_hand = 0
        self._running = 0
        """Both in the shares of a slot that a light job takes."""
        self.waiting: deque[Attempt] = deque()
        self.running: dict[Attempt, None] = {}
        """A set in the order of beginning: who walks over it must do so the same way each time."""
        self.open = True
        self.wake = asyncio.Event()
        self.freed = asyncio.Event()
        self.idle = False
        self.peeked = False
        """Woken because the store said that a job is due."""
        self.answer: Timer | None = None
        """When it will answer a ring that all workers have heard."""
        self.answers = False
        """Woken by such a ring."""
        self.claim_time = 0.0
        """Seconds that the last claim took which brought something."""
        self.asking_since: float | None = None
        """When it began to ask the store for jobs, if there has been no answer since."""
        self.parking = Parking()
        self.emptied_at = 0.0
        """When its last job stopped running."""
        self.sits_out = False
        """Claims nothing for a while, for the sake of others."""
        self.deaf = False
        """Could not answer a doorbell, and hears no more of them until it can."""
        self._pace = 0.0
        self._begun = 0
        self._paced_at = 0.0

    @property
    def room(self) -> int:
        """How many more may be claimed now."""
        ahead = min(self.slots, int(self._pace * PREFETCH_SECONDS))
        in_hand = -(-self._in_hand // CROWD)
        return min(self.slots + ahead, 2 * self.slots) - in_hand

    @property
    def worthwhile(self) -> int:
        """How many a claim should be for. Small claims cost nearly as much as large ones: where jobs are short, gather
        what will be free within some milliseconds; where they are long, one free slot is reason enough."""
        return max(1, min(self.slots // 2, BATCH // 2, int(self._pace * GATHER_SECONDS)))

    @property
    def busy(self) -> bool:
        """Whether there is a job that runs, or is about to."""
        return bool(self.running or self.waiting)

    def next_to_begin(self) -> Attempt | None:
        """The next claimed job, if a slot is free for it."""
        if self.waiting and self._running + self.waiting[0].share <= self.slots * CROWD:
            self._begun += 1
            return self.waiting.popleft()
        return None

    def share(self, kind: str) -> int:
        """What a job of this kind takes, in the least share of a slot."""
        return 1 if kind in self.light else CROWD

    def take(self, attempts: Sequence[Attempt]) -> None:
        """They are claimed."""
        self._in_hand += sum([attempt.share for attempt in attempts])

    def begin(self, attempt: Attempt) -> None:
        """It runs."""
        self.running[attempt] = None
        self._running += attempt.share

    def end(self, attempt: Attempt) -> None:
        """It has stopped running."""
        del self.running[attempt]
        self._running -= attempt.share

    def let_go(self, attempts: Sequence[Attempt]) -> None:
        """Their ends are recorded."""
        self._in_hand -= sum([attempt.share for attempt in attempts])
        self.freed.set()

    def measure(self, now: float) -> None:
        """How many jobs a second begin here; called every now and then."""
        elapsed = now - self._paced_at
        if elapsed >= PREFETCH_SECONDS:
            self._pace = self._begun / elapsed
            self._begun, self._paced_at = 0, now


class Intake:
    """Keeps a lane filled.

    Where many workers draw from one backlog of short jobs, they get into each other's way: claims walk over what others
    are just taking, and whoever comes to his turn has to warm up anew. A worker with nothing to do but to wait for a
    claim that takes long leaves the store to the others for a while: a few at a time get more out of it than a hundred.
    """

    def __init__(self, lane: Lane, store: Store, leases: Leases, clock: Clock, claimed: Claimed) -> None:
        self._lane = lane
        self._store = store
        self._claimed = claimed
        self._leases = leases
        self._clock = clock
        self._quickest = FOREVER
        self._answered_at = 0.0
        self._goes_on = False
        self._held_up = False

    @property
    def worthwhile(self) -> bool:
        """Whether there is room enough for a claim now."""
        return self._lane.room >= self._lane.worthwhile

    async def room(self) -> None:
        """Until a claim is worth its while."""
        while not self.worthwhile:
            self._lane.freed.clear()
            await self._lane.freed.wait()

    async def claim(self, worker_id: UUID, lease_id: UUID, ttl: float) -> tuple[list[Attempt], float | None]:
        """What came, and how long to be idle before the next claim: None not at all, `FOREVER` until woken."""
        lane = self._lane
        lane.wake.clear()
        asked_at, asked = self._clock.monotonic(), min(lane.room, BATCH)
        want = Want(worker_id=worker_id, queue=lane.queue, limit=asked, lease_id=lease_id, ttl=ttl, hush=lane.answers)
        lane.answers = False
        lane.asking_since = asked_at if lane.asking_since is None else lane.asking_since
        try:
            got = await self._store.claim(want)
        except Exception as error:
            delayed("worker.claim_delayed", error, queue=lane.queue)
            return [], RETRY_AFTER
        lane.asking_since = None
        now = self._clock.monotonic()
        self._judge(asked_at, now, len(got.claims))
        self._goes_on, self._answered_at = len(got.claims) == asked, now
        lane.measure(now)
        self._claimed(lane.queue, got.waited)
        attempts = self._take(got.claims, want.lease_id, asked_at + ttl)
        if got.retry_in is not None:
            return attempts, max(got.retry_in, 0.005) if not attempts else None
        return attempts, None if len(attempts) == asked else FOREVER

    def gives_way(self, crowd: int, random: Random) -> float:
        """Seconds until the next claim, for the sake of others."""
        if crowd <= AT_ONCE or not self._held_up:
            return 0.0
        return random() * min(2 * TURN * (crowd / AT_ONCE - 1), LONGEST_PAUSE)

    def _judge(self, asked_at: float, now: float, jobs: int) -> None:
        """Whether others hold this worker up: with nothing to run it has waited for a claim, longer than claims take
        and than the jobs of the last one ran. The first claim after a rest doesn't tell what its jobs are like."""
        took, ran = now - asked_at, self._lane.emptied_at - self._answered_at
        slow = took > SLOW * (self._quickest + jobs * PER_JOB)
        self._held_up = self._goes_on and slow and took > ran and not self._lane.busy
        if jobs:
            self._lane.claim_time = took
            self._quickest = min(took, self._quickest * FORGET)

    def _take(self, claims: Sequence[Claim], lease_id: UUID, deadline: float) -> list[Attempt]:
        if not claims:
            return []
        lane = self._lane
        lease = self._leases.take(lease_id, len(claims), deadline)
        attempts = [Attempt(claim, lane, lease) for claim in claims]
        lane.take(attempts)
        return attempts


async def idle(lane: Lane, clock: Clock, delay: float) -> None:
    """Until the lane is woken, or `delay` seconds are over."""
    lane.idle = True
    try:
        if delay == FOREVER:
            await lane.wake.wait()
        else:
            await wait_for(clock, lane.wake, delay)
    finally:
        lane.idle = False
