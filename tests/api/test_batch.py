"""Many jobs at once, and acts on many."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.api.conftest import Site


def call(number: int, **rest: Any) -> dict[str, Any]:
    return {"kind": "call", "function": "f", "args": [number], **rest}


async def test_a_batch_is_answered_in_order(site: Site) -> None:
    answer = await site.post("/jobs/batch", {"jobs": [call(number, name=f"job-{number}") for number in range(1000)]})
    assert answer.status_code == 201, answer.text
    items = answer.json()["items"]
    assert [item["job"]["name"] for item in items] == [f"job-{number}" for number in range(1000)]
    assert {(item["status"], item["deduplicated"]) for item in items} == {(201, False)}
    assert (await site.get(f"/jobs/{items[500]['job']['id']}")).json()["name"] == "job-500"


async def test_one_bad_job_spoils_the_batch_unless_a_part_will_do(site: Site) -> None:
    await site.submit(key="taken")
    jobs = [call(0), call(1, priority=1000), call(2, key="taken", on_conflict="reject"), call(3)]
    answer = await site.post("/jobs/batch", {"jobs": jobs})
    assert answer.status_code == 422
    assert answer.json()["field"] == "jobs[1].priority"
    assert "nothing is stored" in answer.json()["detail"]
    conflict = await site.post("/jobs/batch", {"jobs": [call(0), jobs[2]]})
    assert (conflict.status_code, conflict.json()["code"]) == (409, "conflict")
    assert len((await site.get("/jobs")).json()["items"]) == 1
    partly = (await site.post("/jobs/batch", {"jobs": jobs, "partial": True})).json()["items"]
    assert [item["status"] for item in partly] == [201, 422, 409, 201]
    assert partly[1]["error"]["field"] == "jobs[1].priority"
    assert len((await site.get("/jobs")).json()["items"]) == 3


async def test_urls_are_fetched_each_once(site: Site) -> None:
    answer = await site.post(
        "/jobs/batch", {"urls": ["https://example.com/a", "https://example.com/A", "https://EXAMPLE.com/a"]}
    )
    items = answer.json()["items"]
    assert [item["status"] for item in items] == [201, 201, 200]
    assert [item["job"]["kind"] for item in items] == ["fetch"] * 3
    assert items[2]["deduplicated"] is True
    assert items[2]["job"]["id"] == items[0]["job"]["id"]


async def test_a_repeated_batch_makes_nothing_twice(site: Site) -> None:
    body = {"jobs": [call(number) for number in range(20)]}
    key = {"Idempotency-Key": "batch 1"}
    first = await site.post("/jobs/batch", body, headers=key)
    again = await site.post("/jobs/batch", body, headers=key)
    assert [item["status"] for item in again.json()["items"]] == [200] * 20
    assert [item["job"]["id"] for item in again.json()["items"]] == [
        item["job"]["id"] for item in first.json()["items"]
    ]
    assert len((await site.get("/jobs?limit=100")).json()["items"]) == 20


async def test_what_is_no_batch_is_refused(memory_site: Site) -> None:
    wrong: list[Any] = [
        {},
        {"jobs": []},
        {"jobs": [call(0)], "urls": ["https://example.com/"]},
        {"jobs": [call(0)] * 1001},
        {"jobs": ["no object"]},
        {"jobs": [call(0)], "partially": True},
        {"jobs": [call(0)], "partial": "yes"},
        {"urls": [7]},
    ]
    for body in wrong:
        answer = await memory_site.post("/jobs/batch", body)
        assert answer.status_code == 422, (body, answer.text)
        assert answer.json()["field"] or "object" in answer.json()["detail"]
    assert (await memory_site.get("/jobs")).json()["items"] == []


async def test_a_bulk_act_counts_first_and_then_does_it(site: Site) -> None:
    jobs = [(await site.submit(queue="mail", delay=60))["id"] for _ in range(5)]
    other = await site.submit(queue="reports", delay=60)
    asked = {"action": "cancel", "filter": {"queue": "mail"}}
    counted = (await site.post("/jobs/bulk", {**asked, "dry_run": True})).json()
    assert (counted["matched"], counted["done"], counted["dry_run"]) == (5, 0, True)
    done = (await site.post("/jobs/bulk", {**asked, "reason": "a mistake"})).json()
    assert (done["matched"], done["done"], done["refused"]) == (5, 5, 0)
    shown = (await site.get(f"/jobs/{jobs[0]}")).json()
    assert (shown["state"], shown["error"]["message"]) == ("cancelled", "a mistake")
    assert (await site.get(f"/jobs/{other['id']}")).json()["state"] == "scheduled"
    again = (
        await site.post("/jobs/bulk", {"action": "retry", "filter": {"queue": "mail", "state": "cancelled"}})
    ).json()
    assert again["done"] == 5
    gone = (await site.post("/jobs/bulk", {"action": "delete", "filter": {"queue": "mail", "state": "pending"}})).json()
    assert gone["done"] == 5
    assert [each["id"] for each in (await site.get("/jobs")).json()["items"]] == [other["id"]]


async def test_a_bulk_act_on_everything_must_be_meant(memory_site: Site) -> None:
    for asked in (
        {"action": "cancel", "filter": {}},
        {"action": "delete", "filter": {"queue": "mail"}},
        {"action": "explode", "filter": {"queue": "mail"}},
        {"action": "cancel", "filter": {"queue": "mail", "limit": 5}},
        {"action": "cancel", "filter": {"colour": "red"}},
        {"action": "cancel"},
    ):
        answer = await memory_site.post("/jobs/bulk", asked)
        assert answer.status_code == 422, answer.text


async def test_acts_on_one_job(site: Site) -> None:
    job = await site.submit(hold=True)
    assert job["state"] == "creating"
    moved = (await site.post(f"/jobs/{job['id']}/schedule", {"run_at": "2031-01-01T00:00:00Z"})).json()
    assert (moved["state"], moved["run_at"]) == ("scheduled", "2031-01-01T00:00:00Z")
    early = await site.post(f"/jobs/{job['id']}/retry")
    assert (early.status_code, early.json()["code"]) == (409, "illegal_move")
    cancelled = (await site.post(f"/jobs/{job['id']}/cancel", {"reason": "not now"})).json()
    assert (cancelled["state"], cancelled["error"]["message"]) == ("cancelled", "not now")
    assert (await site.post(f"/jobs/{job['id']}/retry")).json()["state"] == "scheduled"
    whats = [line["what"] for line in (await site.get(f"/jobs/{job['id']}/history")).json()["items"]]
    assert [what for what in whats if what in {"cancel", "retry"}] == ["cancel", "retry"]
    why = (await site.get(f"/jobs/{job['id']}/why")).json()
    assert why["reason"] == "no_worker"
    for verb in ("cancel", "retry", "schedule"):
        assert (await site.post("/jobs/0199c5e2-7a1b-7c3d-9e4f-0123456789ab/" + verb)).status_code == 404


async def test_many_submit_at_once(site: Site) -> None:
    answers = await asyncio.gather(*(site.post("/jobs", call(number)) for number in range(100)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 100


async def test_what_is_wrong_with_a_url_is_named_by_its_place_among_the_urls(memory_site: Site) -> None:
    refused = await memory_site.post("/jobs/batch", {"urls": ["https://example.com/", "no url"]})
    assert (refused.status_code, refused.json()["field"]) == (422, "urls[1]"), refused.text
    refused = await memory_site.post("/jobs/batch", {"jobs": [{"kind": "fetch", "url": "no url"}]})
    assert (refused.status_code, refused.json()["field"]) == (422, "jobs[0].url")


async def test_a_time_that_has_passed_does_not_escape_dedupe(site: Site) -> None:
    fetch = {"kind": "fetch", "url": "https://example.com/"}
    first = await site.post("/jobs", {**fetch, "run_at": "2020-01-01T00:00:00Z"})
    again = await site.post("/jobs", {**fetch, "run_at": "2021-01-01T00:00:00Z"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert (again.json()["id"], again.json()["deduplicated"]) == (first.json()["id"], True)
    assert (await site.post("/jobs", {**fetch, "run_at": "2900-01-01T00:00:00Z"})).status_code == 201
