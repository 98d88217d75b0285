"""Records moves in batches. While one batch is being committed the next gathers: the busier, the larger."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from headway.clock import Clock, sleep
from headway.model.errors import KeyBusy, StoreUnavailable
from headway.model.job import Ended, ErrorInfo, Finish, Release, encode
from headway.model.states import Outcome, State
from headway.store.contract import Store
from headway.worker.judge import Move

BATCH = 1000
BUSY_WAIT = 0.25
M = TypeVar("M", Finish, Release)
Act = Callable[[Sequence[M]], Awaitable[list[Ended]]]
Recorded = Callable[[list[tuple[Move, Ended]]], None]
"""Called once the store has answered, with what it made of each move."""

log = structlog.get_logger("headway.worker")


class Finisher:
    """Takes moves from attempts and brings them into the store, however long that takes."""

    def __init__(self, store: Store, clock: Clock, recorded: Recorded) -> None:
        self._store = store
        self._clock = clock
        self._recorded = recorded
        self._moves: list[Move] = []
        self._deferred = 0
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, move: Move) -> None:
        self._moves.append(move)
        self._idle.clear()
        self._work.set()

    async def flushed(self) -> None:
        """All moves added so far are recorded."""
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._moves:
                batch, self._moves = self._moves[:BATCH], self._moves[BATCH:]
                await self._record(batch)
            if not self._deferred:
                self._idle.set()

    async def _record(self, batch: Sequence[Move]) -> None:
        finishes = [move for move in batch if isinstance(move, Finish)]
        releases = [move for move in batch if isinstance(move, Release)]
        if finishes:
            await self._insist(self._store.finish, finishes)
        if releases:
            await self._insist(self._store.release, releases)

    async def _insist(self, act: Act[M], moves: Sequence[M], wait: float = 0.05) -> None:
        """Until the store has answered. A batch that fails as a whole is split: one bad move holds up no others."""
        while True:
            try:
                answers = await act(moves)
            except KeyBusy:
                if len(moves) > 1:
                    return await self._split(act, moves)
                return self._defer(moves[0])
            except StoreUnavailable as error:
                log.warning("worker.finish_delayed", moves=len(moves), error=str(error))
                await sleep(self._clock, wait)
                wait = min(wait * 2, 2.0)
            except Exception as error:
                if len(moves) > 1:
                    return await self._split(act, moves)
                return await self._give_up(moves[0], error)
            else:
                by_id = {answer.job_id: answer for answer in answers}
                return self._recorded([(move, by_id[move.job_id]) for move in moves])

    def _defer(self, move: Move) -> None:
        """A foreign transaction holds the job's row: try again later, and let the others pass meanwhile."""
        self._deferred += 1
        self._clock.call_later(BUSY_WAIT, lambda: self._resume(move))

    def _resume(self, move: Move) -> None:
        self._deferred -= 1
        self.add(move)

    async def _split(self, act: Act[M], moves: Sequence[M]) -> None:
        middle = len(moves) // 2
        await self._insist(act, moves[:middle])
        await self._insist(act, moves[middle:])

    async def _give_up(self, move: Move, error: Exception) -> None:
        """The store can't take this very end: the job fails, and says why."""
        log.error("worker.finish_refused", job_id=str(move.job_id), error=repr(error))
        reason = ErrorInfo("NotStorable", f"the job ended, but its end could not be stored: {error!r}")
        failed = Finish(
            job_id=move.job_id,
            token=move.token,
            state=State.FAILED,
            outcome=Outcome.FAILED,
            ran=move.ran,
            error=encode(reason),
        )
        [answer] = await self._store.finish([failed])
        self._recorded([(failed, answer)])
