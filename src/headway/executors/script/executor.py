"""Kind `script`: a script on a target, by SSH or on the worker's own machine.

The script runs apart from the connection and from this process: a lost connection is made again and the script found
again, and where this worker dies the next attempt finds it. It answers with what is known, never with a guess.
"""

from __future__ import annotations

import asyncio
import random as chance
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from headway.clock import Clock, deadline, sleep
from headway.executors.contract import (
    Answer,
    Cancelled,
    Completed,
    Context,
    Defaults,
    Ending,
    Failed,
    Snoozed,
    Unknown,
)
from headway.executors.script.endings import ScriptResult, ended, timed_out, unreachable
from headway.executors.script.hosts import Access, Host, Hosts, Station, machine_of
from headway.executors.script.link import LinkLost, Unreachable
from headway.executors.script.orders import Place, Work
from headway.executors.script.run import Ended, Refused, Run, Vanished
from headway.model.errors import (
    HeadwayError,
    OutputUnavailable,
    SealBroken,
    StoreUnavailable,
    TargetNotFound,
    VaultLocked,
)
from headway.model.job import Claim, ErrorInfo, error_info, failure_of
from headway.model.retry import Retry
from headway.observe.logs import get_logger

TIMEOUT = 3600.0
PATIENCE = 300.0
"""Seconds for which a host that can't be reached any more is tried again before the script's fate counts as unknown."""
KILL_AFTER = 5.0
"""Seconds that a script is given to end by itself after it was asked to."""
KEEP_PATIENCE = 60.0
"""Seconds for which files that can't be stored are tried again before they are given up."""
LONGEST_WAIT = 15.0
_NEVER = "the script had not begun, and never will"

log = get_logger("headway.script")


class Redactor(Protocol):
    """Takes secrets out of a stream, also where they lie across two pieces."""

    def feed(self, piece: bytes) -> bytes: ...
    def close(self) -> bytes: ...


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is carried out."""

    access: Access
    work: Work
    redactor: Callable[[], Redactor]
    """Makes one for each stream."""
    replaced: Sequence[str] = ()
    """Secrets that have another value than the script was given, so that nobody can take that out any more."""

    def __repr__(self) -> str:
        return f"Task({self.access.target.name})"


class Load(Protocol):
    """Where a claim's task comes from: its payload, the vault, the targets."""

    async def __call__(self, claim: Claim, begun_at: datetime | None) -> Task:
        """`begun_at`: it may have begun then, with what there was. Raises HeadwayError."""


class Before(msgspec.Struct, frozen=True):
    """What came before this attempt."""

    open: tuple[int, ...] = ()
    """Earlier attempts of which nobody has seen the end, so that their runs may still be there."""
    again: bool = False
    """Another worker has held this very attempt, and may have begun the script."""
    cancelling: bool = False
    """The job is to be cancelled, and nobody has seen it stopped."""
    places: tuple[str, ...] = ()
    """Where those may have begun it."""
    since: datetime | None = None
    """And when, at the earliest."""

    @property
    def begun(self) -> bool:
        """The script may run already."""
        return self.again or bool(self.open)


class Past(Protocol):
    """Where that is known."""

    async def __call__(self, claim: Claim) -> Before: ...
    async def note(self, claim: Claim, place: str) -> bool:
        """Keep in mind where the script is about to be begun; False when the job is no longer held."""

    async def served(self, machine: str, queue: str) -> bool:
        """Whether a worker on this machine takes jobs of this queue."""


Keep = Callable[[Claim, Run, Station, Task], Awaitable[int]]
"""Collects files of a run that has ended; how many."""


Alarm = Callable[[Claim, str, str, str], Awaitable[None]]
"""Writes down what may be an attack: what happened, to what, and the words that the job's error has."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What the executor is made of."""

    clock: Clock
    load: Load
    past: Past
    hosts: Hosts
    keep: Keep
    alarm: Alarm
    patience: float = PATIENCE
    kill_after: float = KILL_AFTER
    keep_patience: float = KEEP_PATIENCE


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
        attempt = _Attempt(self, claim, context, host, run, task)
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


