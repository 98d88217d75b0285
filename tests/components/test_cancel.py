"""CANCEL: what it does to a job in each state, and what becomes of it when the job ends at the same moment."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from headway.model.job import Finish
from headway.model.states import State
from tests.components.office import BODY, Office

AT_ONCE = {State.CREATING, State.SCHEDULED, State.BLOCKED}


@pytest.mark.parametrize("state", list(State))
async def test_a_job_in_each_state(office: Office, state: State) -> None:
    job_id = await office.in_state(state)
    after = State.CANCELLED if state in AT_ONCE else State.CANCELLING if state is State.RUNNING else state
    for _ in range(2):
        reply = await office.tell("CANCEL", {"job_id": str(job_id), "reason": "wrong address"})
        assert (reply["ok"], reply["job"]["state"]) == (True, after)
    told = [(line.by, line.detail) for line in await office.house.store.history(job_id) if line.what == "cancel"]
    asked = [("bus", "wrong address")] if state in AT_ONCE or state is State.RUNNING else []
    assert told == asked + [("ann", "not needed")] * (state is State.CANCELLING)


async def test_a_job_whose_schedule_is_still_on_its_way_is_cancelled_and_stays_so(office: Office) -> None:
    job_id = (await office.tell("CREATE", BODY))["job"]["id"]
    assert (await office.tell("CANCEL", {"job_id": job_id}))["job"]["state"] == "cancelled"
    [late] = office.outbox
    office.outbox.clear()
    reply = await office.deliver(late)
    assert reply["error"]["type"] == "illegal_move"
    assert (await office.record(job_id)).state is State.CANCELLED
    assert await office.house.claim() == []


async def test_the_job_shows_why_it_was_cancelled(office: Office) -> None:
    job_id = str(await office.in_state(State.SCHEDULED))
    job = (await office.tell("CANCEL", {"job_id": job_id, "reason": "wrong address"}))["job"]
    assert (job["outcome"], job["error"]) == ("cancelled", {"type": "Cancelled", "message": "wrong address"})


ROUNDS = 60


async def test_a_cancel_that_races_completion_ends_in_exactly_one_of_the_two(office: Office) -> None:
    """The worker records the end at the moment at which the cancel comes; whichever is first, both agree on it."""
    house, other = office.house, await office.second()
    ends: Counter[str] = Counter()
    for number in range(ROUNDS):
        claim = await house.running(f"job {number}")
        move = Finish.succeeded(claim, 0.1, None) if number % 2 else Finish.cancelled(claim, 0.1, "stopped")
        finishing = house.store.finish([move])
        cancelling = other.tell("CANCEL", {"job_id": str(claim.id)})
        acts = (finishing, cancelling) if number % 4 < 2 else (cancelling, finishing)
        results = await asyncio.gather(*acts)
        [ended], reply = results if number % 4 < 2 else results[::-1]
        final = await house.get(claim.id)
        assert ended.accepted
        assert final.state is ended.state, "what the worker was told is what is stored"
        assert final.state is (State.COMPLETED if number % 2 else State.CANCELLED)
        assert reply["ok"]
        assert reply["job"]["state"] in {"cancelling", final.state.value}
        told = [what for _, what in await house.told(claim.id)]
        assert told.count("completed") + told.count("cancelled") == 1
        assert told[-1] == final.state
        ends[" ".join(told)] += 1
    assert len(ends) > 2, f"the race was always won by the same side: {ends}"


async def test_a_cancel_that_races_a_claim_is_not_lost(office: Office) -> None:
    house, other = office.house, await office.second()
    for number in range(ROUNDS):
        job_id = await house.submit(f"job {number}")
        claims, reply = await asyncio.gather(house.claim(), other.tell("CANCEL", {"job_id": str(job_id)}))
        assert reply["job"]["state"] == ("cancelling" if claims else "cancelled")
        if claims:
            await house.give_up(claims[0])
        assert await house.state(job_id) is State.CANCELLED


@pytest.mark.parametrize(
    ("payload", "kind", "field"),
    [
        ({}, "invalid_request", "job_id"),
        ({"job_id": 7}, "invalid_request", "job_id"),
        ({"job_id": str(uuid4()), "reson": "x"}, "invalid_request", "reson"),
        ({"job_id": str(uuid4()), "reason": 7}, "invalid_request", "reason"),
        ({"job_id": str(uuid4())}, "not_found", None),
    ],
)
async def test_what_can_not_be_cancelled(office: Office, payload: dict[str, Any], kind: str, field: str | None) -> None:
    error = await office.refuse("CANCEL", payload)
    assert (error["type"], error.get("field")) == (kind, field)
