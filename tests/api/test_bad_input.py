"""Every sort of bad input: the right 4xx, and a sentence that a person can act on."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx

from headway.api.app import make_asgi
from tests.api.conftest import Site

CALL = {"kind": "call", "function": "f"}

BODIES: list[tuple[Any, int, str | None]] = [
    ({}, 422, "kind"),
    ({"kind": "fly"}, 422, "kind"),
    ({"kind": 7}, 422, "kind"),
    ({"kind": "call"}, 422, "function"),
    ({**CALL, "function": ""}, 422, "function"),
    ({**CALL, "args": {}}, 422, "args"),
    ({**CALL, "colour": "red"}, 422, "colour"),
    ({**CALL, "priority": 101}, 422, "priority"),
    ({**CALL, "priority": "high"}, 422, "priority"),
    ({**CALL, "priority": True}, 422, "priority"),
    ({**CALL, "queue": ""}, 422, "queue"),
    ({**CALL, "queue": "a\nb"}, 422, "queue"),
    ({**CALL, "name": "x" * 201}, 422, "name"),
    ({**CALL, "run_at": "tomorrow"}, 422, "run_at"),
    ({**CALL, "run_at": "2030-01-01T00:00:00"}, 422, "run_at"),
    ({**CALL, "run_at": "2030-01-01T00:00:00Z", "delay": 5}, 422, "delay"),
    ({**CALL, "delay": -1}, 422, "delay"),
    ({**CALL, "delay": 1e300}, 422, "delay"),
    ({**CALL, "timeout": -1}, 422, "timeout"),
    ({**CALL, "retry": {"max_attempts": 0}}, 422, "retry.max_attempts"),
    ({**CALL, "retry": {"tries": 3}}, 422, "retry.tries"),
    ({**CALL, "on_conflict": "fight"}, 422, "on_conflict"),
    ({**CALL, "dedupe": True}, 422, "dedupe"),
    ({**CALL, "after": ["x"]}, 422, "after"),
    ({**CALL, "after": ["0199c5e2-7a1b-7c3d-9e4f-0123456789ab"]}, 422, "after"),
    ({**CALL, "id": "x"}, 422, "id"),
    ({**CALL, "id": "5f0c1a52-0b8e-4b0e-8f6e-0123456789ab"}, 422, "id"),
    ({**CALL, "tags": "no list"}, 422, "tags"),
    ({**CALL, "tags": ["nul \x00"]}, 422, "tags"),
    ({**CALL, "metadata": []}, 422, "metadata"),
    ({**CALL, "metadata": {"text": "x" * 5000}}, 413, "metadata"),
    ({**CALL, "args": ["x" * 300_000]}, 413, "payload"),
    ({"kind": "http"}, 422, "callback_url"),
    ({"kind": "http", "callback_url": "ftp://example.com/"}, 422, "callback_url"),
    ({"kind": "http", "callback_url": "https://example.com/", "http_method": "FLY"}, 422, "http_method"),
    ({"kind": "fetch", "url": "no url"}, 422, "url"),
    ({"kind": "fetch", "url": "file:///etc/passwd"}, 422, "url"),
    ([], 422, None),
    ("text", 422, None),
    (None, 422, None),
]


async def test_a_bad_body_is_refused_and_the_field_named(memory_site: Site) -> None:
    for body, status, field in BODIES:
        answer = await memory_site.client.post("/api/v1/jobs", content=json.dumps(body).encode())
        told = (str(body)[:200], answer.text)
        assert answer.status_code == status, told
        assert answer.headers["content-type"] == "application/problem+json", told
        problem = answer.json()
        assert (problem["status"], problem["type"]) == (status, f"urn:headway:problem:{problem['code']}"), told
        assert problem.get("field") == field, told
        assert len(problem["detail"]) > 10, told
    assert (await memory_site.get("/jobs")).json()["items"] == []


async def test_what_is_no_json_is_malformed(memory_site: Site) -> None:
    deep = b'{"kind": "call", "function": "f", "args": ' + b"[" * 100 + b"]" * 100 + b"}"
    very_deep = b"[" * 100_000 + b"]" * 100_000
    for content in (b"", b"{", b"\xff\xfe", b'{"a": 1}}', b"nonsense", deep, very_deep, b'{"kind": "\\ud800"}'):
        answer = await memory_site.client.post("/api/v1/jobs", content=content)
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed"), (content[:40], answer.text)
    fine = b'{"kind": "call", "function": "f", "args": ' + b"[" * 60 + b"]" * 60 + b"}"
    assert (await memory_site.client.post("/api/v1/jobs", content=fine)).status_code == 201


async def test_a_body_beyond_the_limit_is_refused_before_it_is_read(memory_site: Site) -> None:
    big = b'{"kind": "call", "function": "f", "args": ["' + b"x" * (1024 * 1024) + b'"]}'
    answer = await memory_site.client.post("/api/v1/jobs", content=big)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")

    async def streamed() -> Any:
        for _ in range(40):
            yield b"x" * 50_000

    answer = await memory_site.client.post("/api/v1/jobs", content=streamed())
    assert answer.status_code == 413
    batch = b'{"jobs": [' + b" " * (33 * 1024 * 1024) + b"]}"
    assert (await memory_site.client.post("/api/v1/jobs/batch", content=batch)).status_code == 413


async def test_another_type_than_json_is_refused(memory_site: Site) -> None:
    answer = await memory_site.client.post(
        "/api/v1/jobs", content=b"kind=call", headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    assert "--json" in answer.json()["detail"]


QUERIES = {
    "limit=0": "limit",
    "limit=1001": "limit",
    "limit=many": "limit",
    "cursor=x": "cursor",
    "state=flying": "state",
    "time=never": "time",
    "from=yesterday": "from",
    "from=2030-01-01T00:00:00": "from",
    "schedule=x": "schedule",
    "colour=red": "colour",
    "queue=a&queue=b": "queue",
}


async def test_a_bad_query_is_refused_and_the_parameter_named(memory_site: Site) -> None:
    for query, field in QUERIES.items():
        answer = await memory_site.get(f"/jobs?{query}")
        assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_what_the_path_cannot_do_is_405_and_what_is_not_there_404(memory_site: Site) -> None:
    answer = await memory_site.ask("PUT", "/jobs")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert (await memory_site.get("/nothing")).json()["code"] == "not_found"
    assert (await memory_site.client.head("/api/v1/jobs")).status_code == 200


async def test_a_pattern_of_the_table_is_no_path_itself(memory_site: Site) -> None:
    """Paths without parameters are looked up as they are written: those with parameters must not be found that way."""
    for path in ("/jobs/{job_id}", "/jobs/{job_id}/result"):
        answer = await memory_site.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), answer.text


async def test_a_web_socket_is_refused_at_paths_that_exist_and_at_others(memory_site: Site) -> None:
    asgi = make_asgi(memory_site.api.service)
    for path in ("/api/v1/jobs", "/api/v1/nothing"):
        said: list[Any] = []

        async def send(message: Any, said: list[Any] = said) -> None:
            said.append(message)

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        await asgi({"type": "websocket", "path": path, "headers": [], "root_path": ""}, receive, send)
        assert [message["type"] for message in said] == ["websocket.close"]


async def test_of_a_header_that_comes_twice_the_first_counts(memory_site: Site) -> None:
    """Whatever stands before the service may have looked at the first one only."""
    right, wrong = memory_site.client.headers["authorization"], "Bearer nobody"
    for first, second, status in ((right, wrong, 200), (wrong, right, 401)):
        request = memory_site.client.build_request("GET", "/api/v1/jobs")
        del request.headers["authorization"]
        request.headers = httpx.Headers(
            [*request.headers.multi_items(), ("Authorization", first), ("Authorization", second)]
        )
        assert (await memory_site.client.send(request)).status_code == status


FAR = ("9999-12-31T23:59:59-14:00", "2999-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1970-12-31T23:59:59Z")


async def test_a_time_that_cannot_be_kept_is_refused_wherever_it_is_given(site: Site) -> None:
    job = await site.submit(hold=True)
    made = await site.post(
        "/schedules", {"name": "s", "schedule": {"every": 60}, "job": {"callback_url": "https://example.com/"}}
    )
    assert made.status_code == 201, made.text
    for time in FAR:
        written = quote(time)
        answers = {
            "run_at": [
                await site.post("/jobs", {**CALL, "run_at": time}),
                await site.post(f"/jobs/{job['id']}/schedule", {"run_at": time}),
                await site.ask("PATCH", f"/jobs/{job['id']}", json={"run_at": time}),
            ],
            "expires": [await site.post("/jobs", {**CALL, "expires": time})],
            "jobs[0].expires": [await site.post("/jobs/batch", {"jobs": [{**CALL, "expires": time}]})],
            "from": [await site.get(f"/jobs?from={written}"), await site.get(f"/audit?from={written}")],
            "to": [await site.get(f"/jobs?to={written}")],
            "filter.to": [await site.post("/jobs/bulk", {"action": "cancel", "filter": {"to": time}})],
            "before": [await site.get(f"/schedules/s/occurrences?before={written}")],
            "expires_at": [await site.post("/tokens", {"name": "t", "role": "viewer", "expires_at": time})],
        }
        for field, refused in answers.items():
            for answer in refused:
                assert (answer.status_code, answer.json().get("field")) == (422, field), answer.text
    listed = await site.get("/jobs?from=1971-01-01T00:00:00Z&to=2998-12-31T23:59:59Z")
    assert [(each["id"], each["state"]) for each in listed.json()["items"]] == [(job["id"], "creating")]


async def test_the_last_time_that_can_be_kept_is_kept(site: Site) -> None:
    late = "2998-12-31T23:59:59-14:00"
    job = await site.submit(run_at=late, expires=late)
    [listed] = (await site.get("/jobs")).json()["items"]
    assert (listed["id"], listed["run_at"]) == (job["id"], "2999-01-01T13:59:59Z")


async def test_a_character_that_not_every_store_takes_is_refused(site: Site) -> None:
    job = await site.submit(args=["a\0b"])
    assert (await site.get(f"/jobs/{job['id']}/payload")).json()["args"] == ["a\0b"]
    for query in ("name", "error", "key", "created_by", "queue"):
        answer = await site.get(f"/jobs?{query}=a%00b")
        assert (answer.status_code, answer.json()["field"]) == (422, query)
    refused = await site.post(f"/jobs/{job['id']}/cancel", {"reason": "a\0b"})
    assert refused.status_code == 422, refused.text
    refused = await site.post("/jobs", {**CALL, "dedupe": {"key": "a\0b"}})
    assert (refused.status_code, refused.json()["field"]) == (422, "dedupe.key")
    for path in ("/schedules/a%00b", "/queues/a%00b", "/targets/a%00b", "/jobs/a%00b"):
        assert (await site.get(path)).status_code == 404, path
