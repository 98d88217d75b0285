"""When a worker among many leaves the store to the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import Mock
from uuid import UUID, uuid4

import pytest

from headway.clock import FakeClock
from headway.model.job import Claim
from headway.store.scripts.work import Claimed, Want
from headway.worker.attempt import Attempt
from headway.worker.keeper import Leases
from headway.worker.lane import AT_ONCE, LONGEST_PAUSE, TURN, Intake, Lane

CROWD = 10 * AT_ONCE
SLOTS = 10


class SlowStore:
    """Answers claims after a while, with as many jobs as it is told to."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.takes = 0.002
        self.jobs = SLOTS

    async def claim(self, want: Want) -> Claimed:
        self._clock.advance(self.takes)
        return Claimed([_claim(want.lease_id, want.queue) for _ in range(min(self.jobs, want.limit))])


def _claim(lease_id: UUID, queue: str) -> Claim:
    fields: dict[str, Any] = dict.fromkeys(Claim.__struct_fields__)
    return Claim(**(fields | {"id": uuid4(), "token": 1, "kind": "call", "lease_id": lease_id, "queue": queue}))


class Bench:
    """One lane, filled by claims and emptied at once."""

    def __init__(self) -> None:
        self.clock = clock = FakeClock()
        self.store = SlowStore(clock)
        self.lane = Lane("mail", SLOTS)
        self.intake = Intake(self.lane, self.store, Leases(), clock, Mock())  # type: ignore[arg-type]

    async def claim(self, takes: float = 0.002, *, jobs: int = SLOTS) -> Sequence[Attempt]:
        self.store.takes, self.store.jobs = takes, jobs
        attempts, _ = await self.intake.claim(uuid4(), uuid4(), 30.0)
        return attempts

    async def turn(self, takes: float = 0.002, *, jobs: int = SLOTS) -> float:
        """The pause after a claim whose jobs are done at once."""
        self.lane.let_go(await self.claim(takes, jobs=jobs))
        self.run(0.0)
        return self.pause()

    def run(self, seconds: float) -> None:
        """So long the jobs ran that came last."""
        self.clock.advance(seconds)
        self.lane.emptied_at = self.clock.monotonic()

    def pause(self, crowd: int = CROWD, luck: Callable[[], float] = lambda: 1.0) -> float:
        return self.intake.gives_way(crowd, luck)


@pytest.fixture
async def bench() -> Bench:
    """A worker in the middle of a backlog."""
    bench = Bench()
    await bench.turn()
    return bench


async def test_a_worker_that_waits_long_for_claims_gives_way(bench: Bench) -> None:
    assert await bench.turn() == 0.0
    assert await bench.turn(0.02) == pytest.approx(2 * TURN * 9)
    assert bench.pause(luck=lambda: 0.5) == pytest.approx(TURN * 9)
    assert bench.pause(crowd=10_000) == LONGEST_PAUSE
    assert await bench.turn() == 0.0, "the store is free again"


async def test_a_few_workers_never_give_way(bench: Bench) -> None:
    await bench.turn(0.02)
    assert bench.pause(crowd=AT_ONCE) == 0.0


async def test_a_worker_with_jobs_to_run_does_not_give_way(bench: Bench) -> None:
    [attempt] = await bench.claim(jobs=1)
    await bench.turn()
    bench.lane.begin(attempt)
    assert await bench.turn(0.02) == 0.0
    bench.lane.end(attempt)
    assert await bench.turn(0.02) > 0.0


async def test_the_first_claim_after_a_rest_is_no_reason_to_give_way(bench: Bench) -> None:
    await bench.turn(jobs=0)
    assert await bench.turn(0.02) == 0.0
    assert await bench.turn(0.02) > 0.0


async def test_a_worker_whose_jobs_take_longer_than_its_claims_does_not_give_way(bench: Bench) -> None:
    """Whether it has one slot, or many jobs that end together."""
    for _ in range(3):
        bench.run(0.1)
        assert await bench.turn(0.02) == 0.0


async def test_what_was_sat_out_is_not_taken_for_work(bench: Bench) -> None:
    bench.clock.advance(await bench.turn(0.02))
    assert await bench.turn(0.02) > 0.0


async def test_empty_claims_are_quick_and_set_no_measure(bench: Bench) -> None:
    await bench.turn(0.0001, jobs=0)
    await bench.turn()
    assert await bench.turn(0.0025) == 0.0
