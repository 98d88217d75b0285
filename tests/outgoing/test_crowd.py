"""Many requests in one worker, and limits per host."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web

from headway import Headway
from headway.clock import FakeClock, SystemClock
from headway.model.errors import ConfigurationError
from headway.model.limits import Limit, Rate
from headway.model.states import State
from headway.outgoing.hosts import LEAST_AWAY, Crowded, Turnstile, parse_limits
from tests.outgoing.conftest import at_work
from tests.outgoing.site import Site

MANY = 1000


class Hall:
    """A handler that answers nobody before `size` are there."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.there = self.most = 0
        self._open: asyncio.Event | None = None

    async def __call__(self, request: web.Request) -> web.Response:
        self._open = self._open or asyncio.Event()
        self.there += 1
        self.most = max(self.most, self.there)
        if self.there >= self.size:
            self._open.set()
        await self._open.wait()
        self.there -= 1
        return web.Response(text="all there")


async def submit(app: Headway, url: str, count: int, **options: object) -> list[object]:
    bodies = ({"callback_url": f"{url}?{number}"} for number in range(count))
    return [(await app.asubmit("http", body, **options)).id for body in bodies]  # type: ignore[arg-type]


async def all_ended(app: Headway, count: int, patience: float = 90) -> None:
    """Without a question for each."""
    ends = time.monotonic() + patience
    while (await app.client.call(lambda store: store.counts())).get("default", {}).get(State.COMPLETED, 0) < count:
        assert time.monotonic() < ends, await app.client.call(lambda store: store.counts())
        await asyncio.sleep(0.05)


async def test_a_worker_has_a_thousand_requests_in_flight_beside_a_hundred_slots(site: Site) -> None:
    hall = Hall(MANY)
    async with at_work() as bench:
        await submit(bench.app, site.on("/hall", hall), MANY)
        await all_ended(bench.app, MANY)
    assert hall.most == MANY


async def test_who_gives_a_number_of_slots_gets_it_for_requests_too(site: Site) -> None:
    busy, most = 0, 0

    async def count(request: web.Request) -> web.Response:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0.02)
        busy -= 1
        return web.Response()

    async with at_work(queues={"default": 3}) as bench:
        await submit(bench.app, site.on("/count", count), 30)
        await all_ended(bench.app, 30)
    assert most == 3


async def test_functions_keep_to_their_slots_beside_requests(site: Site) -> None:
    app = Headway("sqlite://")
    running, most = 0, 0

    @app.job(name="work")
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1

    for number in range(150):
        await work.asubmit()
        await app.asubmit("http", {"callback_url": f"{site.url}/beside?{number}"})
    async with app.worker():
        await all_ended(app, 300)
    await app.aclose()
    assert most <= 100


async def test_a_slow_endpoint_does_not_delay_others(site: Site) -> None:
    slow = Hall(10_000)
    async with at_work(grace=0) as bench:
        await submit(bench.app, site.on("/slow", slow), 300)
        quick = await bench.app.asubmit("http", {"callback_url": f"{site.url}/quick"})
        assert (await bench.app.await_ended(quick.id, 60)).state is State.COMPLETED
        assert len(site.asked("/slow")) > 100
        assert slow.there == len(site.asked("/slow"))


def test_limits_are_read_and_wrong_ones_named() -> None:
    assert parse_limits(["A.example=5", "b.example=10/s", "*=5:100/m"]) == {
        "a.example": Limit(max_running=5),
        "b.example": Limit(rate=Rate(10, 1)),
        "*": Limit(max_running=5, rate=Rate(100, 60)),
    }
    for wrong in ("a.example", "a.example=", "a.example=x", "a.example=0", "a.example=5:0/s", "=5"):
        with pytest.raises(ConfigurationError, match="HEADWAY_HOST_LIMITS"):
            parse_limits([wrong])


async def test_no_more_than_its_limit_are_at_a_host_and_another_goes_its_own_way(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_HOST_LIMITS", "127.0.0.1=4")
    monkeypatch.setenv("HEADWAY_ALLOW_PRIVATE", "127.0.0.1,localhost")
    busy, most = 0, 0

    async def count(request: web.Request) -> web.Response:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0.02)
        busy -= 1
        return web.Response()

    async with at_work() as bench:
        ids = await submit(bench.app, site.on("/count", count), 40)
        other = await bench.app.asubmit("http", {"callback_url": f"http://localhost:{site.port}/other"})
        assert (await bench.app.await_ended(other.id, 60)).state is State.COMPLETED
        await all_ended(bench.app, 41)
        jobs = [await bench.app.aget(job_id) for job_id in ids]  # type: ignore[arg-type]
    assert most == 4
    assert {job.attempt for job in jobs} == {1}, "waiting for one's turn is no attempt"


async def test_a_rate_lets_only_so_many_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    turnstile = Turnstile(clock, {"a": Limit(rate=Rate(2, 10))})
    for _ in range(2):
        async with turnstile.turn("a"):
            pass
    with pytest.raises(Crowded) as first:
        async with turnstile.turn("a"):
            pass
    with pytest.raises(Crowded) as second:
        async with turnstile.turn("a"):
            pass
    assert second.value.delay > first.value.delay >= LEAST_AWAY
    clock.advance(5)
    async with turnstile.turn("a"), turnstile.turn("b"):
        pass
    with pytest.raises(Crowded):
        async with turnstile.turn("a"):
            pass


async def test_who_waits_at_a_full_host_is_next_and_one_too_many_is_sent_away() -> None:
    turnstile = Turnstile(SystemClock(), {"a": Limit(max_running=1)})
    order, inside, go = [], asyncio.Event(), asyncio.Event()

    async def visit(name: str) -> None:
        async with turnstile.turn("a"):
            order.append(name)
            inside.set()
            await go.wait()

    first = asyncio.create_task(visit("first"))
    await inside.wait()
    second = asyncio.create_task(visit("second"))
    await asyncio.sleep(0)
    with pytest.raises(Crowded):
        await visit("third")
    given_up = asyncio.create_task(visit("never"))
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    go.set()
    await asyncio.gather(first, given_up, return_exceptions=True)
    async with turnstile.turn("a"):
        order.append("last")
    assert order[0] == "first"
    assert order[-1] == "last"
    assert "third" not in order


async def test_jobs_of_all_kinds_share_a_host_s_limit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_HOST_LIMITS", "127.0.0.1=1")
    busy, most = 0, 0

    async def count(request: web.Request) -> web.Response:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0.02)
        busy -= 1
        return web.Response()

    url = site.on("/count", count)
    async with at_work() as bench:
        for number in range(5):
            await bench.app.asubmit("http", {"callback_url": f"{url}?{number}"})
            await bench.app.asubmit("fetch", {"url": f"{url}?{number}"})
        await all_ended(bench.app, 10)
    assert most == 1
