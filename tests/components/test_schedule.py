"""SCHEDULE: what it does to a job in each state."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from headway.model.states import State
from tests.components.office import Office


@pytest.mark.parametrize(
    ("state", "after"),
    [
        (State.CREATING, State.SCHEDULED),
        (State.SCHEDULED, State.SCHEDULED),
        (State.BLOCKED, None),
        (State.RUNNING, None),
        (State.CANCELLING, None),
        (State.COMPLETED, None),
        (State.FAILED, None),
        (State.CANCELLED, None),
    ],
)
async def test_a_job_in_each_state(office: Office, state: State, after: State | None) -> None:
    job_id = await office.in_state(state)
    before = await office.house.store.history(job_id)
    reply = await office.tell("SCHEDULE", {"job_id": str(job_id)})
    if after is None:
        assert reply["error"]["type"] == "illegal_move"
        assert f"job {job_id} is {state}" in reply["error"]["message"]
    else:
        assert (reply["ok"], reply["job"]["state"]) == (True, after)
    assert await office.house.state(job_id) is (after or state)
    if after is not State.SCHEDULED or state is State.SCHEDULED:
        assert await office.house.store.history(job_id) == before, "nothing has happened, nothing is told"


@pytest.mark.parametrize("state", list(State))
async def test_a_redelivered_message_never_fails_because_the_job_has_gone_on(office: Office, state: State) -> None:
    job_id = await office.in_state(state)
    reply = await office.tell("SCHEDULE", {"job_id": str(job_id)}, redelivered=True)
    assert reply["ok"], reply
    assert reply["job"]["state"] == (State.SCHEDULED if state is State.CREATING else state)


async def test_a_job_that_waits_for_others_is_blocked(office: Office) -> None:
    parent = await office.house.submit("parent", hold=True)
    child = await office.house.submit(after=(parent,), hold=True)
    reply = await office.tell("SCHEDULE", {"job_id": str(child)})
    assert (reply["job"]["state"], reply["job"]["wait_reason"]) == ("blocked", "after")


async def test_a_job_held_by_its_parents_failure_is_let_go(office: Office) -> None:
    parent = await office.house.running("parent")
    child = await office.house.submit(after=(parent.id,), on_parent_failure="hold")
    await office.house.fail(parent)
    assert await office.house.state(child) is State.BLOCKED
    assert (await office.tell("SCHEDULE", {"job_id": str(child)}))["job"]["state"] == "scheduled"


async def test_the_time_may_be_given_with_it_and_changed_by_another(office: Office) -> None:
    job_id = await office.house.submit(hold=True)
    for hour in ("06", "07"):
        reply = await office.tell("SCHEDULE", {"job_id": str(job_id), "run_at": f"2030-01-01T{hour}:00:00Z"})
        assert (reply["job"]["run_at"], reply["job"]["label"]) == (f"2030-01-01T{hour}:00:00Z", "scheduled")
    assert await office.house.claim() == []
    office.house.clock.advance(7 * 3600)
    assert (await office.house.claim_one()).id == job_id


async def test_who_asked_is_in_the_history(office: Office) -> None:
    job_id = await office.house.submit(hold=True)
    await office.tell("SCHEDULE", {"job_id": str(job_id)})
    assert [(line.what, line.by) for line in await office.house.store.history(job_id)][-1] == ("scheduled", "bus")


@pytest.mark.parametrize(
    ("payload", "kind", "field"),
    [
        ({}, "invalid_request", "job_id"),
        ({"job_id": "me"}, "invalid_request", "job_id"),
        ({"job_id": str(uuid4()), "runat": "x"}, "invalid_request", "runat"),
        ({"job_id": str(uuid4()), "run_at": "noon"}, "invalid_request", "run_at"),
        ({"job_id": str(uuid4())}, "not_found", None),
    ],
)
async def test_what_can_not_be_scheduled(office: Office, payload: dict[str, Any], kind: str, field: str | None) -> None:
    error = await office.refuse("SCHEDULE", payload)
    assert (error["type"], error.get("field")) == (kind, field)
