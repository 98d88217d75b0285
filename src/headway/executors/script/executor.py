"""Kind `script`: a script on a target, by SSH or on the worker's own machine.

The script runs apart from the connection and from this process: a lost connection is made again and the script found
again, and where this worker dies the next attempt finds it. It answers with what is known, never with a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from headway.executors.contract import (
    Answer,
    Cancelled,
    Context,
    Defaults,
    Ending,
    Failed,
    Snoozed,
    Unknown,
)
from headway.executors.script.attempt import LONGEST_WAIT, NEVER, Attempt, not_yet
from headway.executors.script.hosts import Access, machine_of
from headway.executors.script.orders import Place
from headway.executors.script.run import Run
from headway.executors.script.task import Before, Parts, Redactor, Task
from headway.model.errors import (
    HeadwayError,
    SealBroken,
    StoreUnavailable,
    TargetNotFound,
    VaultLocked,
)
from headway.model.job import Claim, ErrorInfo, error_info, failure_of
from headway.model.retry import Retry
from headway.observe.logs import get_logger

TIMEOUT = 3600.0

log = get_logger("headway.script")


class ScriptExecutor:
    """Runs scripts; many at a time, on many hosts."""

    kind = "script"
    defaults = Defaults(timeout=TIMEOUT, retry=Retry())

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._ended: dict[tuple[UUID, int], list[Callable[[], None]]] = {}

    async def start(self) -> None:
        """Connections are made when they are needed."""

    async def close(self) -> None:
        await self._parts.hosts.close()

    async def poll(self, claim: Claim, context: Context) -> Answer:
        raise NotImplementedError("submit answers with the script's end")

    async def cancel(self, claim: Claim, context: Context) -> None:
        raise NotImplementedError("a script is stopped by cancelling submit")

    def recorded(self, claim: Claim) -> None:
        """The end of this attempt is in the store: nobody needs its directory any more."""
        for clear in self._ended.pop((claim.id, claim.token), ()):
            clear()

    async def submit(self, claim: Claim, context: Context) -> Answer:
        """Run the script to its end. When this is cancelled, CancelledError comes once the script is seen stopped; if
        the job only leaves this worker, the script is left alone. If a worker died, or left, while it was cancelling
        the job, nothing is begun: what was begun before is stopped and seen dead."""
        try:
            before = await self._parts.past(claim)
            return await self._begin(claim, context, before)
        except VaultLocked:
            # Another worker may have the key.
            raise
        except StoreUnavailable:
            return Snoozed(1.0)

    async def _begin(self, claim: Claim, context: Context, before: Before) -> Answer:
        try:
            task = await self._parts.load(claim, before.since)
        except (VaultLocked, StoreUnavailable):
            raise
        except HeadwayError as error:
            if isinstance(error, SealBroken):
                await self._parts.alarm(claim, "vault.seal_broken", f"job {claim.id}", str(error))
            return _not_loaded(claim, context, before, error)
        elsewhere = [place for place in before.places if place != task.access.place]
        if elsewhere:
            return await self._elsewhere(claim, context, before, task.access, elsewhere[-1])
        known = before.cancelling or task.access.place in before.places
        if not known and not await self._parts.past.note(claim, task.access.place):
            return Snoozed(1.0)
        return await self._run(claim, context, before, task)

    async def _elsewhere(self, claim: Claim, context: Context, before: Before, access: Access, place: str) -> Ending:
        """It may have been begun where this worker can't look. Another machine's own is left to a worker there."""
        told = f"the script may have been begun on {place}, and {access.target.name} is now {access.place}"
        if before.cancelling:
            return _stop_later(claim, context, told)
        machine = machine_of(place)
        if machine is not None and await self._parts.past.served(machine, claim.queue):
            return Snoozed(LONGEST_WAIT)
        return Unknown(ErrorInfo("Unknown", f"{told}: nobody can look. It may still be running"))

    async def _run(self, claim: Claim, context: Context, before: Before, task: Task) -> Answer:
        if task.replaced:
            context.write(_withheld(task.replaced), "stderr")
        voice = Voice(context, task.redactor)
        again = before.again or before.cancelling
        place = Place(job=str(claim.id), attempt=claim.attempt, earlier=before.open, again=again)
        host = self._parts.hosts.of(task.access)
        run = Run(host, task.work, place, self._clock, voice)
        attempt = Attempt(self._parts, self._remember, claim, context, host, run, task)
        try:
            return await (attempt.cancel() if before.cancelling else attempt.run())
        finally:
            voice.end()

    def _remember(self, claim: Claim, clear: Callable[[], None]) -> None:
        self._ended.setdefault((claim.id, claim.token), []).append(clear)


class Voice:
    """A script's output on its way out, without the secrets that it knows."""

    def __init__(self, context: Context, redactor: Callable[[], Redactor]) -> None:
        self._context = context
        self._make = redactor
        self._redactors: dict[str, Redactor] = {}

    def __call__(self, stream: str, data: bytes) -> None:
        redactor = self._redactors.get(stream)
        if redactor is None:
            redactor = self._redactors[stream] = self._make()
        self._say(stream, redactor.feed(data))

    def end(self) -> None:
        for stream, redactor in self._redactors.items():
            self._say(stream, redactor.close())

    def _say(self, stream: str, data: bytes) -> None:
        if data:
            self._context.write(data, stream)


def _withheld(names: Sequence[str]) -> bytes:
    told = ", ".join(names)
    return (
        f"headway: output and files are withheld: replaced while the script ran, and maybe in them: {told}\n".encode()
    )


def _not_loaded(claim: Claim, context: Context, before: Before, error: HeadwayError) -> Ending:
    """Something is missing that the script needs, or that is needed to look at it. A target is only gone if somebody
    has said that its server is."""
    if before.cancelling and not before.begun:
        return Cancelled(f"cancelled on request; {NEVER}")
    if isinstance(error, TargetNotFound) and before.begun:
        return Unknown(ErrorInfo("Unknown", f"{error}. Nobody has seen its script stopped: it may still be running"))
    if before.cancelling:
        return _stop_later(claim, context, str(error))
    if before.begun:
        return Unknown(error_info(error))
    return Failed(error=error_info(error), failure=failure_of(error), permanent=True)


def _stop_later(claim: Claim, context: Context, why: str) -> Snoozed:
    """Nobody has seen it stopped; whatever is missing may be given back."""
    log.warning("script.stop_delayed", job_id=str(claim.id), error=why)
    context.progress(0, None, not_yet("cancelled", why, LONGEST_WAIT))
    return Snoozed(LONGEST_WAIT)