class _Attempt:
    """One try at one script."""

    def __init__(  # noqa: PLR0913 - all of it belongs to this attempt alone
        self, executor: ScriptExecutor, claim: Claim, context: Context, host: Host, run: Run, task: Task
    ) -> None:
        self._executor = executor
        self._parts = executor._parts
        self._clock = executor._clock
        self._claim = claim
        self._context = context
        self._host = host
        self._run = run
        self._task = task
        self._began = self._clock.monotonic()
        self._kept = 0
        self._stopped = False
        """There was something to stop."""

    @property
    def _seen(self) -> bool:
        return self._run.seen or self._stopped

    async def run(self) -> Ending:
        try:
            async with deadline(self._clock, self._context.timeout):
                return await self._see_through()
        except TimeoutError:
            end = await self._carried_out(self._stop("the time is over"))
            return self._judged(end) if end else timed_out(self._context.timeout or 0.0, begun=self._seen)
        except asyncio.CancelledError:
            if self._context.leaving:
                # The script goes on; the next attempt finds it where it is.
                raise
            return await self.cancel()
        except Exception as error:
            if not self._run.may_live:
                raise
            # As a failure it might be tried again, beside the first.
            log.exception("script.lost_sight", job_id=str(self._claim.id))
            return Unknown(error_info(error))

    async def cancel(self) -> Ending:
        """Whichever attempt has begun the script, it is stopped and seen dead."""
        end = await self._carried_out(self._stop("cancelled"))
        if end is not None:
            return self._judged(end)
        how = "the script was stopped and seen dead" if self._seen else _NEVER
        return Cancelled(f"cancelled on request; {how}")

    async def _see_through(self) -> Ending:
        """Again and again over new connections, until the end is known."""
        waits = _Waits(self._parts.patience, self._clock)
        while True:
            try:
                async with self._host.station() as station:
                    waits.reset()
                    return await self._follow(station)
            except Refused as error:
                return Failed(error=error_info(error), failure=failure_of(error))
            except (LinkLost, Unreachable) as error:
                if isinstance(error, Unreachable) and error.alarming:
                    target = self._task.access.target
                    await self._parts.alarm(self._claim, "target.host_key_changed", f"target {target.name}", str(error))
                if not self._run.may_live and (isinstance(error, Unreachable) or not waits.more):
                    return unreachable(error)
                if not waits.more:
                    return Unknown(_out_of_reach(error))
                log.warning("script.connection_lost", job_id=str(self._claim.id), error=str(error))
            await waits.wait()

    async def _follow(self, station: Station) -> Ending:
        try:
            return await self._conclude(station, await self._run.follow(station))
        except Vanished as error:
            if error.nothing_left:
                self._remember(station)
            return Unknown(error_info(error))

    async def _conclude(self, station: Station, end: Ended) -> Ending:
        await self._collect(station)
        self._remember(station)
        return self._judged(end)

    async def _collect(self, station: Station) -> None:
        """What the script did is done: that its files are missing is told with its output, and changes nothing else."""
        waits = _Waits(self._parts.keep_patience, self._clock)
        while not self._task.replaced:
            try:
                self._kept = await self._parts.keep(self._claim, self._run, station, self._task)
                return
            except (OSError, OutputUnavailable, StoreUnavailable) as error:
                if isinstance(error, OSError) or not waits.more:
                    self._context.write(f"headway: files could not be collected: {error}\n".encode(), "stderr")
                    return
                log.warning("script.collect_delayed", job_id=str(self._claim.id), error=str(error))
            await waits.wait()

    def _remember(self, station: Station) -> None:
        directory, for_good = self._run.directory(station.base), not self._run.settled
        self._executor._remember(self._claim, lambda: self._host.clear(directory, for_good=for_good))

    def _judged(self, end: Ended) -> Ending:
        ran = self._clock.monotonic() - self._began
        result = ScriptResult.of(end.code, ran, attached=self._run.attached, artifacts=self._kept)
        return ended(result)

    async def _carried_out(self, act: Awaitable[Ended | None]) -> Ended | None:
        """On a task of its own: a pending cancel of this one would take every wait in it for another. A further order
        to stop changes nothing."""
        task = asyncio.ensure_future(act)
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                if task.cancelled():
                    raise
        return task.result()

    async def _stop(self, why: str) -> Ended | None:
        """Kill the script, whichever attempt has begun it, and see it dead, however long that takes; its end, if it
        came by itself before."""
        if self._run.may_live:
            for _ in self._run.each():
                end = await self._stop_one(why)
                if end is not None:
                    return end
        return None

    async def _stop_one(self, why: str) -> Ended | None:
        waits = _Waits(float("inf"), self._clock)
        while True:
            try:
                async with self._host.station() as station:
                    return await self._stop_there(station)
            except (LinkLost, Unreachable, _Denied) as error:
                log.warning("script.stop_delayed", job_id=str(self._claim.id), error=str(error))
                self._context.progress(0, None, _not_yet(why, str(error), waits.pause))
            await waits.wait()

    async def _stop_there(self, station: Station) -> Ended | None:
        count, state = await self._run.look(station)
        if not count and state[:1] == ["ended"]:
            await self._run.rest(station)
            end = Ended(int(state[1]))
            await self._conclude(station, end)
            return end
        self._stopped = self._stopped or state[:1] not in (["none"], ["barred"], ["over"])
        if not await self._sent(station, b"TERM", self._parts.kill_after):
            allowed = await self._run.signal(station, b"KILL")
            if not await self._gone(station, KILL_AFTER):
                raise _Denied("it is still there" if allowed else "its user may not end its processes")
        await self._run.rest(station)
        self._remember(station)
        return None

    async def _sent(self, station: Station, signal: bytes, patience: float) -> bool:
        await self._run.signal(station, signal)
        return await self._gone(station, patience)

    async def _gone(self, station: Station, patience: float) -> bool:
        """Whether nothing of the run lives any more, or comes to live, before the time is over."""
        until = self._clock.monotonic() + patience
        pause = 0.02
        while True:
            count, state = await self._run.look(station)
            if not count and state not in (["none"], ["starting"]):
                return True
            if self._clock.monotonic() >= until:
                return False
            await sleep(self._clock, pause)
            pause = min(2 * pause, 0.25)


