"""Room for what others send: never more than there is, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from aiohttp import web

from headway.clock import FakeClock
from headway.model.states import State
from headway.outgoing.hosts import Crowded
from headway.outgoing.room import PATIENCE, SMALL, Room, Share
from tests.outgoing.conftest import at_work
from tests.outgoing.site import Site

MEBIBYTE = 1024 * 1024


async def test_whoever_comes_first_goes_first() -> None:
    room, order = Room(10, FakeClock()), []

    async def take(amount: int) -> None:
        await room.take(amount)
        order.append(amount)

    await take(8)
    tasks = [asyncio.create_task(take(amount)) for amount in (5, 1, 10)]
    await asyncio.sleep(0)
    assert order == [8]
    room.give(8)
    await asyncio.gather(*tasks[:2])
    assert (order, room.free) == ([8, 5, 1], 4)
    room.give(6)
    await tasks[2]
    assert (order[-1], room.free) == (10, 0)


async def test_what_is_larger_than_the_room_gets_all_of_it() -> None:
    room = Room(10, FakeClock())
    assert (await room.take(1000), room.free) == (10, 0)


async def test_whoever_waits_too_long_goes_back_and_lets_others_pass() -> None:
    clock = FakeClock()
    room = Room(10, clock)
    await room.take(6)
    large = asyncio.create_task(room.take(10))
    await asyncio.sleep(0)
    small = asyncio.create_task(room.take(4))
    await asyncio.sleep(0)
    large.cancel()
    assert await small == 4
    with pytest.raises(asyncio.CancelledError):
        await large
    late = asyncio.create_task(room.take(1))
    await asyncio.sleep(0)
    clock.advance(PATIENCE)
    with pytest.raises(Crowded):
        await late
    room.give(10)
    assert room.free == 10


async def test_nothing_is_lost_whatever_is_cancelled_when() -> None:
    chance, room = Random(3), Room(100, FakeClock())

    async def visit(amount: int) -> None:
        share = Share(room)
        try:
            await share.hold(amount)
            assert room.free >= 0
            await asyncio.sleep(0)
            await share.hold(amount // 2)
        finally:
            share.let_go()

    tasks = [asyncio.create_task(visit(chance.randint(1, 150))) for _ in range(200)]
    for _ in range(100):
        await asyncio.sleep(0)
        chance.choice(tasks).cancel()
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert room.free == 100


async def test_many_large_fetches_at_once_are_never_all_in_memory(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_FETCH_MEMORY", str(4 * MEBIBYTE))
    rooms: set[Room] = set()
    left: list[int] = []
    taken = Room.take

    async def watched(room: Room, amount: int) -> int:
        given = await taken(room, amount)
        rooms.add(room)
        left.append(room.free)
        return given

    monkeypatch.setattr(Room, "take", watched)
    content = b"x" * MEBIBYTE
    url = site.on("/large", lambda _: _answer(content))
    packed = site.on("/chunks", lambda request: _in_chunks(request, content))
    async with at_work() as bench:
        urls = [f"{place}?{number}" for number in range(12) for place in (url, packed)]
        async with asyncio.timeout(200):
            jobs = await asyncio.gather(*(bench.fetch(one, max_size=2 * MEBIBYTE) for one in urls))
        assert [job.state for job in jobs] == [State.COMPLETED] * 24
        assert all(job.result == content for job in jobs)
        assert (await bench.fetch(site.say("/small", (200, {}, b"x" * SMALL)))).state is State.COMPLETED
    # What is small has taken nothing. A told length takes what it says, an untold one its limit, until it is recorded.
    assert len(left) == 24
    assert min(left) == 0
    assert [room.free for room in rooms] == [4 * MEBIBYTE]


async def _answer(content: bytes) -> web.Response:
    return web.Response(body=content)


async def _in_chunks(request: web.Request, content: bytes) -> web.StreamResponse:
    response = web.StreamResponse()
    response.enable_chunked_encoding()
    await response.prepare(request)
    await response.write(content)
    await response.write_eof()
    return response
