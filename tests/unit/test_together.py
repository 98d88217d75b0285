"""Calls that come at the same time are made as one, and none of them suffers by another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from headway.model.errors import StoreUnavailable
from headway.store.together import Together

Line = tuple[int, int]
"""A job, and what is said of it."""


class Desk:
    """Takes what comes, one batch at a time, when it is let."""

    def __init__(self) -> None:
        self.batches: list[list[Line]] = []
        self.free = asyncio.Event()
        self.free.set()
        self.bad: Exception | None = None

    async def __call__(self, lines: Sequence[Line]) -> list[int]:
        self.batches.append(list(lines))
        await self.free.wait()
        if self.bad and any(said < 0 for _, said in lines):
            raise self.bad
        return [said * 10 for _, said in lines]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def together(desk: Desk, limit: int = 100) -> Together[Line, int]:
    return Together(desk, lambda line: UUID(int=line[0]), weigh=lambda line: abs(line[1]), limit=limit)


async def test_what_comes_while_others_are_under_way_goes_as_one(desk: Desk) -> None:
    call = together(desk)
    desk.free.clear()
    first = asyncio.create_task(call((1, 1)))
    while not desk.batches:
        await asyncio.sleep(0)
    others = [asyncio.create_task(call((job, job))) for job in range(2, 6)]
    await asyncio.sleep(0)
    desk.free.set()
    assert await asyncio.gather(first, *others) == [10, 20, 30, 40, 50]
    assert desk.batches == [[(1, 1)], [(2, 2), (3, 3), (4, 4), (5, 5)]]


async def test_a_job_has_one_place_in_a_batch_and_its_calls_keep_their_order(desk: Desk) -> None:
    call = together(desk)
    lines = [(1, 1), (1, 2), (2, 3), (1, 4)]
    assert await asyncio.gather(*map(call, lines)) == [10, 20, 30, 40]
    assert desk.batches == [[(1, 1), (2, 3)], [(1, 2)], [(1, 4)]]


async def test_a_batch_is_no_larger_than_its_limit_unless_a_single_call_is(desk: Desk) -> None:
    call = together(desk, limit=10)
    await asyncio.gather(*(call((number, size)) for number, size in enumerate((4, 50, 5, 4))), call((1, 1)))
    assert desk.batches == [[(0, 4), (2, 5)], [(1, 50)], [(3, 4), (1, 1)]]


async def test_who_is_refused_is_refused_alone(desk: Desk) -> None:
    desk.bad = ValueError("no")
    call = together(desk)
    good, bad, other = await asyncio.gather(call((1, 1)), call((2, -2)), call((3, 3)), return_exceptions=True)
    assert (good, other) == (10, 30)
    assert isinstance(bad, ValueError)


async def test_a_store_that_is_away_is_asked_once_for_all(desk: Desk) -> None:
    desk.bad = StoreUnavailable("away")
    call = together(desk)
    told = await asyncio.gather(call((1, -1)), call((2, 2)), return_exceptions=True)
    assert all(isinstance(each, StoreUnavailable) for each in told)
    assert len(desk.batches) == 1


async def test_who_goes_away_takes_nobody_along(desk: Desk) -> None:
    call = together(desk)
    desk.free.clear()
    first, second = asyncio.create_task(call((1, 1))), asyncio.create_task(call((2, 2)))
    while not desk.batches:
        await asyncio.sleep(0)
    first.cancel()
    desk.free.set()
    assert await second == 20
    assert first.cancelled()