class _Denied(HeadwayError):
    """A signal was sent and did not do."""


class _Waits:
    """Longer and longer pauses between tries, up to a limit in all."""

    def __init__(self, patience: float, clock: Clock) -> None:
        self._patience = patience
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        self.pause = 0.1
        self._until: float | None = None

    @property
    def more(self) -> bool:
        now = self._clock.monotonic()
        if self._until is None:
            self._until = now + self._patience
        return now < self._until

    async def wait(self) -> None:
        await sleep(self._clock, self.pause * (0.75 + chance.random() / 2))
        self.pause = min(2 * self.pause, LONGEST_WAIT)


def _withheld(names: Sequence[str]) -> bytes:
    told = ", ".join(names)
    return (
        f"headway: output and files are withheld: replaced while the script ran, and maybe in them: {told}\n".encode()
    )


def _not_loaded(claim: Claim, context: Context, before: Before, error: HeadwayError) -> Ending:
    """Something is missing that the script needs, or that is needed to look at it. A target is only gone if somebody
    has said that its server is."""
    if before.cancelling and not before.begun:
        return Cancelled(f"cancelled on request; {_NEVER}")
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
    context.progress(0, None, _not_yet("cancelled", why, LONGEST_WAIT))
    return Snoozed(LONGEST_WAIT)


def _not_yet(why: str, error: str, pause: float) -> str:
    return f"{why}, but the script can't be stopped yet: {error}; tried again within {max(pause, 1.0):.0f} s"


def _out_of_reach(error: Exception) -> ErrorInfo:
    return ErrorInfo(
        "Unknown",
        f"the script may have begun, and its host can't be reached any more: {error}. It may still be running",
    )


__all__ = ["Completed", "Parts", "ScriptExecutor", "Task"]
