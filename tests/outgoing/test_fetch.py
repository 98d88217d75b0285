"""Jobs of kind `fetch`: content of any type and size, kept as it came."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from headway.model.errors import InvalidJob
from headway.model.states import State
from headway.results import load_result
from tests.flow.waiting import until
from tests.outgoing.conftest import Bench, read_body
from tests.outgoing.site import PACKERS, Site, packed

BYTES = bytes(range(256))


async def test_content_is_kept_with_its_type_and_what_the_server_said_of_it(stored: Bench, site: Site) -> None:
    url = site.say(
        "/page", (200, {"Content-Type": "text/html; charset=ISO-8859-1", "X-Id": "7"}, "ü".encode("latin-1"))
    )
    job = await stored.fetch(f"{url}#part")
    result = await stored.app.client.call(lambda store: load_result(store, job.id))
    assert result is not None
    assert (job.result, result.content) == (b"\xfc", b"\xfc")
    assert (result.content_type, result.meta["charset"]) == ("text/html; charset=ISO-8859-1", "iso-8859-1")
    assert (result.meta["status"], result.meta["url"], result.meta["headers"]["x-id"]) == (200, url, "7")
    assert (job.name, result.size) == (f"127.0.0.1:{site.port}/page", 1)


async def test_ten_mebibytes_fit_and_one_byte_more_does_not(stored: Bench, site: Site) -> None:
    most = 10 * 1024 * 1024
    site.say("/most", (200, {"Content-Type": "application/x-ours"}, BYTES * (most // 256)))
    site.say("/more", (200, {}, b"x" * (most + 1)))
    job = await stored.fetch(f"{site.url}/most")
    assert job.result == BYTES * (most // 256)
    meta = await stored.app.aresult_meta(job.id)
    assert meta is not None
    assert (meta["size"], meta["content_type"]) == (most, "application/x-ours")
    job = await stored.fetch(f"{site.url}/more")
    assert job.error is not None
    assert (job.state, job.attempt, job.error.type) == (State.FAILED, 1, "ResponseTooLarge")
    assert "larger than 10,485,760 bytes" in job.error.message


async def test_content_of_odd_types_and_none_is_kept_too(bench: Bench, site: Site) -> None:
    for path, headers, kept in (
        ("/none", {}, "application/octet-stream"),
        ("/odd", {"Content-Type": "no type"}, "application/octet-stream"),
        ("/json", {"Content-Type": "application/json"}, "application/json"),
    ):
        job = await bench.fetch(site.say(path, (200, headers, b"")))
        meta = await bench.app.aresult_meta(job.id)
        assert meta is not None
        assert (job.state, job.result, meta["content_type"], meta["size"]) == (State.COMPLETED, b"", kept, 0)


async def test_compressed_content_is_kept_unpacked(bench: Bench, site: Site) -> None:
    for encoding in PACKERS:
        job = await bench.fetch(site.say(f"/{encoding}", packed(encoding, BYTES * 2000)))
        assert job.result == BYTES * 2000, encoding
    [asked] = site.asked("/br")
    assert asked.headers["Accept-Encoding"] == "gzip, deflate, br, zstd"
    twice = PACKERS["br"](PACKERS["gzip"](BYTES))
    assert (await bench.fetch(site.say("/twice", (200, {"Content-Encoding": "gzip, br"}, twice)))).result == BYTES
    unknown = await bench.fetch(site.say("/rot13", (200, {"Content-Encoding": "rot13"}, b"uryyb")))
    meta = await bench.app.aresult_meta(unknown.id)
    assert meta is not None
    assert (unknown.result, meta["encoding"]) == (b"uryyb", "rot13")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "url"),
        ({"url": "example.com"}, "url"),
        ({"url": 7}, "url"),
        ({"url": "http://example.com", "headers": {"A": 1}}, "headers"),
        ({"url": "http://example.com", "max_size": 0}, "max_size"),
        ({"url": "http://example.com", "method": "POST"}, "method"),
        ({"url": "http://example.com", "dedupe": True}, "dedupe"),
    ],
)
async def test_what_can_not_be_fetched_is_refused_and_the_field_named(body: dict, field: str) -> None:
    with pytest.raises(InvalidJob) as refusal:
        await read_body({"kind": "fetch", **body})
    assert refusal.value.field == field


async def test_what_has_not_changed_is_not_sent_again(stored: Bench, site: Site) -> None:
    async def page(request: web.Request) -> web.Response:
        if request.headers.get("If-None-Match") == '"v1"' and request.headers.get("If-Modified-Since"):
            return web.Response(status=304, headers={"ETag": '"v1"', "X-Round": "2"})
        headers = {
            "ETag": '"v1"',
            "Last-Modified": "Mon, 01 Jan 2029 00:00:00 GMT",
            "Content-Type": "text/x; charset=utf-8",
        }
        return web.Response(body=BYTES * 2000, headers=headers)

    url = site.on("/page", page)
    first = await stored.fetch(url)
    second = await stored.ended("fetch", {"url": f"{url}#again"}, dedupe=None)
    assert first.id != second.id
    assert first.result == second.result == BYTES * 2000
    meta = await stored.app.aresult_meta(second.id)
    assert meta is not None
    assert (meta["not_modified"], meta["content_type"], meta["size"]) == (True, "text/x; charset=utf-8", 512_000)
    assert (meta["charset"], meta["headers"]["x-round"]) == ("utf-8", "2")
    # What was deleted is not asked for by its mark; the next one has the content of its own job.
    await stored.app.adelete(first)
    third = await stored.ended("fetch", {"url": url}, dedupe=None)
    assert third.result == BYTES * 2000
    for job in (second, third):
        await stored.app.adelete(job)
    await stored.ended("fetch", {"url": url}, dedupe=None)
    sent = ["If-None-Match" in asked.headers for asked in site.asked("/page")]
    assert sent == [False, True, True, False]


async def test_other_headers_are_another_source(bench: Bench, site: Site) -> None:
    url = site.say("/page", (200, {"ETag": '"x"'}, b"content"))
    await bench.fetch(url)
    await bench.fetch(url, headers={"Accept-Language": "de"})
    await bench.ended("fetch", {"url": url, "headers": {"If-None-Match": '"mine"'}})
    assert [asked.headers.get("If-None-Match") for asked in site.asked("/page")] == [None, None, '"mine"']


async def test_a_running_fetch_is_stopped_and_gone_when_it_is_deleted(stored: Bench, site: Site) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop.call_soon_threadsafe(begun.set)
        await reader.read()
        loop.call_soon_threadsafe(ended.set)

    app, url = stored.app, site.raw(hold)
    job = await app.asubmit("fetch", {"url": url})
    await asyncio.wait_for(begun.wait(), 30)
    await app.adelete(job)
    await asyncio.wait_for(ended.wait(), 30)

    async def gone() -> bool:
        return await app.client.call(lambda store: store.get([job.id])) == [None]

    await until(gone, "the deleted job", 30)
    again = await app.asubmit("fetch", {"url": url}, hold=True)
    assert again.id != job.id
