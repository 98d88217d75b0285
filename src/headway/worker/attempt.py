"""One try at one job, from its begin to the move that records its end."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from headway.clock import Clock, sleep
from headway.executors.contract import (
    NOT_YET,
    Answer,
    Completed,
    Context,
    Ending,
    Executor,
    Failed,
    Lost,
    NoCode,
    Running,
    Scheduled,
    Snoozed,
    TimedOut,
    Unknown,
    Written,
)
from headway.model.errors import VaultLocked
from headway.model.job import OUTLIVING, Claim, ErrorInfo, Finish, Progress, Release, Report, error_info, failure_of
from headway.model.retry import Random, Retry
from headway.observe import traces
from headway.observe.discretion import discreet
from headway.observe.logs import get_logger
from headway.worker.judge import Move, judge
from headway.worker.keeper import Lease
from headway.worker.output import Output

if TYPE_CHECKING:
    from headway.worker.lane import Lane

REPORT_AFTER = 1.0
"""Shorter jobs tell their start time only with their end."""


log = get_logger("headway.worker")


class Stop(Enum):
    """Why a running attempt is to be stopped."""

    CANCEL = "cancel"
    GIVE_BACK = "give_back"
    LEASE_LOST = "lease_lost"


class Attempt:
    """A claim in a lane: first it waits there, then it runs.

    `stop` may be called at any time while it runs; `run` then ends as soon as the job is seen stopped.
    """

    __slots__ = (
        "_executor",
        "_on_news",
        "_stop",
        "began",
        "claim",
        "context",
        "kept",
        "lane",
        "lease",
        "output",
        "reported",
        "share",
        "task",
    )

    def __init__(self, claim: Claim, lane: Lane, lease: Lease) -> None:
        self.claim = claim
        self.lane = lane
        self.share = lane.share(claim.kind)
        self.lease = lease
        self.context: Context | None = None
        self.kept: Callable[[], None] | None = None
        """To be called when its end is recorded."""
        self.output: Output | None = None
        self.began: float | None = None
        self.reported = False
        self.task: asyncio.Task[None] | None = None
        self._executor: Executor | None = None
        self._on_news: Callable[[], None] = _nobody
        self._stop: Stop | None = None

    def prepare(self, executor: Executor | None, on_news: Callable[[], None]) -> None:
        """What it takes to run: an executor, and a context in which the job can speak for itself. `on_news` is called,
        from any thread, when it has."""
        claim = self.claim
        self._executor = executor
        self._on_news = on_news
        timeout = claim.timeout if claim.timeout or executor is None else executor.defaults.timeout
        self.context = Context(claim, timeout, self._emit, claim.suspect)

    def has_news(self, now: float) -> bool:
        """It says how far it is, or runs for a while and the store doesn't know since when."""
        if self.output is not None and self.output.progress is not None:
            return True
        return not self.reported and self.ran(now) >= REPORT_AFTER

    def report(self, now: float) -> Report:
        """When it began, as seconds ago, and how far it is."""
        self.reported = True
        progress = self.output.take_progress() if self.output else None
        return Report(job_id=self.claim.id, token=self.claim.token, ran=max(self.ran(now), 0.0), progress=progress)

    @property
    def held_up(self) -> bool:
        """It has its slot, but not yet what it needs beside, such as a child process."""
        return self.context is not None and self.context.began == NOT_YET

    def ran(self, now: float) -> float:
        """Seconds since it began; less than nothing while it has not."""
        began = self.began if self.context is None or self.context.began is None else self.context.began
        return now - (NOT_YET if began is None else began)

    def stop(self, reason: Stop) -> None:
        """Ask for the end. A lost lease overrules every other reason: then nothing is recorded."""
        first = self._stop is None
        if first or reason is Stop.LEASE_LOST:
            self._stop = reason
        if self.context is not None:
            self.context.ask_to_stop(leaving=self._stop is not Stop.CANCEL)
        # One order is enough: renewals repeat a cancel, and a second one would interrupt how the first is carried out.
        # A task that has not come to its first step sees it there: cancelled now it would end without a word, and its
        # slot and lease would be held for ever.
        if first and self.task is not None and self.began is not None:
            self.task.cancel()

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked for its cancel."""
        return self._stop is Stop.CANCEL

    def run(self, clock: Clock, random: Random) -> Coroutine[Any, Any, Move | None]:
        """Execute and judge; None when there is nothing to record because the job is no longer ours."""
        return self._traced(clock, random) if traces.loaded() else self._run(clock, random)

    async def _traced(self, clock: Clock, random: Random) -> Move | None:
        with traces.attempt(self.claim) as span:
            move = await self._run(clock, random)
            if move is None:
                traces.conclude(span, Stop.LEASE_LOST.value, "the lease was lost")
            else:
                outcome = str(move.outcome or (move.reason if isinstance(move, Release) else ""))
                traces.conclude(span, outcome, _words(move))
        return move

    async def _run(self, clock: Clock, random: Random) -> Move | None:
        self.began = clock.monotonic()
        try:
            ending: Ending | None = None if self._stop else await self._execute(clock)
        except asyncio.CancelledError as error:
            # Nobody asked: the job's own doing, and given back it would do it for ever.
            itself = Failed(error=error_info(error), failure=failure_of(error))
            ending = None if self._stop else itself
        except VaultLocked as error:
            # Another worker may have the key.
            log.debug("job.vault_locked", job_id=str(self.claim.id), name=self.claim.name, error=str(error))
            ending = NoCode("the key of the vault is missing here")
        except Exception as error:
            # The one wall: an executor that raises has failed its job, not the worker.
            trace = "".join(traceback.format_exception(error))
            ending = Failed(error=error_info(error, trace), failure=failure_of(error))
        now = clock.monotonic()
        ran = self.ran(now)
        # It is over: a stop that comes now must not interrupt its recording. The context refers to us: kept, it would
        # make a cycle of every job, left to the garbage collector.
        if self.context is not None:
            self.kept = self.context.kept
        self.task = self.context = None
        if self._stop is Stop.LEASE_LOST:
            return None
        if ending is None:
            return self.stopped(ran if ran >= 0 else None)
        if isinstance(ending, Completed):
            # Nearly all end like this: the shortest way for them.
            return Finish.succeeded(self.claim, ran, ending.result, ending.about)
        if isinstance(ending, NoCode):
            self.lane.parking.tell(self.claim, ending.what, now)
        return self._judged(_discreet(ending), ran, random)

    def _judged(self, ending: Ending, ran: float, random: Random) -> Move:
        """What becomes of the job. One that can't be judged has failed: unrecorded, it would hold its slot and its
        lease for ever."""
        default = self._executor.defaults.retry if self._executor is not None else Retry()
        try:
            return judge(self.claim, ending, ran, default, random)
        except Exception as error:
            log.exception("job.not_judged", job_id=str(self.claim.id), name=self.claim.name, error=repr(error))
            return Finish.failed(self.claim, ran, _unjudged(ending, error))

    def stopped(self, ran: float | None = None) -> Move:
        """The move for a job that was stopped, or never begun. One that outlives its worker was stopped before anybody
        looked what an earlier attempt has begun: whoever claims it next does."""
        if self._stop is Stop.CANCEL and self.claim.kind != OUTLIVING:
            return Finish.cancelled(self.claim, ran, "cancelled on request")
        return Release.give_back(self.claim)

    async def _execute(self, clock: Clock) -> Ending:
        executor, context = self._executor, self.context
        if executor is None or context is None:
            return NoCode(f"jobs of kind {self.claim.kind!r} can't be run here: no executor is installed for them")
        answer = await executor.submit(self.claim, context)
        if isinstance(answer, Completed):
            return answer
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

    def _emit(self, news: Progress | Written) -> None:
        """From the loop, or from the thread in which the job runs."""
        if self.output is None:
            self.output = Output()
        self.output.emit(news)
        if isinstance(news, Written):
            self._on_news()


def _nobody() -> None:
    """Called when nobody listens."""


def _discreet(ending: Ending) -> Ending:
    """The ending without secrets that were revealed here: an error may quote what it was given."""
    if not isinstance(ending, Failed | TimedOut | Lost | Unknown):
        return ending
    said = ending.error
    trace = None if said.traceback is None else discreet(said.traceback)
    # What a server answered has been cleaned by its executor.
    error = msgspec.structs.replace(said, message=discreet(said.message), traceback=trace)
    return msgspec.structs.replace(ending, error=error)


def _unjudged(ending: Ending, error: Exception) -> ErrorInfo:
    """How the attempt ended, and why nobody knows what follows from that."""
    words = f"whether to try again can't be told: {type(error).__name__}: {error}"
    if not isinstance(ending, Failed | TimedOut | Lost | Unknown):
        return ErrorInfo("NotJudged", words)
    return msgspec.structs.replace(ending.error, message=f"{ending.error.message} ({words})")


def _words(move: Move) -> str | None:
    """What went wrong, without its traceback."""
    if move.error is None:
        return None
    error = msgspec.json.decode(move.error, type=ErrorInfo)
    return f"{error.type}: {error.message}"
