"""What every executor promises (the "Jobs SDK"): a job is submitted to it and it answers with the job's new state.

An executor may run the job itself and answer `Completed`, or hand it to an outside system and answer `Running` (it is
then polled) or `Scheduled` (it is polled again after a while). It raises nothing for a job's own failure: it answers
`Failed`. What it raises is treated as a failure all the same.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar, Token
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

import msgspec

from headway.clock import Clock
from headway.model.errors import ConfigurationError
from headway.model.job import Claim, ErrorInfo, Progress
from headway.model.result import About
from headway.model.retry import Failure, Retry
from headway.model.sealed import Attachment, Credential
from headway.model.target import Target


class Completed(msgspec.Struct, frozen=True):
    """The job is done; its result, or None. It is JSON, unless `about` says otherwise."""

    result: bytes | None = None
    about: About | None = None


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt failed; `failure` is what retry rules look at. `permanent`: don't try again."""

    error: ErrorInfo
    failure: Failure
    permanent: bool = False
    not_before: float = 0.0
    """Seconds that the next attempt must wait at least, because a server said so."""
    result: bytes | None = None
    """What is known of it all the same, as JSON; kept if it is not tried again."""


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
    light: bool = False
    """Such jobs do nothing but wait for others: many of them fit into one slot of a worker."""


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


class MissingExtra(ConfigurationError):
    """An executor needs libraries that aren't installed; the worker does without this kind."""


def require(library: str, *, extra: str) -> None:
    """For an executor that imports a library with its first job only: a worker that gets none needs no memory for it.
    Raises MissingExtra."""
    if find_spec(library) is None:
        raise MissingExtra(f"{library} is not installed: pip install 'headway[{extra}]'")


@runtime_checkable
class Mindful(Protocol):
    """An executor that keeps something until the end of an attempt is recorded."""

    def recorded(self, claim: Claim) -> None:
        """The store knows how this attempt ended."""


class Secrets(Protocol):
    """What an executor may ask the vault for."""

    async def reveal(self, name: str) -> bytes:
        """The value of a named secret. Raises SecretNotFound, or VaultLocked where this worker has not got the key."""

    async def replaced(self, names: Collection[str], since: datetime) -> list[str]:
        """Which of these secrets have got another value since then."""

    async def attachments_of(self, owner_ids: Sequence[UUID]) -> list[list[Attachment]]:
        """What jobs have, by reference, in their order."""

    async def contents(self, attachments: Sequence[Attachment], address: str = "") -> list[bytes]:
        """What is attached, in their order; a credential only for the address that it was entered for. Raises
        AttachmentNotFound, SealBroken, VaultLocked."""

    async def destination(self, named: UUID | str) -> tuple[Target, Credential | None]:
        """A target, and what opens it. Raises TargetNotFound, VaultLocked."""

    def credential(self, content: bytes) -> Credential:
        """The credential that is the content of an attachment."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker hands to the makers of its executors (entry points of `headway.executors`)."""

    clock: Clock
    registry: Any = None
    """The app's functions, for kind `call`."""
    provider: Any = None
    """What builds service classes, for kind `call`."""
    reference: str | None = None
    """Where child processes find the app: `module:attribute`."""
    children: int | None = None
    """How many child processes may run at once; None leaves it to the executor."""
    on_stuck: Callable[[Claim], None] = lambda claim: None
    """Called when a job can't be stopped: its slot stays held, and the worker's process is to be replaced."""
    store: Any = None
    """The worker's store (`headway.store.contract.Store`), for kinds that keep more than a job and its result."""
    secrets: Secrets | None = None
    """The vault, for kinds that use secrets by name."""
    outputs: Any = None
    """Where output and artifacts are kept (`headway.output.contract.Outputs`)."""
    own: tuple[Any, ...] = ()
    """Where the service itself listens (`headway.outgoing.guard.Endpoint`): no request may go there."""
    near: Collection[Any] = ()
    """Such endpoints as requests may go to although they are private; they may become more."""
    shared: dict[str, Any] = {}
    """What executors of one worker have in common, by names of their own."""


NOT_YET = math.inf
"""When a job began that is still to begin."""

LOG = "log"
"""The stream of output that is no script's."""


class Written(msgspec.Struct, frozen=True):
    """A piece of output."""

    stream: str
    data: bytes


class Context:
    """A running job as seen from inside it: `headway.current()`.

    `emit` takes a progress report or a piece of output; the worker stores them under the claim's token.
    """

    __slots__ = ("_cancelled", "_claim", "_emit", "alone", "began", "kept", "leaving", "timeout")

    def __init__(
        self, claim: Claim, timeout: float | None, emit: Callable[[Progress | Written], None], alone: bool = False
    ) -> None:
        self._claim = claim
        self._emit = emit
        self._cancelled = False
        self.kept: Callable[[], None] | None = None
        self.leaving = False
        """The job only leaves this worker: what lives outside of it may go on, for the next attempt to find."""
        self.timeout = timeout
        self.began: float | None = None
        """When the job really began, by the worker's clock, where it had to wait in its slot; `NOT_YET` meanwhile."""
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

    def write(self, output: bytes, stream: str = LOG) -> None:
        """Add to the job's output."""
        self._emit(Written(stream, output))

    def keep(self, let_go: Callable[[], None]) -> None:
        """Call this once when the attempt is over and its end recorded: what it brings is held in memory until then."""
        self.kept = let_go

    @property
    def log(self) -> Any:
        """A logger whose lines are the job's output: `current().log.info("sent", to=address)`."""
        return _job_log()

    def ask_to_stop(self, *, leaving: bool = False) -> None:
        """Called by the worker."""
        self._cancelled = True
        self.leaving = leaving


_jobs = logging.getLogger("headway.job")
# At once: jobs that log below this name by themselves need no structlog, and what they log is output at any level.
_jobs.setLevel(logging.DEBUG)


@cache
def _job_log() -> Any:
    """Through the standard library's logging, where what jobs log is taken for their output."""
    # Imported with the first line that a job logs: programs that only submit need not wait for it.
    import structlog

    return structlog.wrap_logger(
        _jobs,
        processors=[structlog.stdlib.filter_by_level, structlog.processors.KeyValueRenderer(key_order=["event"])],
        wrapper_class=structlog.stdlib.BoundLogger,
    )


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


enter: Callable[[Context], Token[Context]] = _current.set
"""Make this context the current one for this task, thread or process, until `leave`."""
leave: Callable[[Token[Context]], None] = _current.reset
"""The counterpart of `enter`."""
