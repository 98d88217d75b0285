"""Fires schedules for as long as it runs.

It sleeps until the next one is due, or until somebody rings because a schedule was made or changed, and in any case not
longer than `POLL`: rings may be lost, and clocks are set. When it wakes it fires in batches until nothing is left.

What the store keeps decides; this loop may die at any moment, or run anywhere else at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from headway.clock import Clock, wait_for
from headway.model.errors import KeyBusy, StoreUnavailable
from headway.observe import series
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.scripts.fire import CHANNEL, Fired, NotFired

POLL = 1.0
"""Seconds between looks at the store when nothing is due and nobody rings."""
LIMIT = 1000
"""Schedules fired in one transaction."""
IN_OTHER_HANDS = 0.05
"""Seconds until another look at schedules that somebody else is just firing or changing."""
BUSY_ASIDE = 1.0
BROKEN_ASIDE = 60.0
"""Seconds for which a schedule is left alone that can't be fired: somebody is at its jobs, or it is of no use."""
STEP = timedelta(seconds=1)
"""The store's clock was set back if it lags behind steady time by more."""

STALLED = 60.0
"""Seconds without a look at what is due after which something is wrong."""

log = get_logger("headway.scheduler")


class Look(msgspec.Struct, frozen=True):
    """What the store's clock showed, and the steady time before and after it was asked."""

    at: datetime
    asked: float
    answered: float

    def set_back_since(self, earlier: Look) -> bool:
        """Whether less has passed on the store's clock than surely has passed."""
        return self.at - earlier.at < timedelta(seconds=self.asked - earlier.answered) - STEP


class Scheduler:
    """One scheduler. `run` ends when it is cancelled, or after `stop` with the tick under way."""

    def __init__(self, clock: Clock, *, poll: float = POLL, limit: int = LIMIT) -> None:
        self._clock = clock
        self._poll = poll
        self._most = self._limit = limit
        self._rung = asyncio.Event()
        self._stopping = False
        self._previous: datetime | None = None
        self._look: Look | None = None
        self._aligned = False
        self._failures = 0
        self._ticked = clock.monotonic()
        self.jobs = 0
        """Jobs made so far."""

    def wake(self) -> None:
        """Look now."""
        self._rung.set()

    def stop(self) -> None:
        """End with the tick under way."""
        self._stopping = True
        self._rung.set()

    def stalled(self) -> str | None:
        """Why nothing is fired that may be due, if that is so; may be asked by any thread."""
        waited = self._clock.monotonic() - self._ticked
        return f"firing stalls: the last look at what is due was {waited:.0f} s ago" if waited > STALLED else None

    async def run(self, store: Store) -> None:
        """Fire until stopped. A store that can't be reached is waited for."""
        hearing = None
        try:
            while not self._stopping:
                self._rung.clear()
                if hearing is None:
                    hearing = await self._listen(store)
                await wait_for(self._clock, self._rung, await self._patiently(store))
        finally:
            if hearing is not None:
                hearing()

    async def tick(self, store: Store) -> float:
        """Fire all that is due; seconds until there is something to do again, at most `poll`."""
        while not self._stopping:
            asked = self._clock.monotonic()
            fired = await self._fire(store)
            if fired is None:
                continue
            set_back = self._note(fired, asked)
            if set_back or (fired.clear and not self._aligned):
                # It looks at all schedules there are: what is due comes first.
                await self._realign(store, set_back=set_back)
            elif fired.clear:
                return self._until_next(fired, asked)
            elif not fired.schedules:
                return IN_OTHER_HANDS
        return 0.0

    def _until_next(self, fired: Fired, asked: float) -> float:
        """The wait counts from when the store looked, which is a while ago if much was due."""
        if fired.wait is None:
            return self._poll
        return min(self._poll, max(asked + fired.wait - self._clock.monotonic(), 0.0))

    async def _patiently(self, store: Store) -> float:
        """A tick; when the store can't be reached, longer and longer waits."""
        try:
            wait = await self.tick(store)
        except StoreUnavailable as error:
            self._failures += 1
            log.warning("scheduler.delayed", error=str(error))
            return min(0.2 * 2.0 ** min(self._failures, 10), 5.0)
        except Exception:
            log.exception("scheduler.failed")
            return self._poll
        self._failures = 0
        self._ticked = self._clock.monotonic()
        return wait

    async def _fire(self, store: Store) -> Fired | None:
        """One batch. If one schedule spoils it for all, smaller ones find out which, and that one is put aside."""
        try:
            fired = await store.fire(previous=self._previous, limit=self._limit)
        except NotFired as failed:
            await self._narrow(store, failed)
            return None
        self._limit = min(self._limit * 10, self._most)
        return fired

    async def _narrow(self, store: Store, failed: NotFired) -> None:
        if len(failed.tried) > 1:
            self._limit = max(min(self._limit, len(failed.tried)) // 10, 1)
            return
        [schedule_id], busy = failed.tried, isinstance(failed.error, KeyBusy)
        aside, tell = (BUSY_ASIDE, log.warning) if busy else (BROKEN_ASIDE, log.error)
        if await store.put_aside(schedule_id, aside):
            tell("schedule.put_aside", schedule_id=str(schedule_id), seconds=aside, error=repr(failed.error))

    def _note(self, fired: Fired, asked: float) -> bool:
        """Remember up to when nothing is left; whether the store's clock was set back since the last time."""
        before, self._look = self._look, Look(fired.at, asked, self._clock.monotonic())
        self._previous = fired.clear_until
        self.jobs += fired.jobs
        _count(fired)
        if fired.jobs or fired.skipped:
            log.info("scheduler.fired", jobs=fired.jobs, skipped=fired.skipped, schedules=fired.schedules)
        return before is not None and self._look.set_back_since(before)

    async def _realign(self, store: Store, *, set_back: bool) -> None:
        """Schedules that a wrong clock has sent ahead come back to the present: once at the start, and whenever it was
        set back."""
        if set_back:
            log.warning("scheduler.clock_set_back", now=self._look and self._look.at.isoformat())
            self._previous = None
        self._aligned = False
        cursor: UUID | None = await store.realign(None)
        while cursor is not None:
            cursor = await store.realign(cursor)
        self._aligned = True

    async def _listen(self, store: Store) -> Callable[[], None] | None:
        """Be rung for; None if that could not be arranged yet. Until then there is the poll."""
        try:
            return await store.listen(self._heard)
        except Exception as error:
            log.warning("scheduler.deaf", error=repr(error))
            return None

    def _heard(self, channel: str) -> None:
        """A ring for schedulers, or (after a reconnect) for all."""
        if channel in {CHANNEL, ""}:
            self._rung.set()


def _count(fired: Fired) -> None:
    series.schedule_lateness.observe(fired.lateness)
    for labels, number in fired.made.items():
        series.jobs_submitted.add(labels, number)
    for result, number in {"fired": fired.jobs, **fired.reasons}.items():
        series.occurrences.add((result,), number)
