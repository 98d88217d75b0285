"""Jobs that behave as their payload says, and the executor that plays them."""

from __future__ import annotations

import asyncio
from typing import Literal
from uuid import UUID

import msgspec

from headway.clock import sleep
from headway.executors.contract import (
    Answer,
    Cancelled,
    Completed,
    Context,
    Defaults,
    Failed,
    Lost,
    NoCode,
    Running,
    Scheduled,
    Snoozed,
    TimedOut,
)
from headway.model.job import Claim, ErrorInfo
from headway.model.retry import Failure
from tests.sim.check import Checker, Run
from tests.sim.process import Process

Kind = Literal[
    "succeed", "flaky", "fail", "doom", "raise", "snooze", "own_wish", "outside", "later", "lose", "no_code", "time_out"
]
_ERROR = ErrorInfo("ValueError", "as the script says")


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What a job does. `run`: for how long; `times`: how often, before it succeeds; `stubborn`: seconds for which it
    goes on although it was told to stop."""

    do: Kind
    run: float
    times: int = 0
    stubborn: float = 0.0
    news: bool = False

    @property
    def longest(self) -> float:
        """Seconds that the job needs at most when nothing goes wrong but itself."""
        return (self.run + self.stubborn) * (self.times + 5) + 3.0 * (self.times + 4)


class Stage(msgspec.Struct):
    """What is known about a job beyond its attempts, as an outside system would know it."""

    turns: dict[UUID, int] = {}


class Player:
    """The executor of one process."""

    kind = "sim"
    defaults = Defaults()

    def __init__(self, process: Process, stage: Stage, checker: Checker) -> None:
        self._process = process
        self._stage = stage
        self._checker = checker

    async def start(self) -> None: ...
    async def close(self) -> None: ...

    async def submit(self, claim: Claim, context: Context) -> Answer:
        if self._process.dead:
            raise asyncio.CancelledError
        self._checker.run_began(self._run(claim))
        answer: Answer | None = None
        try:
            answer = await self._play(claim, context)
        finally:
            if not isinstance(answer, Running):
                self._checker.run_ended(self._run(claim))
        return answer

    async def poll(self, claim: Claim, context: Context) -> Answer:
        if self._turn(claim) <= 2:
            return Running(0.3)
        self._checker.run_ended(self._run(claim))
        return Completed(_result(claim))

    async def cancel(self, claim: Claim, context: Context) -> None:
        script = msgspec.json.decode(claim.payload, type=Script)
        await sleep(self._process.clock, 0.1 + script.stubborn)
        self._checker.run_ended(self._run(claim))

    def _run(self, claim: Claim) -> Run:
        return self._process.name, claim.id, claim.token

    async def _play(self, claim: Claim, context: Context) -> Answer:
        script = msgspec.json.decode(claim.payload, type=Script)
        if script.do == "no_code":
            return NoCode("sim") if self._turn(claim) <= script.times else Completed(_result(claim))
        if script.news:
            context.progress(0, 1)
            context.write(b"so it begins\n")
        await self._endure(script)
        return self._end(claim, script)

    async def _endure(self, script: Script) -> None:
        """Take the time that the script says, and longer when told to stop and stubborn."""
        try:
            await sleep(self._process.clock, script.run)
        except asyncio.CancelledError:
            if script.stubborn and not self._process.dead:
                await sleep(self._process.clock, script.stubborn)
                if script.times % 2:
                    # Too late to be stopped: the work is done.
                    return
            raise

    def _end(self, claim: Claim, script: Script) -> Answer:  # noqa: C901, PLR0911 - one line per behaviour
        done = Completed(_result(claim))
        match script.do:
            case "flaky":
                return _failed() if claim.failures < script.times else done
            case "fail":
                return _failed()
            case "doom":
                return _failed(permanent=True)
            case "raise":
                raise ValueError("as the script says")
            case "time_out":
                return TimedOut(_ERROR) if claim.failures < script.times else done
            case "snooze":
                return Snoozed(0.5) if self._turn(claim) <= script.times else done
            case "later":
                return Scheduled(0.5) if self._turn(claim) <= script.times else done
            case "own_wish":
                return Cancelled("as the script says")
            case "outside":
                return Running(0.3)
            case "lose":
                return Lost(_ERROR) if claim.losses < script.times else done
            case _:
                return done

    def _turn(self, claim: Claim) -> int:
        turn = self._stage.turns[claim.id] = self._stage.turns.get(claim.id, 0) + 1
        return turn


def result_of(job_id: UUID, token: int) -> bytes | None:
    """Says which attempt brought it; half of the jobs bring nothing, which is recorded in another way."""
    return None if job_id.int % 2 else b"%d" % token


def _result(claim: Claim) -> bytes | None:
    return result_of(claim.id, claim.token)


def _failed(*, permanent: bool = False) -> Failed:
    return Failed(error=_ERROR, failure=Failure(type="ValueError"), permanent=permanent)
