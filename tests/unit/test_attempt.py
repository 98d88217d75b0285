"""A stop that comes before a task has come to its first step: the moment at which asyncio would drop it unheard."""

from __future__ import annotations

import asyncio

from headway.clock import FakeClock
from headway.executors.contract import Answer, Completed, Context, Defaults
from headway.model.job import Claim, Finish, Release
from headway.model.states import State
from headway.worker.attempt import Attempt, Stop
from headway.worker.judge import Move
from headway.worker.keeper import Lease
from headway.worker.lane import Lane
from tests.unit.calling import a_claim


class Spy:
    """An executor that tells whether it was asked."""

    kind = "call"
    defaults = Defaults()

    def __init__(self) -> None:
        self.asked = False

    async def start(self) -> None: ...
    async def close(self) -> None: ...

    async def submit(self, claim: Claim, context: Context) -> Answer:
        self.asked = True
        return Completed()

    async def poll(self, claim: Claim, context: Context) -> Answer:
        raise AssertionError

    async def cancel(self, claim: Claim, context: Context) -> None:
        raise AssertionError


async def stopped_at_once(reason: Stop, spy: Spy) -> Move | None:
    claim, moves = a_claim(), list[Move | None]()
    attempt = Attempt(claim, Lane("default", 1), Lease(claim.lease_id, 1, 30.0))
    attempt.prepare(spy, lambda: None)

    async def run() -> None:
        moves.append(await attempt.run(FakeClock(), lambda: 0.5))

    running = attempt.task = asyncio.create_task(run())
    attempt.stop(reason)
    await running
    return moves[0]


async def test_a_cancel_before_the_first_step_is_recorded() -> None:
    spy = Spy()
    move = await stopped_at_once(Stop.CANCEL, spy)
    assert isinstance(move, Finish)
    assert move.state is State.CANCELLED
    assert not spy.asked


async def test_a_job_to_be_given_back_before_its_first_step_is_given_back() -> None:
    spy = Spy()
    assert isinstance(await stopped_at_once(Stop.GIVE_BACK, spy), Release)
    assert not spy.asked


async def test_nothing_is_recorded_of_a_job_whose_lease_is_lost_before_its_first_step() -> None:
    spy = Spy()
    assert await stopped_at_once(Stop.LEASE_LOST, spy) is None
    assert not spy.asked
