"""One try at one job, from its begin to the move that records its end."""

from __future__ import annotations

import asyncio
import traceback
from enum import Enum

from headway.clock import Clock, sleep
from headway.executors.contract import Answer, Context, Ending, Executor, Failed, NoCode, Running, Scheduled, Snoozed
from headway.model.job import Claim, Finish, Release, error_info, failure_of
from headway.model.retry import Random, Retry
from headway.worker.judge import Move, judge

REPORT_AFTER = 1.0
"""Shorter jobs tell their start time only with their end."""


class Stop(Enum):
    """Why a running attempt is to be stopped."""

    CANCEL = "cancel"
    GIVE_BACK = "give_back"
    LEASE_LOST = "lease_lost"


class Attempt:
    """A claim being run. `stop` may be called at any time; `run` then ends as soon as the job is seen stopped."""

    def __init__(self, claim: Claim, executor: Executor | None, context: Context) -> None:
        self.claim = claim
        self.context = context
        self.began: float | None = None
        self.reported = False
        self._executor = executor
        self._stop: Stop | None = None
        self.task: asyncio.Task[None] | None = None

    def start(self, task: asyncio.Task[None]) -> None:
        self.task = task

    def unreported(self, now: float) -> bool:
        """Running for a while, and the store doesn't know since when: true once."""
        if self.reported or self.began is None or now - self.began < REPORT_AFTER:
            return False
        self.reported = True
        return True

    def stop(self, reason: Stop) -> None:
        """Ask for the end. A lost lease overrules every other reason: then nothing is recorded."""
        first = self._stop is None
        if first or reason is Stop.LEASE_LOST:
            self._stop = reason
        self.context.ask_to_stop()
        # One order is enough (renewals repeat a cancel): a second one would interrupt how the job carries out the first.
        if first and self.task is not None:
            self.task.cancel()

    async def run(self, clock: Clock, random: Random) -> Move | None:
        """Execute and judge; None when there is nothing to record because the job is no longer ours."""
        self.began = clock.monotonic()
        try:
            ending: Ending | None = await self._execute(clock)
        except asyncio.CancelledError as error:
            # Nobody asked: the job's own doing, and given back it would do it for ever.
            itself = Failed(error=error_info(error), failure=failure_of(error))
            ending = None if self._stop else itself
        except Exception as error:
            # The one wall: an executor that raises has failed its job, not the worker.
            trace = "".join(traceback.format_exception(error))
            ending = Failed(error=error_info(error, trace), failure=failure_of(error))
        # It is over: a stop that comes now must not interrupt its recording.
        self.task = None
        if self._stop is Stop.LEASE_LOST:
            return None
        ran = clock.monotonic() - self.began
        if ending is None:
            return self.stopped(ran)
        default = self._executor.defaults.retry if self._executor is not None else Retry()
        return judge(self.claim, ending, ran, default, random)

    def stopped(self, ran: float | None = None) -> Move:
        """The move for a job that was stopped, or never begun."""
        if self._stop is Stop.CANCEL:
            return Finish.cancelled(self.claim, ran, "cancelled on request")
        return Release.give_back(self.claim)

    async def _execute(self, clock: Clock) -> Ending:
        if self._executor is None:
            return NoCode(f"executor {self.claim.kind!r}")
        answer = await self._executor.submit(self.claim, self.context)
        if isinstance(answer, Running):
            answer = await self._watch(self._executor, answer, clock)
        return Snoozed(answer.delay) if isinstance(answer, Scheduled) else answer

    async def _watch(self, executor: Executor, answer: Answer, clock: Clock) -> Ending | Scheduled:
        """Follow a job that lives in an outside system; a stop is carried there before it is believed."""
        try:
            while isinstance(answer, Running):
                await sleep(clock, answer.every)
                answer = await executor.poll(self.claim, self.context)
        except asyncio.CancelledError:
            await executor.cancel(self.claim, self.context)
            raise
        return answer
