"""Records moves in batches. While one batch is being committed the next gathers: the busier, the larger."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from headway.clock import Clock, sleep
from headway.model.errors import KeyBusy, StoreUnavailable
from headway.model.job import Ended, ErrorInfo, Finish, Release
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.worker.attempt import Attempt
from headway.worker.judge import Move

BATCH = 1000
BUSY_WAIT = 0.25
GIVE_UP_WAIT = 5.0
Entry = tuple[Attempt, Move]
Act = Callable[[Sequence[Any]], Awaitable[list[Ended]]]
Recorded = Callable[[Attempt, Move, Ended], None]
"""Called once the store has answered, with what it made of an attempt's move."""

log = get_logger("headway.worker")


class Finisher:
    """Takes moves from attempts and brings them into the store, however long that takes."""

    def __init__(self, store: Store, clock: Clock, recorded: Recorded) -> None:
        self._store = store
        self._clock = clock
        self._recorded = recorded
        self._entries: list[Entry] = []
        self._deferred = 0
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, attempt: Attempt, move: Move) -> None:
        self._entries.append((attempt, move))
        self._idle.clear()
        self._work.set()

    async def flushed(self) -> None:
        """All moves added so far are recorded."""
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._entries:
                batch, self._entries = self._entries[:BATCH], self._entries[BATCH:]
                await self._record(batch)
            if not self._deferred:
                self._idle.set()

    async def _record(self, batch: Sequence[Entry]) -> None:
        finishes = [entry for entry in batch if isinstance(entry[1], Finish)]
        releases = [entry for entry in batch if isinstance(entry[1], Release)]
        if finishes:
            await self._insist(self._store.finish, finishes)
        if releases:
            await self._insist(self._store.release, releases)

    async def _insist(self, act: Act, entries: Sequence[Entry], wait: float = 0.05) -> None:
        """Until the store has answered. A batch that fails as a whole is split: one bad move holds up no others."""
        while True:
            try:
                answers = await act([move for _, move in entries])
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
                return await self._give_up(entries[0], error)
            else:
                for (attempt, move), answer in zip(entries, answers, strict=True):
                    self._recorded(attempt, move, answer)
                return None

    async def _split(self, act: Act, entries: Sequence[Entry]) -> None:
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

    async def _give_up(self, entry: Entry, error: Exception) -> None:
        """The store can't take this very end: the job fails, and says why."""
        attempt, move = entry
        log.error("worker.finish_refused", job_id=str(move.job_id), error=repr(error))
        reason = ErrorInfo("NotStorable", f"the job ended, but its end could not be stored: {error!r}")
        failed = Finish.failed(attempt.claim, move.ran, reason)
        try:
            [answer] = await self._store.finish([failed])
        except Exception as still:
            # The lease is kept meanwhile; whoever mends the cause finds the job where it was.
            log.exception("worker.finish_impossible", job_id=str(move.job_id), error=repr(still))
            self._defer((attempt, failed), GIVE_UP_WAIT)
        else:
            self._recorded(attempt, failed, answer)
