"""One try at one job, from its begin to the move that records its end."""

from __future__ import annotations

import asyncio
import traceback
from enum import Enum
from typing import TYPE_CHECKING

from headway.clock import Clock, sleep
from headway.executors.contract import Answer, Context, Ending, Executor, Failed, NoCode, Running, Scheduled, Snoozed
from headway.model.job import Claim, Finish, Progress, Release, Report, error_info, failure_of
from headway.model.retry import Random, Retry
from headway.worker.judge import Move, judge
from headway.worker.keeper import Lease
from headway.worker.output import Output

if TYPE_CHECKING:
    from headway.worker.lane import Lane

REPORT_AFTER = 1.0
"""Shorter jobs tell their start time only with their end."""


class Stop(Enum):
    """Why a running attempt is to be stopped."""

    CANCEL = "cancel"
    GIVE_BACK = "give_back"
    LEASE_LOST = "lease_lost"


class Attempt:
    """A claim in a lane: first it waits there, then it runs.

    `stop` may be called at any time while it runs; `run` then ends as soon as the job is seen stopped.
    """

    __slots__ = ("_executor", "_stop", "began", "claim", "context", "lane", "lease", "output", "reported", "task")

    def __init__(self, claim: Claim, lane: Lane, lease: Lease) -> None:
        self.claim = claim
        self.lane = lane
        self.lease = lease
        self.context: Context | None = None
        self.output: Output | None = None
        self.began: float | None = None
        self.reported = False
        self.task: asyncio.Task[None] | None = None
        self._executor: Executor | None = None
        self._stop: Stop | None = None

    def prepare(self, executor: Executor | None) -> None:
        """What it takes to run: an executor, and a context in which the job can speak for itself."""
        claim = self.claim
        self._executor = executor
        timeout = claim.timeout if claim.timeout or executor is None else executor.defaults.timeout
        self.context = Context(claim, timeout=timeout, emit=self._emit, alone=claim.suspect)

    def has_news(self, now: float) -> bool:
        """It says how far it is, or runs for a while and the store doesn't know since when."""
        if self.output is not None and self.output.progress is not None:
            return True
        return not self.reported and self.began is not None and now - self.began >= REPORT_AFTER

    def report(self, now: float) -> Report:
        """When it began, as seconds ago, and how far it is."""
        self.reported = True
        progress = self.output.take_progress() if self.output else None
        ran = now - (self.began if self.began is not None else now)
        return Report(job_id=self.claim.id, token=self.claim.token, ran=ran, progress=progress)

    def stop(self, reason: Stop) -> None:
        """Ask for the end. A lost lease overrules every other reason: then nothing is recorded."""
        first = self._stop is None
        if first or reason is Stop.LEASE_LOST:
            self._stop = reason
        if self.context is not None:
            self.context.ask_to_stop()
        # One order is enough: renewals repeat a cancel, and a second one would interrupt how the first is carried out.
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
        # It is over: a stop that comes now must not interrupt its recording. The context refers to us: kept, it would
        # make a cycle of every job, left to the garbage collector.
        self.task = self.context = None
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
        executor, context = self._executor, self.context
        if executor is None or context is None:
            return NoCode(f"executor {self.claim.kind!r}")
        answer = await executor.submit(self.claim, context)
        if isinstance(answer, Running):
            answer = await self._watch(executor, context, answer, clock)
        return Snoozed(answer.delay) if isinstance(answer, Scheduled) else answer

    async def _watch(self, executor: Executor, context: Context, answer: Answer, clock: Clock) -> Ending | Scheduled:
        """Follow a job that lives in an outside system; a stop is carried there before it is believed."""
        try:
            while isinstance(answer, Running):
                await sleep(clock, answer.every)
                answer = await executor.poll(self.claim, context)
        except asyncio.CancelledError:
            await executor.cancel(self.claim, context)
            raise
        return answer

    def _emit(self, news: Progress | bytes) -> None:
        """From the loop, or from the thread in which the job runs."""
        if self.output is None:
            self.output = Output()
        self.output.emit(news)
