"""One queue as a worker serves it: claims in batches, bounded by what it can run."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from uuid import UUID

from headway.clock import Clock, wait_for
from headway.model.errors import StoreUnavailable
from headway.model.job import Claim
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.scripts.work import Want
from headway.worker.attempt import Attempt
from headway.worker.keeper import Leases

BATCH = 500
FOREVER = float("inf")
RETRY_AFTER = 1.0
GATHER_SECONDS = 0.01
PREFETCH_SECONDS = 0.05
"""Claim ahead only what is likely to begin within this time, so that long jobs are left to idle workers."""

log = get_logger("headway.worker")


class Lane:
    """The slots of one queue and the jobs in hand.

    `in_hand` counts every job from claim until its end is recorded; it never exceeds twice the slots.
    """

    def __init__(self, queue: str, slots: int) -> None:
        self.queue = queue
        self.slots = slots
        self.waiting: deque[Attempt] = deque()
        self.running: dict[Attempt, None] = {}
        """A set in the order of beginning: who walks over it must do so the same way each time."""
        self.in_hand = 0
        self.open = True
        self.wake = asyncio.Event()
        self.freed = asyncio.Event()
        self.idle = False
        self.peeked = False
        """Woken because the store said that a job is due."""
        self.deaf = False
        """Was too full to answer a doorbell, and hears no more of them until there is room."""
        self._pace = 0.0
        self._begun = 0
        self._paced_at = 0.0

    @property
    def room(self) -> int:
        """How many more may be claimed now."""
        ahead = min(self.slots, int(self._pace * PREFETCH_SECONDS))
        return min(self.slots + ahead, 2 * self.slots) - self.in_hand

    @property
    def worthwhile(self) -> int:
        """How many a claim should be for. Small claims cost nearly as much as large ones: where jobs are short, gather
        what will be free within some milliseconds; where they are long, one free slot is reason enough."""
        return max(1, min(self.slots // 2, BATCH // 2, int(self._pace * GATHER_SECONDS)))

    def next_to_begin(self) -> Attempt | None:
        """The next claimed job, if a slot is free for it."""
        if self.waiting and len(self.running) < self.slots:
            self._begun += 1
            return self.waiting.popleft()
        return None

    def measure(self, now: float) -> None:
        """How many jobs a second begin here; called every now and then."""
        elapsed = now - self._paced_at
        if elapsed >= PREFETCH_SECONDS:
            self._pace = self._begun / elapsed
            self._begun, self._paced_at = 0, now


class Intake:
    """Keeps a lane filled."""

    def __init__(self, lane: Lane, store: Store, leases: Leases, clock: Clock) -> None:
        self._lane = lane
        self._store = store
        self._leases = leases
        self._clock = clock

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
        want = Want(worker_id=worker_id, queue=lane.queue, limit=asked, lease_id=lease_id, ttl=ttl)
        try:
            got = await self._store.claim(want)
        except StoreUnavailable as error:
            log.warning("worker.claim_delayed", queue=lane.queue, error=str(error))
            return [], RETRY_AFTER
        lane.measure(self._clock.monotonic())
        attempts = self._take(got.claims, want.lease_id, asked_at + ttl)
        if got.retry_in is not None:
            return attempts, max(got.retry_in, 0.005) if not attempts else None
        return attempts, None if len(attempts) == asked else FOREVER

    def _take(self, claims: Sequence[Claim], lease_id: UUID, deadline: float) -> list[Attempt]:
        if not claims:
            return []
        lane = self._lane
        lane.in_hand += len(claims)
        lease = self._leases.take(lease_id, len(claims), deadline)
        return [Attempt(claim, lane, lease) for claim in claims]


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
