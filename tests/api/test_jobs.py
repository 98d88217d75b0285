"""Jobs over HTTP: submit, find, look at, change, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from uuid_utils.compat import uuid7

from headway import Headway
from tests.api.conftest import TARGET, Site
from tests.flow.waiting import until


async def test_a_submitted_job_can_be_read_and_found(site: Site) -> None:
    answer = await site.post("/jobs", {"kind": "call", "function": "mail.welcome", "args": [42], "priority": 5})
    assert answer.status_code == 201
    job = answer.json()
    assert answer.headers["location"] == f"/api/v1/jobs/{job['id']}"
    assert (job["state"], job["priority"], job["created_by"]) == ("scheduled", 5, "token:admin")
    assert (await site.get(f"/jobs/{job['id']}")).json() == {**job, "warnings": []}
    assert [each["id"] for each in (await site.get("/jobs")).json()["items"]] == [job["id"]]


async def test_a_submission_may_be_answered_with_an_earlier_job(site: Site) -> None:
    body = {"kind": "call", "function": "mail.digest", "dedupe": {"key": "digest 7", "window": 3600}}
    first, second = await site.post("/jobs", body), await site.post("/jobs", body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["id"] == first.json()["id"]
    assert second.json()["deduplicated"] is True
    assert "deduplicated" not in first.json()


async def test_a_conflict_names_the_other_job(memory_site: Site) -> None:
    first = await memory_site.submit(key="report")
    answer = await memory_site.post(
        "/jobs", {"kind": "call", "function": "f", "key": "report", "on_conflict": "reject"}
    )
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["code"], problem["conflicting_job_id"]) == ("conflict", first["id"])
    assert first["id"] in problem["detail"]


async def test_a_time_that_has_been_is_now_and_the_answer_says_so(memory_site: Site) -> None:
    job = await memory_site.submit(run_at="2020-01-01T00:00:00Z")
    assert job["label"] == "pending"
    assert any("has passed already" in warning for warning in job["warnings"])


async def test_filters_combine(site: Site) -> None:
    wanted = await site.submit(queue="mail", name="mail.welcome", tags=["a", "b"], priority=3)
    await site.submit(queue="mail", name="mail.goodbye", tags=["a"])
    await site.submit(queue="reports", name="mail.welcome", tags=["a", "b"])
    await site.submit(queue="mail", name="welcome", tags=["a", "b"], hold=True)

    async def found(query: str) -> list[str]:
        answer = await site.get(f"/jobs?{query}")
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.json()["items"]]

    assert await found("queue=mail&name=mail.*&tags=a,b") == [wanted["id"]]
    assert await found("queue=mail&name=mail.*&tags=a&tags=b&state=PENDING&kind=call") == [wanted["id"]]
    assert await found("name=mail.*") != [wanted["id"]]
    assert await found("queue=mail&name=mail.welcome&created_by=token:admin&time=run&from=2020-01-01T00:00:00Z") == [
        wanted["id"]
    ]
    assert await found("state=creating") == [(await found("name=welcome"))[0]]
    assert await found("to=2020-01-01T00:00:00Z") == []
    assert await found(f"schedule={uuid4()}") == []
    assert await found("key=mail.goodbye&state=submitted") == await found("name=mail.goodbye")
    assert await found("error=whatever") == []


async def test_pages_stay_as_they_are_while_jobs_arrive(site: Site) -> None:
    there = [(await site.submit(name=f"job-{number}"))["id"] for number in range(25)]
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await site.get(f"/jobs?limit=4{cursor}")).json()
        seen += [each["id"] for each in page["items"]]
        if page["cursor"] is None:
            break
        cursor = f"&cursor={page['cursor']}"
        await site.submit(name="newcomer")
    assert seen == there[::-1]


async def test_the_errors_text_finds_jobs(sites: Callable[[Headway], Any], store_url: str) -> None:
    app = Headway(store_url)

    @app.job(name="breaks")
    async def breaks() -> None:
        raise ValueError("The far side is out of PAPER")

    site = await sites(app)
    async with app.worker():
        job = (await site.post("/jobs", {"kind": "call", "function": "breaks"})).json()
        await until(lambda: _ended(site, job["id"]), "the job's end")
    found = (await site.get("/jobs?error=out of paper&state=failed")).json()["items"]
    assert [each["id"] for each in found] == [job["id"]]
    assert found[0]["error"]["type"] == "ValueError"
    assert (await site.get("/jobs?error=out of ink")).json()["items"] == []


async def test_a_read_is_304_until_the_job_changes(site: Site) -> None:
    job = await site.submit(delay=3600)
    first = await site.get(f"/jobs/{job['id']}")
    tag = {"If-None-Match": first.headers["etag"]}
    again = await site.get(f"/jobs/{job['id']}", headers=tag)
    assert (again.status_code, again.content) == (304, b"")
    assert first.headers["cache-control"] == "private, no-cache"
    await site.post(f"/jobs/{job['id']}/cancel")
    changed = await site.get(f"/jobs/{job['id']}", headers=tag)
    assert (changed.status_code, changed.json()["state"]) == (200, "cancelled")
    assert (
        await site.get("/jobs", headers={"If-None-Match": (await site.get("/jobs")).headers["etag"]})
    ).status_code == 304


async def test_a_long_poll_ends_when_the_job_does(site: Site) -> None:
    job = await site.submit(delay=3600)
    waiting = asyncio.ensure_future(site.get(f"/jobs/{job['id']}?wait=60"))
    tag = (await site.get(f"/jobs/{job['id']}")).headers["etag"]
    changing = asyncio.ensure_future(site.get(f"/jobs/{job['id']}?wait=60", headers={"If-None-Match": tag}))
    unchanged = await site.get(f"/jobs/{job['id']}?wait=0.1", headers={"If-None-Match": tag})
    assert unchanged.status_code == 304
    assert not waiting.done()
    await site.post(f"/jobs/{job['id']}/cancel")
    assert (await waiting).json()["state"] == "cancelled"
    assert (await changing).json()["state"] == "cancelled"


async def test_a_job_in_line_tells_its_position(site: Site) -> None:
    jobs = [await site.submit(queue="mail") for _ in range(3)]
    urgent = await site.submit(queue="mail", priority=9)
    shown = (await site.get(f"/jobs/{jobs[2]['id']}?position=true")).json()
    assert shown["queue_position"] == 3
    assert (await site.get(f"/jobs/{urgent['id']}?position=true")).json()["queue_position"] == 0
    later = await site.submit(delay=60)
    assert (await site.get(f"/jobs/{later['id']}?position=true")).json()["queue_position"] is None


async def test_a_job_that_nobody_has_begun_can_be_changed(site: Site) -> None:
    job = await site.submit(delay=60)
    read = await site.get(f"/jobs/{job['id']}")
    change = {
        "priority": 7,
        "queue": "mail",
        "run_at": "2031-01-01T00:00:00Z",
        "payload": {"function": "g", "args": [1]},
    }
    answer = await site.ask("PATCH", f"/jobs/{job['id']}", json=change, headers={"If-Match": read.headers["etag"]})
    assert answer.status_code == 200, answer.text
    changed = answer.json()
    assert (changed["priority"], changed["queue"], changed["run_at"]) == (7, "mail", "2031-01-01T00:00:00Z")
    assert changed["desired_at"] == job["desired_at"]
    stale = await site.ask(
        "PATCH", f"/jobs/{job['id']}", json={"priority": 1}, headers={"If-Match": read.headers["etag"]}
    )
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    [edit] = [line for line in (await site.get(f"/jobs/{job['id']}/history")).json()["items"] if line["what"] == "edit"]
    assert edit["by"] == "token:admin"
    assert "priority 7" in edit["detail"]
    assert (await site.app.aget(UUID(job["id"]))).record.payload == '{"function":"g","args":[1],"kwargs":{}}'
    await site.post(f"/jobs/{job['id']}/cancel")
    ended = await site.ask("PATCH", f"/jobs/{job['id']}", json={"priority": 1})
    assert (ended.status_code, ended.json()["code"]) == (409, "illegal_move")
    for wrong, status in (({}, 422), ({"priority": 101}, 422), ({"state": "completed"}, 422), ({"queue": ""}, 422)):
        assert (await site.ask("PATCH", f"/jobs/{job['id']}", json=wrong)).status_code == status
    assert (await site.ask("PATCH", f"/jobs/{uuid7()}", json={"priority": 1})).status_code == 404


async def test_a_waiting_job_is_deleted_at_once(site: Site) -> None:
    job = await site.submit(dedupe={"key": "once", "window": 3600})
    assert (await site.ask("DELETE", f"/jobs/{job['id']}")).status_code == 204
    assert (await site.get(f"/jobs/{job['id']}")).status_code == 404
    assert (await site.ask("DELETE", f"/jobs/{job['id']}")).status_code == 404
    assert (await site.submit(dedupe={"key": "once", "window": 3600}))["id"] != job["id"]


async def test_a_running_job_is_stopped_first_and_then_deleted(sites: Callable[[Headway], Any], store_url: str) -> None:
    app, begun, may_end = Headway(store_url), asyncio.Event(), asyncio.Event()

    @app.job(name="long")
    async def long() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await may_end.wait()

    site = await sites(app)
    async with app.worker():
        job = (await site.post("/jobs", {"kind": "call", "function": "long"})).json()
        await asyncio.wait_for(begun.wait(), 30)
        for change in ({"priority": 1}, {"queue": "mail"}, {"payload": {"function": "long"}}):
            refused = await site.ask("PATCH", f"/jobs/{job['id']}", json=change)
            assert (refused.status_code, refused.json()["code"]) == (409, "illegal_move"), refused.text
        answer = await site.ask("DELETE", f"/jobs/{job['id']}")
        assert (answer.status_code, answer.json()["state"]) == (202, "cancelling")
        may_end.set()

        async def gone() -> bool:
            return bool((await site.get(f"/jobs/{job['id']}")).status_code == 404)

        await until(gone, "the job to be gone", 60)


async def test_what_is_no_job_is_not_found(memory_site: Site) -> None:
    for name in (uuid4(), "x"):
        answer = await memory_site.get(f"/jobs/{name}")
        assert answer.status_code == 404
        assert answer.json()["code"] == "not_found"


async def test_the_same_key_makes_one_job(site: Site) -> None:
    body = {"kind": "call", "function": "pay", "args": [7]}
    key = {"Idempotency-Key": "order 7"}
    together = await asyncio.gather(*(site.post("/jobs", body, headers=key) for _ in range(10)))
    assert {answer.status_code for answer in together} <= {200, 201}
    [made] = {answer.json()["id"] for answer in together}
    again = await site.post("/jobs", body, headers=key)
    assert (again.status_code, again.json()["id"]) == (200, made)
    assert again.headers["idempotency-replayed"] == "true"
    other = await site.post("/jobs", {**body, "args": [8]}, headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert (await site.post("/jobs", body)).status_code == 201
    assert (await site.post("/jobs", body, headers={"Idempotency-Key": "x" * 256})).status_code == 422


async def _ended(site: Site, name: str) -> bool:
    state: str = (await site.get(f"/jobs/{name}")).json()["state"]
    return state in {"completed", "failed", "cancelled"}


async def test_what_a_job_with_a_script_does_cannot_be_changed_and_the_script_stays(site: Site) -> None:
    await site.post("/targets", TARGET)
    fields = {"target": "box", "script": "echo hello", "probe": False}
    made = await site.post("/jobs", {"kind": "script", "name": "s", "hold": True, **fields})
    assert made.status_code == 201, made.text
    path = f"/jobs/{made.json()['id']}"
    for payload in ({**fields, "script": "echo other"}, {**fields, "env": {"A": "b"}}):
        refused = await site.ask("PATCH", path, json={"payload": payload})
        assert (refused.status_code, refused.json()["field"]) == (422, "payload"), refused.text
        assert "submit another" in refused.json()["detail"]
    assert (await site.get(f"{path}/script")).text == "echo hello"
    assert (await site.ask("PATCH", path, json={"priority": 7})).json()["priority"] == 7


async def test_who_says_allow_is_told_of_the_other_and_who_says_nothing_is_not(site: Site) -> None:
    first = await site.submit(name="nightly")
    second = await site.submit(name="nightly")
    assert not any("has not ended yet" in warning for warning in second["warnings"])
    third = await site.submit(name="nightly", on_conflict="allow")
    assert any(f"job {job['id']}" in warning for job in (first, second) for warning in third["warnings"])
    other = await site.submit(name="weekly", on_conflict="allow")
    assert not any("has not ended yet" in warning for warning in other["warnings"])
    body = {"kind": "call", "function": "nobody.knows", "name": "weekly", "on_conflict": "allow"}
    [item] = (await site.post("/jobs/batch", {"jobs": [body]})).json()["items"]
    assert any(f"job {other['id']}" in warning for warning in item["job"]["warnings"])
