"""Schedules over HTTP."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from headway.clock import SystemClock
from headway.schedules import find_schedule
from tests.api.conftest import TARGET, Site

SEED = {
    "name": "ping",
    "description": "Ping the far side every minute",
    "schedule": "* * * * *",
    "job": {"callback_url": "https://example.com/ping", "http_method": "POST", "payload": {"hello": "world"}},
}


async def test_the_body_of_the_first_idea_is_accepted_as_it_is(site: Site) -> None:
    answer = await site.post("/schedules", SEED)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert answer.headers["location"] == f"/api/v1/schedules/{made['id']}"
    assert {name: made[name] for name in ("name", "description", "schedule")} == {
        name: SEED[name] for name in ("name", "description", "schedule")
    }
    assert made["job"] == {"kind": "http", **SEED["job"]}  # type: ignore[dict-item]
    assert made["next_at"] is not None
    by_id, by_name = await site.get(f"/schedules/{made['id']}"), await site.get("/schedules/ping")
    assert by_id.json() == by_name.json() == made
    assert [each["name"] for each in (await site.get("/schedules")).json()["items"]] == ["ping"]
    taken = await site.post("/schedules", SEED)
    assert (taken.status_code, taken.json()["field"]) == (409, "name")


async def test_a_schedule_is_changed_only_as_it_was_seen(site: Site) -> None:
    await site.post("/schedules", SEED)
    seen = await site.get("/schedules/ping")
    tag = {"If-Match": seen.headers["etag"]}
    changed = await site.ask("PATCH", "/schedules/ping", json={"schedule": {"every": 60}, "tags": ["a"]}, headers=tag)
    assert changed.status_code == 200, changed.text
    assert (changed.json()["schedule"], changed.json()["tags"]) == ({"every": 60.0}, ["a"])
    assert changed.json()["description"] == SEED["description"]
    stale = await site.ask("PATCH", "/schedules/ping", json={"jitter": 5}, headers=tag)
    assert (stale.status_code, stale.json()["code"]) == (412, "version_conflict")
    gone = await site.ask("DELETE", "/schedules/ping", headers=tag)
    assert gone.status_code == 412
    again = await site.get("/schedules/ping", headers={"If-None-Match": changed.headers["etag"]})
    assert again.status_code == 304
    replaced = await site.ask("PUT", "/schedules/ping", json={**SEED, "description": None})
    assert (replaced.json()["description"], replaced.json()["tags"]) == (None, [])
    assert (await site.ask("DELETE", "/schedules/ping")).status_code == 204
    assert (await site.get("/schedules/ping")).status_code == 404


async def test_a_schedule_is_paused_resumed_and_run_by_hand(site: Site) -> None:
    await site.post("/schedules", SEED)
    paused = (await site.post("/schedules/ping/pause", {"reason": "maintenance"})).json()
    assert (paused["paused"], paused["pause_reason"]) == (True, "maintenance")
    assert [each["name"] for each in (await site.get("/schedules?paused=true")).json()["items"]] == ["ping"]
    assert (await site.post("/schedules/ping/resume")).json()["paused"] is False
    key = {"Idempotency-Key": "now"}
    first = await site.post("/schedules/ping/run", headers=key)
    again = await site.post("/schedules/ping/run", headers=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    jobs = (await site.get("/schedules/ping/jobs")).json()["items"]
    assert [(job["id"], job["kind"]) for job in jobs] == [(first.json()["id"], "http")]
    [listed] = (await site.get(f"/jobs?schedule={paused['id']}")).json()["items"]
    assert jobs == [{**listed, "response": None}]
    assert (await site.get("/schedules/ping/occurrences")).json()["items"] == []


async def test_the_future_can_be_seen(memory_site: Site) -> None:
    await memory_site.post("/schedules", {**SEED, "schedule": "30 2 * * *", "timezone": "Europe/Berlin"})
    fires = (await memory_site.get("/schedules/ping/preview?count=400")).json()["items"]
    assert len(fires) == 400
    assert "gap" in {fire["note"] for fire in fires}
    asked = {"schedule": "0 3 * * *", "timezone": "Europe/Berlin", "count": 3}
    assert len((await memory_site.post("/schedules/preview", asked)).json()["items"]) == 3
    assert (await memory_site.post("/schedules/preview", {"schedule": "* * 31 2 *"})).status_code == 422


async def test_the_same_key_makes_one_schedule(site: Site) -> None:
    key = {"Idempotency-Key": "first schedule"}
    first, again = await site.post("/schedules", SEED, headers=key), await site.post("/schedules", SEED, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]


class LaterClock(SystemClock):
    """A clock that shows the next hour."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


