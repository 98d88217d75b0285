"""One queue as a worker serves it: claims in batches, bounded by what it can run."""

from __future__ import annotations

import asyncio
from collections import deque
from uuid import UUID

import structlog

from headway.clock import Clock, wait_for
from headway.model.errors import StoreUnavailable
from headway.model.job import Claim
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

Hold = tuple[UUID, int]
"""A job and the token under which it is held: it may be claimed again while an attempt that was lost still ends."""

log = structlog.get_logger("headway.worker")


class Lane:
    """The slots of one queue and the jobs in hand.

    `in_hand` counts every job from claim until its end is recorded; it never exceeds twice the slots.
    """

    def __init__(self, queue: str, slots: int) -> None:
        self.queue = queue
        self.slots = slots
        self.waiting: deque[Claim] = deque()
        self.running: dict[Hold, Attempt] = {}
        self.in_hand = 0
        self.open = True
        self.wake = asyncio.Event()
        self.freed = asyncio.Event()
        self.idle = False
        self.peeked = False
        """Woken because the store said that a job is due."""
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

    def next_to_begin(self) -> Claim | None:
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

    async def room(self) -> None:
        """Until a claim is worth its while."""
        lane = self._lane
        while lane.room < lane.worthwhile:
            lane.freed.clear()
            await lane.freed.wait()

    async def claim(self, worker_id: UUID, lease_id: UUID, ttl: float) -> tuple[list[Claim], float | None]:
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
        lane.in_hand += len(got.claims)
        if got.claims:
            self._leases.take(want.lease_id, len(got.claims), asked_at + ttl)
        if got.retry_in is not None:
            return got.claims, max(got.retry_in, 0.005) if not got.claims else None
        return got.claims, None if len(got.claims) == asked else FOREVER


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
