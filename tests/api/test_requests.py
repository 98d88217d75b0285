"""Jobs that send requests, from end to end over HTTP: submitted, run, and read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiohttp import web

from headway import Headway
from tests.api.conftest import Site, serving
from tests.outgoing.site import Site as FarSide

PICTURE = bytes(range(256)) * 8


@pytest.fixture
def far() -> Iterator[FarSide]:
    """A server that callbacks and fetches go to."""
    with FarSide() as far:
        yield far


@pytest.fixture
async def working(store_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """The service with a worker beside it, which may reach the far side."""
    monkeypatch.setenv("HEADWAY_ALLOW_PRIVATE", "127.0.0.1")
    app = Headway(store_url)
    async with serving(app) as site, app.worker(queues=["default"]):
        yield site


async def ended(site: Site, body: dict[str, Any]) -> dict[str, Any]:
    made = await site.post("/jobs", {"retry": {"max_attempts": 1}, **body})
    assert made.status_code == 201, made.text
    return await waited(site, made.json()["id"])


async def waited(site: Site, job_id: str) -> dict[str, Any]:
    """The job at its end."""
    while True:
        job: dict[str, Any] = (await site.get(f"/jobs/{job_id}?wait=60")).json()
        if job["finished_at"]:
            return job


async def test_a_callback_is_sent_and_its_answer_can_be_read(working: Site, far: FarSide) -> None:
    url = far.say("/hook", (201, {"Content-Type": "application/json", "X-Seen": "1"}, b'{"ok": true}'))
    job = await ended(working, {"kind": "http", "callback_url": url, "http_method": "PUT", "payload": {"order": 7}})
    assert (job["state"], job["outcome"]) == ("completed", "succeeded")
    [asked] = far.asked("/hook")
    assert (asked.method, json.loads(asked.body)) == ("PUT", {"order": 7})
    result = await working.get(f"/jobs/{job['id']}/result")
    assert result.headers["content-type"] == "application/json"
    told = result.json()
    assert (told["status"], told["headers"]["x-seen"], told["body"]) == (201, "1", '{"ok": true}')
    meta = (await working.get(f"/jobs/{job['id']}/result/meta")).json()
    assert (meta["status"], meta["timings"].keys()) == (201, told["timings"].keys())


async def test_what_was_fetched_comes_back_as_it_is_and_is_described_to_who_asks_for_json(
    working: Site, far: FarSide
) -> None:
    url = far.say("/picture", (200, {"Content-Type": "image/png"}, PICTURE))
    job = await ended(working, {"kind": "fetch", "url": url})
    result = await working.get(f"/jobs/{job['id']}/result")
    assert (result.headers["content-type"], result.content) == ("image/png", PICTURE)
    part = await working.get(f"/jobs/{job['id']}/result", headers={"Range": "bytes=250-259"})
    assert (part.status_code, part.content) == (206, PICTURE[250:260])
    described = await working.get(f"/jobs/{job['id']}/result", headers={"Accept": "application/json"})
    assert described.headers["content-type"] == "application/json"
    assert (described.json()["content_type"], described.json()["size"]) == ("image/png", len(PICTURE))


async def test_the_jobs_of_a_schedule_are_listed_with_what_was_answered(working: Site, far: FarSide) -> None:
    long = b"x" * 5000
    url = far.say("/ping", (200, {"X-Pong": "1"}, long), (503, {"X-Down": "1"}, b"maintenance"))
    job = {"callback_url": url, "retry": {"max_attempts": 1}}
    made = await working.post("/schedules", {"name": "ping", "schedule": {"at": "2990-01-01T00:00:00Z"}, "job": job})
    assert made.status_code == 201, made.text
    for _ in range(2):
        await waited(working, (await working.post("/schedules/ping/run")).json()["id"])
    refused, fine = (await working.get("/schedules/ping/jobs")).json()["items"]
    answer = fine["response"]
    assert (fine["state"], answer["status"], answer["headers"]["x-pong"]) == ("completed", 200, "1")
    assert (answer["body"], answer["truncated"]) == ("x" * 4096, True)
    assert {"connect", "wait", "read", "total"} <= answer["timings"].keys()
    answer = refused["response"]
    assert (refused["state"], answer["status"], answer["headers"]["x-down"]) == ("failed", 503, "1")
    assert (answer["body"], answer["truncated"]) == ("maintenance", False)
    attempts = (await working.get(f"/jobs/{refused['id']}/attempts")).json()["items"]
    assert [attempt["outcome"] for attempt in attempts] == ["failed"]


async def test_a_request_that_got_no_answer_has_no_response(working: Site, far: FarSide) -> None:
    async def silent(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    job = {"callback_url": far.on("/gone", silent), "retry": {"max_attempts": 1}}
    await working.post("/schedules", {"name": "gone", "schedule": {"at": "2990-01-01T00:00:00Z"}, "job": job})
    await waited(working, (await working.post("/schedules/gone/run")).json()["id"])
    [listed] = (await working.get("/schedules/gone/jobs")).json()["items"]
    assert (listed["state"], listed["response"]) == ("failed", None)
