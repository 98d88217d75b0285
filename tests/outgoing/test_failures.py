"""What goes wrong between us and a server, and whether it is tried again."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web

from headway import Job, Retry, Rule
from headway.clock import FakeClock
from headway.executors.contract import Context, Failed, Setup
from headway.executors.http.executor import HttpExecutor
from headway.model.job import Claim
from headway.model.states import Outcome, State
from headway.outgoing.messages import Answer
from tests.outgoing.conftest import ONCE, Bench, read_body, result_of
from tests.outgoing.site import Site, packed, reset

OK: tuple[int, dict[str, str], bytes] = (200, {}, b"at last")


def error_of(job: Job) -> str:
    assert job.error is not None
    return job.error.type


async def test_a_server_in_trouble_is_asked_again_and_can_tell_the_repeats(stored: Bench, site: Site) -> None:
    url = site.say("/trouble", (503, {}, b"soon"), (500, {}, b"sorry"), OK)
    job = await stored.http(url)
    assert (job.state, job.attempt, result_of(job)["body"]) == (State.COMPLETED, 3, "at last")
    assert {asked.headers["Idempotency-Key"] for asked in site.asked("/trouble")} == {str(job.id)}
    attempts = await stored.app.client.call(lambda store: store.attempts(job.id))
    details = [attempt.error.details for attempt in attempts if attempt.error is not None]
    told = [(each["status"], each["body"], "total" in each["timings"]) for each in details if each]
    assert told == [(503, "soon", True), (500, "sorry", True)]


@pytest.mark.parametrize(("status", "attempts"), [(400, 1), (404, 1), (422, 1), (301, 1), (429, 3), (502, 3)])
async def test_which_statuses_are_tried_again(bench: Bench, site: Site, status: int, attempts: int) -> None:
    url = site.say("/no", (status, {}, b"no"))
    job = await bench.http(url)
    assert (job.state, job.outcome, job.attempt) == (State.FAILED, Outcome.FAILED, attempts)
    assert len(site.asked("/no")) == attempts
    assert job.error is not None
    assert job.error.details is not None
    assert (job.error.type, job.error.details["status"], job.error.details["body"]) == ("Refused", status, "no")


async def test_a_rule_of_the_job_decides_before_ours(bench: Bench, site: Site) -> None:
    url = site.say("/late", (404, {}, b""), OK)
    again = Retry(max_attempts=3, rules=(Rule(on="status", match="404", then=0.01),))
    assert (await bench.ended("http", {"callback_url": url}, retry=again)).attempt == 2
    url = site.say("/never", (500, {}, b""))
    not_again = Retry(max_attempts=3, rules=(Rule(on="status", match="500-599"),))
    assert (await bench.ended("http", {"callback_url": url}, retry=not_again)).attempt == 1


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("120", 120),
        (format_datetime(FakeClock().now() + timedelta(seconds=90), usegmt=True), 90),
        (format_datetime(datetime(2000, 1, 1, tzinfo=UTC), usegmt=True), 0),
        ("99999999", 86_400),
        ("soon", 0),
    ],
)
async def test_retry_after_is_honoured(site: Site, header: str, wait: float) -> None:
    job = await read_body({"kind": "http", "callback_url": site.say("/busy", (429, {"Retry-After": header}, b""))})
    claim = Claim(job.id, 1, "http", job.name, job.payload, 1, 0, 0, None, None, None, None, job.id, "default")
    executor = HttpExecutor(Setup(clock=FakeClock()))
    ending = await executor.submit(claim, Context(claim, timeout=30, emit=lambda news: None))
    await executor.close()
    assert isinstance(ending, Failed)
    assert (ending.permanent, ending.not_before) == (False, wait)


async def test_a_job_waits_for_as_long_as_the_server_asked(bench: Bench, site: Site) -> None:
    url = site.say("/busy", (429, {"Retry-After": "1000"}, b""))
    job = await bench.app.asubmit("http", {"callback_url": url}, retry=Retry(max_attempts=2, wait=0))
    while (job := await bench.app.aget(job.id)).attempt == 0 or job.state is not State.SCHEDULED:
        await asyncio.sleep(0.01)
    now = await bench.app.client.call(lambda store: store.now())
    assert 900 < (job.run_at - now).total_seconds() <= 1000


async def test_connections_that_fail_are_tried_again(bench: Bench, site: Site) -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of it")
        await writer.drain()
        reset(writer)

    async def hung_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
        await writer.drain()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    for url in (site.raw(broken), site.raw(hung_up), site.raw(silent), nobody):
        job = await bench.http(url)
        assert (error_of(job), job.attempt) == ("ConnectionFailed", 3)
    rule = Retry(max_attempts=3, wait=0.01, rules=(Rule(on="exception", match="ConnectionError"),))
    assert (await bench.ended("http", {"callback_url": nobody}, retry=rule)).attempt == 1


async def test_a_name_that_nobody_knows_is_a_failed_connection(bench: Bench) -> None:
    job = await bench.http("http://no-such-host.invalid/")
    assert (error_of(job), job.attempt) == ("ConnectionFailed", 3)


async def test_a_server_that_accepts_no_connection_is_given_up_after_the_connect_timeout(bench: Bench) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(8)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        body = {"callback_url": f"http://127.0.0.1:{full.getsockname()[1]}/", "connect_timeout": 0.2}
        job = await bench.ended("http", body, retry=ONCE)
        for filler in fillers:
            filler.close()
    assert error_of(job) == "RequestTimedOut"


async def test_what_is_no_http_is_told_so(bench: Bench, site: Site) -> None:
    async def prose(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"good day to you\r\n\r\n")
        await writer.drain()

    async def wide(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX-Wide: ")
        for _ in range(1000):
            writer.write(b"x" * 10_000)
            await writer.drain()

    for url in (site.raw(prose), site.raw(wide)):
        assert error_of(await bench.http(url)) == "BrokenResponse"


async def test_content_that_can_not_be_unpacked_is_told_so(bench: Bench, site: Site) -> None:
    status, headers, body = packed("gzip", b"hello " * 1000)
    cut = site.say("/cut", (status, headers, body[:-20]))
    wrong = site.say("/wrong", (status, headers, b"not gzip at all"))
    for url in (cut, wrong):
        assert error_of(await bench.fetch(url)) == "BrokenResponse"


async def test_an_endless_answer_ends_at_the_limit(bench: Bench, site: Site) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"and on " * 10_000)
        except ConnectionError:
            return response

    url = site.on("/endless", endless)
    kept = result_of(await bench.http(url))
    assert (kept["truncated"], len(kept["body"])) == (True, 64 * 1024)
    job = await bench.fetch(url, max_size=1_000_000)
    assert (error_of(job), job.attempt) == ("ResponseTooLarge", 1)


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate"])
async def test_a_bomb_is_not_unpacked_beyond_the_limit(bench: Bench, site: Site, encoding: str) -> None:
    url = site.say("/bomb", packed(encoding, b"\0" * 20_000_000))
    job = await bench.fetch(url, max_size=1_000_000)
    assert error_of(job) == "ResponseTooLarge"


async def test_a_cancelled_request_is_broken_off(bench: Bench, site: Site) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop.call_soon_threadsafe(begun.set)
        await reader.read()
        loop.call_soon_threadsafe(ended.set)

    job = await bench.app.asubmit("http", {"callback_url": site.raw(hold)})
    await asyncio.wait_for(begun.wait(), 30)
    await bench.app.acancel(job.id)
    assert (await bench.app.await_ended(job.id, 30)).state is State.CANCELLED
    await asyncio.wait_for(ended.wait(), 30)


@pytest.mark.parametrize("odd", ["²", "٣", "9" * 5000, "Fri, 31 Dec 9999 23:59:59 -1400"])
def test_a_retry_after_that_is_odd_is_no_error(odd: str) -> None:
    answer = Answer(status=503, reason="", headers={"retry-after": odd}, url="http://x/", redirects=0)
    assert 0 <= answer.retry_after(datetime(2030, 1, 1, tzinfo=UTC)) <= 24 * 3600
