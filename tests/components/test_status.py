"""STATUS: one job, all jobs, jobs in a time frame, jobs by state; combined and paged."""

from __future__ import annotations

from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headway.components.messages import Message
from headway.components.shapes import JobShape
from headway.components.status import GetJobs
from headway.model.job import JobRecord, Release
from headway.model.states import State
from tests.components.office import Office

LISTED = (
    "id kind name key queue priority state label outcome desired_at run_at created_at claimed_at started_at "
    "finished_at attempt max_attempts losses timeout progress tags error schedule_id nominal_at worker after "
    "wait_reason created_by result_url output_url output_location warnings"
)
COMPUTED = {
    "max_attempts", "result_url", "output_url", "output_location", "warnings", "deduplicated",
    "script_sha256", "script_size",
}  # fmt: skip


async def test_one_job(office: Office) -> None:
    claim = await office.house.running("mail", priority=7, created_by="ann", queue="mail")
    await office.house.complete(claim)
    job = (await office.tell("STATUS", {"job_id": str(claim.id)}))["job"]
    assert set(job) >= set(LISTED.split())
    assert (job["id"], job["state"], job["label"], job["priority"]) == (str(claim.id), "completed", "completed", 7)
    assert (job["outcome"], job["attempt"], job["max_attempts"]) == ("succeeded", 1, 1)
    assert job["result_url"] == f"/api/v1/jobs/{claim.id}/result"
    assert job["output_url"] == f"/api/v1/jobs/{claim.id}/output"
    assert job["created_at"] == "2030-01-01T00:00:00Z"
    assert "payload" not in job


async def test_one_job_is_told_with_the_place_of_its_output(office: Office, tmp_path: Path) -> None:
    claim = await office.house.running("mail")
    message = Message(type="STATUS", payload={"job_id": str(claim.id)})
    told = {}
    for place in (None, f"file://{tmp_path}", "nowhere://at-all"):
        handled = await GetJobs(office.client, place).handle(message)
        assert handled is not None
        told[place] = handled.reply["job"].output_location
    assert list(told.values()) == [None, str(tmp_path / str(claim.id)), None]


async def test_each_state_is_shown_with_its_label(office: Office) -> None:
    for state in State:
        job_id = await office.in_state(state)
        job = (await office.tell("STATUS", {"job_id": str(job_id)}))["job"]
        assert job["state"] == state
        assert job["label"] == ("pending" if state is State.SCHEDULED else state)
        assert (job["result_url"] is not None) == (state is State.COMPLETED)


def test_the_shape_shows_what_is_recorded_and_never_what_the_job_does() -> None:
    shown = set(JobShape.__struct_fields__)
    assert shown - set(JobRecord.__struct_fields__) == COMPUTED
    assert "payload" not in shown


async def pages(office: Office, **wanted: Any) -> list[list[dict[str, Any]]]:
    found, cursor = [], None
    while True:
        reply = await office.tell("STATUS", {"all": True, **wanted, **({"cursor": cursor} if cursor else {})})
        assert reply["ok"], reply
        found.append(reply["jobs"])
        cursor = reply["cursor"]
        if cursor is None:
            return found


async def test_all_jobs_come_page_by_page_newest_first(office: Office) -> None:
    jobs = [str(await office.house.submit()) for _ in range(12)]
    for limit, sizes in ((5, [5, 5, 2]), (4, [4, 4, 4]), (12, [12]), (100, [12])):
        found = await pages(office, limit=limit)
        assert [len(page) for page in found] == sizes, "no empty page at the end"
        assert [job["id"] for page in found for job in page] == jobs[::-1]


async def test_jobs_that_come_while_one_pages_do_not_shift_the_pages(office: Office) -> None:
    jobs = [str(await office.house.submit()) for _ in range(6)]
    first = await office.tell("STATUS", {"all": True, "limit": 3})
    await office.house.submit()
    rest = await office.tell("STATUS", {"all": True, "limit": 3, "cursor": first["cursor"]})
    assert [job["id"] for job in (*first["jobs"], *rest["jobs"])] == jobs[::-1]


