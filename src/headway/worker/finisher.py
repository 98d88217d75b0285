"""Records moves in batches. While one batch is being committed the next gathers: the busier, the larger."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from headway.clock import Clock, sleep
from headway.model.errors import KeyBusy, NotStorable, StoreUnavailable
from headway.model.job import Ended, ErrorInfo, Finish, Release
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.worker.attempt import Attempt
from headway.worker.judge import Move
from headway.worker.tally import Entry, Tally

BATCH = 1000
BATCH_BYTES = 8 * 1024 * 1024
BUSY_WAIT = 0.25
UNFORESEEN_WAIT = 5.0
Recorded = Callable[[Sequence[Entry], Sequence[Ended]], None]
"""Called once the store has answered, with what it made of each attempt's move."""

log = get_logger("headway.worker")


class _Act(msgspec.Struct, frozen=True):
    """How moves of one kind are recorded, and counted."""

    record: Callable[[Sequence[Any]], Awaitable[list[Ended]]]
    count: Callable[[Sequence[Entry], Sequence[Ended]], None]


class Finisher:
    """Takes moves from attempts and brings them into the store, however long that takes."""

    def __init__(self, store: Store, clock: Clock, recorded: Recorded, tally: Tally) -> None:
        self._store = store
        self._clock = clock
        self._tally = tally
        self._recorded = recorded
        self._entries: list[Entry] = []
        self._deferred = 0
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, attempt: Attempt, move: Move) -> None:
        if not self._entries:
            self._idle.clear()
            self._work.set()
        self._entries.append((attempt, move))

    async def flushed(self) -> None:
        """All moves added so far are recorded."""
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            while self._entries:
                await self._record(self._next_batch())
            if not self._deferred:
                self._idle.set()
            await self._work.wait()
            self._work.clear()

    def _next_batch(self) -> list[Entry]:
        """As many as one transaction should take: large results are heavy."""
        size, count = 0, 0
        for _, move in self._entries[:BATCH]:
            size += len(move.result or b"") if isinstance(move, Finish) else 0
            if count and size > BATCH_BYTES:
                break
            count += 1
        batch, self._entries = self._entries[:count], self._entries[count:]
        return batch

    async def _record(self, batch: Sequence[Entry]) -> None:
        finishes = [entry for entry in batch if isinstance(entry[1], Finish)]
        releases = [entry for entry in batch if isinstance(entry[1], Release)] if len(finishes) < len(batch) else []
        if finishes:
            await self._insist(_Act(self._store.finish, self._tally.finished), finishes)
        if releases:
            await self._insist(_Act(self._store.release, self._tally.released), releases)

    async def _insist(self, act: _Act, entries: Sequence[Entry], wait: float = 0.05) -> None:
        """Until the store has answered. A batch that fails as a whole is split: one bad move holds up no others. Only
        what a move's own content brings about makes the job fail; whatever else goes wrong, it ends as it ended."""
        while True:
            try:
                answers = await act.record([move for _, move in entries])
            except KeyBusy:
                if len(entries) > 1:
                    return await self._split(act, entries)
                return self._defer(entries[0])
            except StoreUnavailable as error:
                log.warning("worker.finish_delayed", moves=len(entries), error=str(error))
                await sleep(self._clock, wait)
                wait = min(wait * 2, 2.0)
            except Exception as error:
                if len(entries) > 1:
                    return await self._split(act, entries)
                if isinstance(error, NotStorable | TypeError | ValueError):
                    return await self._give_up(entries[0], error)
                return self._postpone(entries[0], error)
            else:
                act.count(entries, answers)
                return self._recorded(entries, answers)

    async def _split(self, act: _Act, entries: Sequence[Entry]) -> None:
        middle = len(entries) // 2
        await self._insist(act, entries[:middle])
        await self._insist(act, entries[middle:])

    def _defer(self, entry: Entry, wait: float = BUSY_WAIT) -> None:
        """A foreign transaction holds the job's row: try again later, and let the others pass meanwhile."""
        self._deferred += 1
        self._clock.call_later(wait, lambda: self._resume(entry))

    def _resume(self, entry: Entry) -> None:
        self._deferred -= 1
        self.add(*entry)

    def _postpone(self, entry: Entry, error: Exception) -> None:
        """The lease is kept meanwhile; whoever mends the cause finds the job where it was."""
        log.error("worker.finish_impossible", exc_info=error, job_id=str(entry[1].job_id), error=repr(error))
        self._defer(entry, UNFORESEEN_WAIT)

    async def _give_up(self, entry: Entry, error: Exception) -> None:
        """The store can't take this very end: the job fails, and says why."""
        attempt, move = entry
        log.error("worker.finish_refused", job_id=str(move.job_id), error=repr(error))
        reason = ErrorInfo("NotStorable", f"the job ended, but its end could not be stored: {error!r}")
        failed = Finish.failed(attempt.claim, move.ran, reason)
        try:
            [answer] = await self._store.finish([failed])
        except Exception as still:
            self._postpone((attempt, failed), still)
        else:
            self._tally.finished([(attempt, failed)], [answer])
            self._recorded([(attempt, failed)], [answer])