async def test_a_key_of_a_schedule_is_known_when_the_hour_has_changed(site: Site) -> None:
    key = {"Idempotency-Key": "first schedule"}
    first = await site.post("/schedules", SEED, headers=key)
    site.api.service.clock = LaterClock()
    again = await site.post("/schedules", SEED, headers=key)
    assert (first.status_code, again.status_code) == (201, 201), again.text
    assert first.json()["id"] == again.json()["id"]


async def test_the_same_key_with_another_body_is_refused_even_if_the_schedule_has_been_changed(site: Site) -> None:
    key = {"Idempotency-Key": "first schedule"}
    await site.post("/schedules", SEED, headers=key)
    for other in ({"name": "pong"}, {"schedule": "0 * * * *"}, {"job": {"callback_url": "https://example.com/pong"}}):
        refused = await site.post("/schedules", {**SEED, **other}, headers=key)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict"), refused.text
    changed = await site.ask("PATCH", "/schedules/ping", json={"name": "pong"})
    assert changed.status_code == 200
    again = await site.post("/schedules", SEED, headers=key)
    assert (again.status_code, again.json()["name"]) == (201, "pong")
    assert (await site.post("/schedules", {**SEED, "name": "pong"}, headers=key)).status_code == 409


async def test_a_repeat_leaves_a_schedule_its_script(site: Site) -> None:
    job = {"kind": "script", "name": "s", "target": "box", "script": "echo hello", "probe": False}
    await site.post("/targets", TARGET)
    body, key = {"name": "nightly", "schedule": "0 3 * * *", "job": job}, {"Idempotency-Key": "with a script"}
    for _ in range(2):
        made = await site.post("/schedules", body, headers=key)
        assert made.status_code == 201, made.text
    ran = await site.post("/schedules/nightly/run")
    assert ran.status_code == 201, ran.text
    script = await site.get(f"/jobs/{ran.json()['id']}/script")
    assert (script.status_code, script.text) == (200, "echo hello")
    other = await site.post("/schedules", {**body, "job": {**job, "script": "echo other"}}, headers=key)
    assert other.status_code == 409


async def test_changes_made_at_the_same_time_are_all_kept(site: Site) -> None:
    await site.post("/schedules", SEED)
    changes: list[dict[str, Any]] = [
        {"jitter": 5.0},
        {"description": "all at once"},
        {"tags": ["a"]},
        {"misfire_limit": 7},
        {"schedule": {"every": 90.0}},
        {"paused": True},
    ]
    answers = await asyncio.gather(*[site.ask("PATCH", "/schedules/ping", json=change) for change in changes])
    assert {answer.status_code for answer in answers} == {200}, [answer.text for answer in answers]
    now = (await site.get("/schedules/ping")).json()
    for change in changes:
        assert {name: now[name] for name in change} == change


async def test_a_version_that_is_none_is_a_conflict(memory_site: Site) -> None:
    await memory_site.post("/schedules", SEED)
    for odd in ('"²-x"', f'"{"9" * 5000}-x"', '"x"', "9" * 30):
        for method in ("PATCH", "DELETE"):
            answer = await memory_site.ask(
                method, "/schedules/ping", content=b'{"jitter": 1}', headers=[(b"If-Match", odd.encode("latin-1"))]
            )
            assert answer.status_code == 412, (odd[:20], answer.text)


async def test_schedules_are_listed_page_by_page(memory_site: Site) -> None:
    for name in "abcde":
        await memory_site.post("/schedules", {**SEED, "name": f"job-{name}", "tags": ["x"] if name < "c" else []})
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await memory_site.get(f"/schedules?limit=2{cursor}")).json()
        seen += [each["name"] for each in page["items"]]
        if page["cursor"] is None:
            break
        cursor = f"&cursor={page['cursor']}"
    assert seen == [f"job-{name}" for name in "abcde"]
    assert len((await memory_site.get("/schedules?tag=x&name=job-*")).json()["items"]) == 2


