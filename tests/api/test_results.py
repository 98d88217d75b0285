"""What a job left, over HTTP: result, output, attempts; and events as they happen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any
from uuid import UUID

import httpx
import pytest

from headway import Headway, Retry, current
from headway.api import streaming
from headway.api.content import safe_type
from headway.cli.following import follow
from headway.store.sql import SqlStore
from tests.api.conftest import Site
from tests.flow.waiting import until

BIG = "x" * 700_000


def make_app(url: str) -> Headway:
    app = Headway(url)

    @app.job(name="small")
    async def small() -> dict[str, int]:
        current().log.info("working on it")
        return {"answer": 42}

    @app.job(name="big")
    async def big() -> str:
        return BIG

    @app.job(name="flaky", retry=Retry(max_attempts=2, wait=0.01))
    async def flaky() -> str:
        current().log.info(f"this is attempt {current().attempt} ☃ ✓")
        if current().attempt == 1:
            raise ConnectionError("the far side did not answer")
        return "done"

    return app


@pytest.fixture
async def working(sites: Callable[[Headway], Any], store_url: str) -> AsyncIterator[Site]:
    """A service with a worker beside it."""
    app = make_app(store_url)
    site = await sites(app)
    async with app.worker():
        yield site


async def done(site: Site, function: str) -> str:
    """The id of a job of this function that has ended."""
    job = (await site.post("/jobs", {"kind": "call", "function": function})).json()
    ended = await site.get(f"/jobs/{job['id']}?wait=60")
    assert ended.json()["state"] == "completed", ended.text
    return str(job["id"])


async def test_a_result_is_handed_out_safely(working: Site) -> None:
    job = await done(working, "small")
    answer = await working.get(f"/jobs/{job}/result")
    assert answer.json() == {"answer": 42}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert (
        await working.get(f"/jobs/{job}/result", headers={"If-None-Match": answer.headers["etag"]})
    ).status_code == 304
    meta = (await working.get(f"/jobs/{job}/result/meta")).json()
    assert (meta["content_type"], meta["size"], meta["etag"]) == ("application/json", 13, answer.headers["etag"])
    waiting = await working.submit(delay=60)
    nothing = await working.get(f"/jobs/{waiting['id']}/result")
    assert (nothing.status_code, nothing.json()["code"]) == (404, "not_found")


async def test_parts_of_a_large_result_can_be_read(working: Site) -> None:
    job = await done(working, "big")
    whole = await working.get(f"/jobs/{job}/result")
    content = json.dumps(BIG).encode()
    assert whole.content == content
    path, size = f"/jobs/{job}/result", len(content)
    for asked, start, stop in (
        ("bytes=0-9", 0, 10),
        ("bytes=65530-65545", 65530, 65546),
        ("bytes=-5", size - 5, size),
        (f"bytes={size - 1}-", size - 1, size),
        ("bytes=699990-9999999", 699990, size),
    ):
        part = await working.get(path, headers={"Range": asked})
        assert (part.status_code, part.content) == (206, content[start:stop]), asked
        assert part.headers["content-range"] == f"bytes {start}-{stop - 1}/{size}"
    beyond = await working.get(path, headers={"Range": f"bytes={size}-"})
    assert (beyond.status_code, beyond.json()["code"]) == (416, "range_not_satisfiable")
    for other in ({"Range": "lines=1-2"}, {"Range": "bytes=0-9", "If-Range": '"another"'}, {"Range": "bytes=9-1"}):
        assert (await working.get(path, headers=other)).status_code == 200
    for odd in ("bytes=²-", f"bytes={'9' * 5000}-", "bytes=-" + "9" * 5000):
        answer = await working.get(path, headers=[(b"Range", odd.encode("latin-1"))])
        assert (answer.status_code, len(answer.content)) == (200, size), odd[:20]
    same = await working.get(path, headers={"Range": "bytes=0-9", "If-Range": whole.headers["etag"]})
    assert same.status_code == 206


async def test_output_and_attempts_are_kept(working: Site) -> None:
    job = await done(working, "flaky")
    output = await working.get(f"/jobs/{job}/output")
    assert "this is attempt 2 ☃ ✓" in output.text
    assert output.headers["content-type"] == "text/plain; charset=utf-8"
    assert "attempt 1" in (await working.get(f"/jobs/{job}/output?attempt=1")).text
    part = await working.get(f"/jobs/{job}/output", headers={"Range": "bytes=0-3"})
    assert part.content == output.content[:4]
    first, second = (await working.get(f"/jobs/{job}/attempts")).json()["items"]
    assert (first["outcome"], first["error"]["type"], second["outcome"]) == ("failed", "ConnectionError", "succeeded")
    assert (await working.get(f"/jobs/{job}/artifacts")).json() == {"items": [], "cursor": None}
    assert (await working.get(f"/jobs/{job}/why")).json()["reason"] == "ended"
    followed = [event async for event in events(await working.get(f"/jobs/{job}/output?follow=true&attempt=1"))]
    assert [name for name, _ in followed][-1] == "end"
    assert "attempt 1 ☃ ✓" in "".join(data["text"] for name, data in followed if name == "output")


def talker(url: str) -> tuple[Headway, asyncio.Event]:
    """An app with a function that has some words, and others when it may go on."""
    app, go_on = Headway(url), asyncio.Event()

    @app.job(name="talks")
    async def talks() -> None:
        current().log.info("first words")
        await go_on.wait()
        current().log.info("last words")

    return app, go_on


async def test_output_is_told_anew_when_its_attempt_goes_to_another_worker(
    sites: Callable[[Headway], Any], store_url: str
) -> None:
    app, go_on = talker(store_url)
    site, out = await sites(app), BytesIO()
    first = app.worker()
    await first.start()
    job = (await site.post("/jobs", {"kind": "call", "function": "talks"})).json()
    record = (await app.aget(UUID(job["id"]))).record
    following = asyncio.create_task(
        app.client.call(lambda store: follow(store, record, None, to_the_end=True, out=out))
    )
    heard: list[tuple[str, str]] = []
    async with site.client.stream("GET", f"/api/v1/jobs/{job['id']}/output?follow=true") as stream:
        told = events(stream)
        name, _ = await anext(told)
        heard.append((name, ""))
        await until(lambda: b"first words" in out.getvalue(), "the first words")
        now = await site.get(f"/jobs/{job['id']}/output")
        assert "first words" in now.text
        assert "content-length" not in now.headers, "of what it writes, some may be taken out while it is sent"
        await first.stop(grace=0)
        go_on.set()
        async with app.worker():
            heard += [(name, data.get("text", "")) async for name, data in told]
            await following
    assert [name for name, _ in heard][:3] == ["output", "again", "output"]
    text = "".join(text for _, text in heard)
    assert "first words" in text
    assert "last words" in text
    assert heard[-1][0] == "end"
    assert out.getvalue().count(b"first words") == 2
    assert b"last words" in out.getvalue()


async def test_output_is_told_while_it_is_written(sites: Callable[[Headway], Any], store_url: str) -> None:
    app, go_on = talker(store_url)
    site = await sites(app)
    async with app.worker():
        job = (await site.post("/jobs", {"kind": "call", "function": "talks"})).json()
        heard = []
        async with site.client.stream("GET", f"/api/v1/jobs/{job['id']}/output?follow=true") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            async for _, data in events(stream):
                heard.append(data.get("text", data.get("state")))
                if "first words" in heard[-1]:
                    go_on.set()
    assert "last words" in "".join(heard)
    assert heard[-1] == "completed"


async def test_output_that_begins_while_a_follower_looks_is_told_once(
    sites: Callable[[Headway], Any], store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, go_on = talker(store_url)
    site, out, look = await sites(app), BytesIO(), SqlStore.get
    job = (await site.post("/jobs", {"kind": "call", "function": "talks"})).json()
    record = (await app.aget(UUID(job["id"]))).record

    held: list[UUID] = []

    async def late(store: SqlStore, job_ids: Sequence[UUID]) -> Any:
        """As it was before the job began, told when its first output is there."""
        found = await look(store, job_ids)
        if found[0] and found[0].attempt == 0:
            held.append(found[0].id)
            while not await store.chunks(record.id, 1):
                await asyncio.sleep(0.01)
        return found

    async with site.client.stream("GET", f"/api/v1/jobs/{job['id']}/output?follow=true") as stream:
        monkeypatch.setattr(SqlStore, "get", late)
        following = asyncio.create_task(
            app.client.call(lambda store: follow(store, record, None, to_the_end=True, out=out))
        )
        await until(lambda: len(held) == 2, "both to look")
        async with app.worker():
            told = events(stream)
            heard = [await anext(told)]
            await until(lambda: b"first words" in out.getvalue(), "the first words")
            go_on.set()
            heard += [each async for each in told]
            await following
    assert "again" not in [name for name, _ in heard]
    assert out.getvalue().count(b"first words") == 1


async def test_events_tell_what_becomes_of_jobs(working: Site) -> None:
    async with listening(working, "name=small&state=running,completed") as told:
        other = await done(working, "flaky")
        job = await done(working, "small")
        seen = [await told(), await told()]
    assert [(name, data["job_id"], data["state"]) for name, data in seen] == [
        ("job.running", job, "running"),
        ("job.completed", job, "completed"),
    ]
    assert other not in {data["job_id"] for _, data in seen}
    assert (await working.get("/events?state=flying")).status_code == 422


async def test_a_stream_of_one_job_tells_of_no_other(working: Site) -> None:
    job = await working.submit(delay=3600)
    async with listening(working, f"job={job['id']}") as told:
        await done(working, "small")
        await working.post(f"/jobs/{job['id']}/cancel")
        name, data = await told()
        assert (name, data["job_id"]) == ("job.cancelled", job["id"])
        await working.ask("DELETE", f"/jobs/{job['id']}")
        assert (await told())[0] == "job.deleted"


async def test_streams_and_long_polls_end_when_the_service_does(memory_site: Site) -> None:
    job = await memory_site.submit(delay=3600)
    polling = asyncio.ensure_future(memory_site.get(f"/jobs/{job['id']}?wait=60"))
    async with listening(memory_site, "") as told:
        # Whoever polls is heard by the service before it stops.
        await until(lambda: memory_site.api.service.waiting == 2, "both to wait")
        await asyncio.wait_for(memory_site.api.stop(), 30)
        assert (await polling).json()["state"] == "scheduled"
        assert await told() is None


async def test_a_stream_of_output_goes_on_where_the_last_one_ended(working: Site) -> None:
    job = await done(working, "flaky")
    path = f"/api/v1/jobs/{job}/output?follow=true"

    async def read(headers: Any) -> list[tuple[str, str]]:
        async with working.client.stream("GET", path, headers=headers, timeout=60) as stream:
            found = [line async for line in stream.aiter_lines()]
        ids = [line.removeprefix("id: ") for line in found if line.startswith("id: ")]
        texts = [json.loads(line.removeprefix("data: ")).get("text") for line in found if line.startswith("data: ")]
        return list(zip(ids, texts, strict=False))

    whole = await read({})
    assert whole
    for index, (event_id, _) in enumerate(whole):
        assert await read({"Last-Event-ID": event_id}) == whole[index + 1 :]
    for odd in ("²:1", "9" * 5000 + ":1", "x"):
        assert await read([(b"Last-Event-ID", odd.encode("latin-1"))]) == whole


async def test_streams_followers_and_long_polls_are_counted_together(
    memory_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "MOST", 3)
    job = await memory_site.submit(delay=3600)
    path = f"/jobs/{job['id']}"
    polling = asyncio.ensure_future(memory_site.get(f"{path}?wait=60"))
    following = memory_site.client.stream("GET", f"/api/v1{path}/output?follow=true", timeout=90)
    async with listening(memory_site, ""), following:
        await until(lambda: memory_site.api.service.waiting == 3, "all to wait")
        for crowded in ("/events", f"{path}/output?follow=true", f"{path}?wait=1"):
            answer = await memory_site.get(crowded)
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "5"), crowded
        assert (await memory_site.get(path)).status_code == 200
        await memory_site.post(f"{path}/cancel")
        assert (await polling).json()["state"] == "cancelled"
    await until(lambda: memory_site.api.service.waiting == 0, "all to have left")


def test_what_a_browser_could_run_is_plain_text() -> None:
    for content_type in ("text/javascript", "application/x-javascript; charset=utf-8", "application/wasm"):
        assert safe_type(content_type) == "text/plain; charset=utf-8"
    assert safe_type("text/html; charset=iso-8859-1") == "text/html; charset=iso-8859-1"
    assert safe_type("image/png") == "image/png"
    assert safe_type("evil\r\nSet-Cookie: x") == "application/octet-stream"


async def events(stream: httpx.Response) -> AsyncIterator[tuple[str, Any]]:
    """The events of a stream, by name, with their data."""
    name = ""
    async for line in stream.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@asynccontextmanager
async def listening(site: Site, query: str) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """What `/events` tells, from now on; None at its end."""
    queue: asyncio.Queue[Any] = asyncio.Queue()

    async def listen(stream: httpx.Response) -> None:
        async for name, data in events(stream):
            if name != "missed":
                await queue.put((name, data))
        await queue.put(None)

    async def next_one() -> Any:
        return await asyncio.wait_for(queue.get(), 60)

    async with site.client.stream("GET", f"/api/v1/events?{query}", timeout=90) as stream:
        task = asyncio.ensure_future(listen(stream))
        yield next_one
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
