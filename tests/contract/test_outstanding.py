"""What a dispatcher rings for."""

from __future__ import annotations

import pytest

from headway.model.limits import QueueSettings
from tests.contract.house import House


async def test_due_jobs_are_told_by_queue_the_most_urgent_first(house: House) -> None:
    late = [await house.submit(queue="mail") for _ in range(2)]
    urgent = await house.submit(queue="mail", priority=5)
    other = await house.submit(queue="news")
    found = await house.store.outstanding()
    assert found.due == {"mail": [urgent, *late], "news": [other]}
    assert found.next_in is None


async def test_jobs_due_later_are_not_told_but_when(house: House) -> None:
    await house.submit(delay=30)
    await house.submit(queue="news", delay=10, priority=7)
    found = await house.store.outstanding()
    assert found.due == {}
    assert found.next_in == pytest.approx(10)


async def test_claimed_jobs_are_not_told(house: House) -> None:
    await house.submit()
    await house.claim()
    assert (await house.store.outstanding()).due == {}


async def test_queues_that_nobody_wants_to_hear_of_are_left_out(house: House) -> None:
    await house.submit(queue="mail")
    news = await house.submit(queue="news")
    assert (await house.store.outstanding(without=["mail", "post"])).due == {"news": [news]}


async def test_paused_queues_are_left_out(house: House) -> None:
    await house.submit()
    await house.store.set_queue(QueueSettings(name="default", paused=True))
    assert (await house.store.outstanding()).due == {}


async def test_each_queue_and_priority_is_told_up_to_a_number(house: House) -> None:
    for queue in ("a", "b"):
        for priority in (0, 1):
            for _ in range(3):
                await house.submit(queue=queue, priority=priority)
    found = await house.store.outstanding(limit=2)
    assert {queue: len(ids) for queue, ids in found.due.items()} == {"a": 4, "b": 4}


async def test_nothing_outstanding(house: House) -> None:
    found = await house.store.outstanding()
    assert (found.due, found.next_in) == ({}, None)