async def test_a_bad_schedule_is_refused_and_the_field_named(memory_site: Site) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"name": None}, "name"),
        ({"schedule": "* * *"}, "schedule"),
        ({"schedule": "* * 31 2 *"}, "schedule"),
        ({"schedule": {"every": 0}}, "schedule.every"),
        ({"schedule": {"every": 60, "at": "x"}}, "schedule"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"misfire": "panic"}, "misfire"),
        ({"jitter": -1}, "jitter"),
        ({"colour": "red"}, "colour"),
        ({"job": {"callback_url": "no url"}}, "job.callback_url"),
        ({"job": {"kind": "call", "function": "nobody.knows"}}, "job.function"),
        ({"job": {**SEED["job"], "run_at": "2030-01-01T00:00:00Z"}}, "job.run_at"),  # type: ignore[dict-item]
        ({"job": {**SEED["job"], "on_conflict": "wait"}}, "job.on_conflict"),  # type: ignore[dict-item]
    ]
    for change, field in wrong:
        answer = await memory_site.post("/schedules", {**SEED, **change})
        assert (answer.status_code, answer.json().get("field")) == (422, field), (change, answer.text)
    assert (await memory_site.get("/schedules")).json()["items"] == []
    assert (await memory_site.get("/schedules/nothing")).status_code == 404


async def test_a_header_that_was_written_out_is_shown_to_nobody_and_stays_as_it_is(site: Site) -> None:
    headers = {"Authorization": "Bearer s3cret", "X-Team": "ops", "Cookie": {"secret": "biscuit"}}
    await site.app.vault.set_secret("biscuit", b"a value", by="test")
    body = {**SEED, "job": {**SEED["job"], "headers": headers}}  # type: ignore[dict-item]
    made = await site.post("/schedules", body)
    assert made.status_code == 201, made.text
    masked = {**headers, "Authorization": "•••"}
    seen = await site.get("/schedules/ping")
    listed = await site.get("/schedules")
    for answer in (made, seen, listed):
        assert "s3cret" not in answer.text
    assert seen.json()["job"]["headers"] == listed.json()["items"][0]["job"]["headers"] == masked
    # What was shown comes back, with something else changed, by another case of the name too.
    job = {**seen.json()["job"], "headers": {"authorization": "•••"}, "payload": {"hello": "again"}}
    changed = await site.ask("PATCH", "/schedules/ping", json={"job": job})
    assert (changed.status_code, changed.json()["job"]["payload"]) == (200, {"hello": "again"})
    assert "s3cret" not in changed.text
    replaced = await site.ask("PUT", "/schedules/ping", json={**body, "job": job})
    assert replaced.status_code == 200, replaced.text
    stored = await site.app.client.call(lambda store: find_schedule(store, "ping"))
    assert stored.schedule.job["headers"] == {"authorization": "Bearer s3cret"}


async def test_a_hidden_header_is_not_sent_to_another_server_nor_made_of_its_mask(site: Site) -> None:
    hidden = {**SEED["job"], "headers": {"Authorization": "•••"}}  # type: ignore[dict-item]
    refused = await site.post("/schedules", {**SEED, "job": hidden})
    assert (refused.status_code, refused.json()["field"]) == (422, "job.headers.Authorization")
    assert "write the header Authorization out" in refused.json()["detail"]
    await site.post("/schedules", {**SEED, "job": {**hidden, "headers": {"Authorization": "Bearer s3cret"}}})
    elsewhere = {**hidden, "callback_url": "https://collector.example.net/ping"}
    refused = await site.ask("PATCH", "/schedules/ping", json={"job": elsewhere})
    assert (refused.status_code, refused.json()["field"]) == (422, "job.headers.Authorization")
    assert "another server" in refused.json()["detail"]
    kept = await site.ask("PATCH", "/schedules/ping", json={"job": {**hidden, "callback_url": "https://example.com/b"}})
    assert kept.status_code == 200, kept.text