async def test_filters_are_combined(office: Office) -> None:
    """Every combination gives what the single conditions have in common."""
    house = office.house
    for queue, name, tags in product(("mail", "slow"), ("a", "b"), ((), ("x",), ("x", "y"))):
        claim = await house.running(f"job {name}", queue=queue, tags=tags)
        if tags:
            await house.complete(claim)
        else:
            await house.release(Release.give_back(claim))
            assert await house.cancel(claim.id) is State.CANCELLED
        house.clock.advance(60)
        await house.submit(f"job {name}", queue=queue, tags=tags, delay=1e6)
    conditions: dict[str, dict[str, Any]] = {
        "state": {"state": ["COMPLETED", "cancelled"]},
        "queue": {"queue": "mail"},
        "name": {"name": "job a"},
        "tags": {"tags": ["x", "y"]},
        "tag": {"tags": "x"},
        "kind": {"kind": "call"},
        "time": {"time": "finished", "from": "2030-01-01T00:03:00Z", "to": "2030-01-01T00:09:00Z"},
        "created": {"from": "2030-01-01T00:02:00Z"},
    }
    single = {name: await ids(office, **asked) for name, asked in conditions.items()}
    sizes = {name: len(found) for name, found in single.items()}
    expected = {"state": 12, "queue": 12, "name": 12, "tags": 8, "tag": 16, "kind": 24}
    assert {name: sizes[name] for name in expected} == expected
    assert 0 < sizes["time"] < 12
    assert 0 < sizes["created"] < 24
    for one, two, three in product(conditions, repeat=3):
        asked = {**conditions[one], **conditions[two], **conditions[three]}
        effective = [name for name in (one, two, three) if conditions[name].items() <= asked.items()]
        if len(set(effective)) == len({one, two, three}):
            assert await ids(office, **asked) == set.intersection(*(single[name] for name in effective)), asked


async def ids(office: Office, **wanted: Any) -> set[str]:
    return {job["id"] for page in await pages(office, limit=7, **wanted) for job in page}


async def test_a_time_frame_includes_its_start_and_not_its_end(office: Office) -> None:
    job_id = str(await office.house.submit())
    at = (await office.record(job_id)).created_at
    later = datetime.fromisoformat("2030-01-01T00:00:01+00:00")
    for time in ("created", "run"):
        assert await ids(office, time=time, **{"from": at.isoformat(), "to": later.isoformat()}) == {job_id}
        assert await ids(office, time=time, to=at.isoformat()) == set()


@pytest.mark.parametrize(
    ("payload", "field", "says"),
    [
        ({}, "job_id", '{"all": true}'),
        ({"state": "running"}, "job_id", '{"all": true}'),
        ({"job_id": "me"}, "job_id", "the id of a job"),
        ({"job_id": str(uuid4()), "queue": "mail"}, "queue", "there is no field 'queue'"),
        ({"all": True, "job_id": str(uuid4())}, "job_id", "there is no field 'job_id'"),
        ({"all": True, "quee": "mail"}, "quee", "did you mean 'queue'?"),
        ({"all": True, "since": "2030-01-01T00:00:00Z"}, "since", "there is no field 'since'"),
        ({"all": True, "state": "done"}, "state", "unknown state 'done'"),
        ({"all": True, "state": 7}, "state", "a state or label, or a list of them"),
        ({"all": True, "time": "noon"}, "time", "created, run, started or finished"),
        ({"all": True, "from": "2030-01-01"}, "from", "a time with its zone"),
        ({"all": True, "to": "2030-01-01T00:00:00"}, "to", "a time with its zone"),
        ({"all": True, "limit": 0}, "limit", "from 1 to 1000"),
        ({"all": True, "limit": 1001}, "limit", "from 1 to 1000"),
        ({"all": True, "cursor": "next"}, "cursor", "the cursor of the page before"),
    ],
)
async def test_what_can_not_be_asked(office: Office, payload: dict[str, Any], field: str, says: str) -> None:
    error = await office.refuse("STATUS", payload)
    assert (error["type"], error["field"]) == ("invalid_request", field)
    assert says in error["message"]


async def test_a_job_that_is_not_there(office: Office) -> None:
    assert (await office.refuse("STATUS", {"job_id": str(uuid4())}))["type"] == "not_found"
