"""Jobs of kind `http`: what arrives at the server, and what is kept of its answer."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from aiohttp import web

from headway.executors.http.fields import METHODS
from headway.model.errors import InvalidJob
from headway.model.states import Outcome, State
from tests.outgoing.conftest import ONCE, Bench, read_body, result_of
from tests.outgoing.site import PACKERS, Site, packed


async def test_a_callback_arrives_as_asked_and_its_answer_is_the_result(stored: Bench, site: Site) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="grüße", headers={"X-Seen": "1"}, charset="latin-1")

    url = site.on("/hook", answer)
    job = await stored.http(url, http_method="post", payload={"order": 7}, headers={"X-Team": "ops"})
    assert job.state is State.COMPLETED
    [asked] = site.asked("/hook")
    assert (asked.method, json.loads(asked.body)) == ("POST", {"order": 7})
    assert (asked.headers["Content-Type"], asked.headers["X-Team"]) == ("application/json", "ops")
    assert asked.headers["Idempotency-Key"] == str(job.id)
    result = result_of(job)
    assert (result["status"], result["body"], result["headers"]["x-seen"]) == (200, "grüße", "1")
    assert (result["charset"], result["truncated"], result["url"]) == ("latin-1", False, url)
    assert {"connect", "wait", "read", "total"} <= result["timings"].keys()
    meta = await stored.app.aresult_meta(job.id)
    assert meta is not None
    assert (meta["status"], meta["headers"]["x-seen"], meta["content_type"]) == (200, "1", "application/json")
    assert "body" not in meta


async def test_all_methods_are_sent(bench: Bench, site: Site) -> None:
    for method in METHODS:
        job = await bench.http(f"{site.url}/{method}", http_method=method.lower())
        # A server needn't take TRACE; that it was asked is what counts.
        assert job.state is State.COMPLETED or method == "TRACE"
        assert [asked.method for asked in site.asked(f"/{method}")] == [method]


@pytest.mark.parametrize(
    ("form", "payload", "body", "content_type"),
    [
        ("json", [1, None, "ü"], '[1,null,"ü"]'.encode(), "application/json"),
        ("json", {}, b"{}", "application/json"),
        ("form", {"a": "x y", "b": [1, True]}, b"a=x+y&b=1&b=true", "application/x-www-form-urlencoded"),
        ("raw", "plain ü", "plain ü".encode(), "text/plain; charset=utf-8"),
        ("base64", base64.b64encode(b"\x00\xff").decode(), b"\x00\xff", "application/octet-stream"),
    ],
)
async def test_a_payload_is_sent_in_its_format(
    bench: Bench, site: Site, form: str, payload: object, body: bytes, content_type: str
) -> None:
    assert (await bench.http(f"{site.url}/p", payload=payload, payload_format=form)).state is State.COMPLETED
    [asked] = site.asked("/p")
    assert (asked.body, asked.headers["Content-Type"]) == (body, content_type)


async def test_a_query_is_added_and_headers_of_the_body_win(bench: Bench, site: Site) -> None:
    headers = {"content-type": "application/vnd.ours+json", "idempotency-key": "mine"}
    await bench.http(f"{site.url}/q?a=1#part", query={"b": ["x", 2], "c": "ü &"}, payload={}, headers=headers)
    [asked] = site.asked("/q")
    assert asked.query == "a=1&b=x&b=2&c=%C3%BC+%26"
    assert asked.headers.getall("Content-Type") == ["application/vnd.ours+json"]
    assert asked.headers.getall("Idempotency-Key") == ["mine"]


async def test_large_and_binary_answers_are_kept_as_far_as_they_may(bench: Bench, site: Site) -> None:
    site.say("/large", (200, {}, b"x" * 1_000_000))
    site.say("/binary", (200, {"Content-Type": "image/png"}, b"\x89PNG\xff\x00"))
    large = result_of(await bench.http(f"{site.url}/large", max_size=1000))
    assert (large["body"], large["truncated"]) == ("x" * 1000, True)
    binary = result_of(await bench.http(f"{site.url}/binary"))
    assert base64.b64decode(binary["body_base64"]) == b"\x89PNG\xff\x00"
    assert binary["content_type"] == "image/png"


async def test_compressed_answers_are_unpacked(bench: Bench, site: Site) -> None:
    for encoding in PACKERS:
        job = await bench.http(site.say(f"/{encoding}", packed(encoding, b"hello " * 5000)), max_size=50_000)
        assert result_of(job)["body"] == "hello " * 5000, encoding


async def test_only_expected_statuses_count_as_success(bench: Bench, site: Site) -> None:
    gone = site.say("/gone", (410, {}, b"no longer"))
    assert (await bench.http(gone, expected_status=["2xx", 410])).state is State.COMPLETED
    assert (await bench.http(gone, expected_status=["400-499"])).state is State.COMPLETED
    job = await bench.http(f"{site.url}/fine", expected_status=[204])
    assert (job.state, job.attempt) == (State.FAILED, 1)
    assert job.error is not None
    assert "answered 200 OK, not 204" in job.error.message


async def test_a_slow_server_is_given_up_when_the_time_is_over(bench: Bench, site: Site) -> None:
    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")

    url = site.on("/slow", slow)
    over = await bench.ended("http", {"callback_url": url}, timeout=0.2, retry=ONCE)
    assert (over.state, over.outcome) == (State.FAILED, Outcome.TIMED_OUT)
    silent = await bench.ended("http", {"callback_url": url, "read_timeout": 0.2}, retry=ONCE)
    assert silent.error is not None
    assert (silent.outcome, silent.error.type) == (Outcome.FAILED, "RequestTimedOut")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "callback_url"),
        ({"callback_url": ""}, "callback_url"),
        ({"callback_url": "ftp://example.com/"}, "callback_url"),
        ({"callback_url": "file:///etc/passwd"}, "callback_url"),
        ({"callback_url": "http://"}, "callback_url"),
        ({"callback_url": "http://a b/"}, "callback_url"),
        ({"callback_url": "http://example.com:99999/"}, "callback_url"),
        ({"callback_url": "http://[::1/"}, "callback_url"),
        ({"callback_url": "http://ann:secret@example.com/"}, "callback_url"),
        ({"callback_url": "http://example.com/\n"}, "callback_url"),
        ({"http_method": "DANCE"}, "http_method"),
        ({"headers": {"Host": "other"}}, "headers.Host"),
        ({"headers": {"Bad Name": "x"}}, "headers"),
        ({"headers": {"X": "a\r\nY: b"}}, "headers.X"),
        ({"headers": {"X": "1", "x": "2"}}, "headers.x"),
        ({"headers": {"X": {"secret": "a", "suffix": "b"}}}, "headers.suffix"),
        ({"payload": 7, "payload_format": "form"}, "payload"),
        ({"payload": {}, "payload_format": "raw"}, "payload"),
        ({"payload": "%", "payload_format": "base64"}, "payload"),
        ({"payload_format": "xml"}, "payload_format"),
        ({"expected_status": ["6xx"]}, "expected_status[0]"),
        ({"expected_status": [2000]}, "expected_status[0]"),
        ({"expected_status": []}, "expected_status"),
        ({"max_redirects": 50}, "max_redirects"),
        ({"connect_timeout": 0}, "connect_timeout"),
        ({"max_size": -1}, "max_size"),
        ({"urls": []}, "urls"),
    ],
)
async def test_what_can_not_be_sent_is_refused_and_the_field_named(body: dict, field: str) -> None:
    given = {"kind": "http", "callback_url": "http://example.com/"} | body if body else {"kind": "http"}
    with pytest.raises(InvalidJob) as refusal:
        await read_body(given)
    assert refusal.value.field == field


@pytest.mark.parametrize("charset", ["punycode", "undefined", "unicode_escape", "idna", "rot13", "no-such"])
async def test_a_charset_that_servers_do_not_speak_is_left_alone(bench: Bench, site: Site, charset: str) -> None:
    content = b"-".join([b"a" * 100] * 300) + b"\\"
    url = site.say("/odd", (200, {"Content-Type": f"text/plain; charset={charset}"}, content))
    job = await bench.http(url)
    assert job.state is State.COMPLETED, job.error
    assert base64.b64decode(result_of(job)["body_base64"]) == content


@pytest.mark.parametrize("charset", ["UTF-8", "windows-1252", "shift_jis", "gb18030", "utf-16le"])
async def test_text_in_a_charset_that_servers_speak_is_told_as_text(bench: Bench, site: Site, charset: str) -> None:
    url = site.say("/text", (200, {"Content-Type": f"text/plain; charset={charset}"}, "plain".encode(charset)))
    assert result_of(await bench.http(url))["body"] == "plain"
