"""One try at one script: seen through lost connections, timeouts and cancels to an end that is known."""

from __future__ import annotations

import asyncio
import random as chance
from collections.abc import Awaitable, Callable

from headway.clock import Clock, deadline, sleep
from headway.executors.contract import Cancelled, Context, Ending, Failed, Unknown
from headway.executors.script.endings import ScriptResult, ended, timed_out, unreachable
from headway.executors.script.hosts import Host, Station
from headway.executors.script.link import LinkLost, Unreachable
from headway.executors.script.run import Ended, Refused, Run, Vanished
from headway.executors.script.task import KILL_AFTER, Parts, Task
from headway.model.errors import HeadwayError, OutputUnavailable, StoreUnavailable
from headway.model.job import Claim, ErrorInfo, error_info, failure_of
from headway.observe.logs import get_logger

LONGEST_WAIT = 15.0
NEVER = "the script had not begun, and never will"

log = get_logger("headway.script")

Remember = Callable[[Claim, Callable[[], None]], None]
"""Keeps in mind how to remove what a run has left, until its end is recorded."""


class Attempt:
    """One try at one script."""

    def __init__(  # noqa: PLR0913 - all of it belongs to this attempt alone
        self, parts: Parts, remember: Remember, claim: Claim, context: Context, host: Host, run: Run, task: Task
    ) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._remembered = remember
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
        how = "the script was stopped and seen dead" if self._seen else NEVER
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
        self._remembered(self._claim, lambda: self._host.clear(directory, for_good=for_good))

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
                self._context.progress(0, None, not_yet(why, str(error), waits.pause))
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


def not_yet(why: str, error: str, pause: float) -> str:
    return f"{why}, but the script can't be stopped yet: {error}; tried again within {max(pause, 1.0):.0f} s"


def _out_of_reach(error: Exception) -> ErrorInfo:
    return ErrorInfo(
        "Unknown",
        f"the script may have begun, and its host can't be reached any more: {error}. It may still be running",
    )
