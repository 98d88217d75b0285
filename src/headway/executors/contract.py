"""What every executor promises (the "Jobs SDK"): a job is submitted to it and it answers with the job's new state.

An executor may run the job itself and answer `Completed`, or hand it to an outside system and answer `Running` (it is
then polled) or `Scheduled` (it is polled again after a while). It raises nothing for a job's own failure: it answers
`Failed`. What it raises is treated as a failure all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, Protocol
from uuid import UUID

import msgspec
import structlog

from headway.clock import Clock
from headway.model.job import Claim, ErrorInfo, Progress
from headway.model.retry import Failure, Retry


class Completed(msgspec.Struct, frozen=True):
    """The job is done; its result as JSON, or None."""

    result: bytes | None = None


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt failed; `failure` is what retry rules look at. `permanent`: don't try again."""

    error: ErrorInfo
    failure: Failure
    permanent: bool = False


class TimedOut(msgspec.Struct, frozen=True):
    """The executor ended the attempt because its time was over."""

    error: ErrorInfo


class Snoozed(msgspec.Struct, frozen=True):
    """The job wants to be run again later; no attempt is charged."""

    delay: float


class Cancelled(msgspec.Struct, frozen=True):
    """The job was stopped on request, or wants to end as cancelled; it is seen not to run any more."""

    reason: str


class Lost(msgspec.Struct, frozen=True):
    """The process that ran the job died under it: no one can say how far it came."""

    error: ErrorInfo


class Unknown(msgspec.Struct, frozen=True):
    """Nobody can find out what became of the job in its outside system."""

    error: ErrorInfo


class NoCode(msgspec.Struct, frozen=True):
    """This worker doesn't have the job's code; another may."""

    what: str


class Running(msgspec.Struct, frozen=True):
    """The job runs in an outside system: ask `poll` again after `every` seconds."""

    every: float = 1.0


class Scheduled(msgspec.Struct, frozen=True):
    """The outside system will start the job later: ask again after `delay` seconds, without holding a slot."""

    delay: float


Ending = Completed | Failed | TimedOut | Snoozed | Cancelled | Lost | Unknown | NoCode
Answer = Ending | Running | Scheduled


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for jobs of a kind that don't say otherwise."""

    timeout: float | None = None
    retry: Retry = Retry()


class Executor(Protocol):
    """Runs one kind of job."""

    kind: str
    defaults: Defaults

    async def start(self) -> None:
        """The worker starts."""

    async def submit(self, claim: Claim, context: Context) -> Answer:
        """Begin the job. A cancellation of this coroutine is an order to stop the job and to see it stopped."""

    async def poll(self, claim: Claim, context: Context) -> Answer:
        """What became of a job that is `Running` in an outside system."""

    async def cancel(self, claim: Claim, context: Context) -> None:
        """Stop a job that is `Running` in an outside system; return when it is seen stopped."""

    async def close(self) -> None:
        """The worker stops: let go of threads, processes and connections."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker hands to the makers of its executors (entry points of `headway.executors`)."""

    clock: Clock
    registry: Any = None
    """The app's functions, for kind `call`."""
    provider: Any = None
    """What builds service classes, for kind `call`."""
    reference: str | None = None
    """Where child processes find the app: `module:attribute`."""
    on_stuck: Callable[[Claim], None] = lambda claim: None
    """Called when a job can't be stopped: its slot stays held, and the worker's process is to be replaced."""


class Context:
    """A running job as seen from inside it: `headway.current()`.

    `emit` takes a progress report or a piece of output; the worker stores them under the claim's token.
    """

    __slots__ = ("_cancelled", "_claim", "_emit", "alone", "timeout")

    def __init__(
        self, claim: Claim, *, timeout: float | None, emit: Callable[[Progress | bytes], None], alone: bool = False
    ) -> None:
        self._claim = claim
        self._emit = emit
        self._cancelled = False
        self.timeout = timeout
        self.alone = alone
        """To be run in a fresh child process: the job is suspected of killing its worker."""

    @property
    def job_id(self) -> UUID:
        return self._claim.id

    @property
    def attempt(self) -> int:
        return self._claim.attempt

    @property
    def token(self) -> int:
        """Grows with each attempt: hand it to other systems so that they can refuse a stale writer."""
        return self._claim.token

    @property
    def correlation_id(self) -> str:
        """Links this job, those it submits and their log lines."""
        return self._claim.correlation_id or str(self._claim.id)

    @property
    def cancelled(self) -> bool:
        """Someone asked for this job to stop: finish quickly. For functions in threads, which can't be interrupted."""
        return self._cancelled

    def progress(self, done: float, total: float | None = None, text: str | None = None) -> None:
        """Say how far the job is."""
        self._emit(Progress(done, total, text))

    def write(self, output: bytes) -> None:
        """Add to the job's output."""
        self._emit(output)

    @property
    def log(self) -> Any:
        """A logger whose lines are the job's output: `current().log.info("sent", to=address)`."""
        return _job_log

    def ask_to_stop(self) -> None:
        """Called by the worker."""
        self._cancelled = True


# Through the standard library's logging, where what jobs log is taken for their output.
_job_log = structlog.wrap_logger(
    logging.getLogger("headway.job"),
    processors=[structlog.stdlib.filter_by_level, structlog.processors.KeyValueRenderer(key_order=["event"])],
    wrapper_class=structlog.stdlib.BoundLogger,
)
logging.getLogger("headway.job").setLevel(logging.DEBUG)

_current: ContextVar[Context] = ContextVar("headway_current")


def current_or_none() -> Context | None:
    """The job that is running here, if any."""
    return _current.get(None)


def current() -> Context:
    """The job that is running here. Raises LookupError outside of a job."""
    try:
        return _current.get()
    except LookupError:
        raise LookupError("headway.current() works only inside a running job") from None


def enter(context: Context) -> Token[Context]:
    """Make `context` the current one for this task, thread or process, until `leave`."""
    return _current.set(context)


def leave(entered: Token[Context]) -> None:
    """The counterpart of `enter`."""
    _current.reset(entered)
