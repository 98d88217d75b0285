"""Callbacks: many to a slow endpoint at once, and short ones as fast as they go, beside the bare client."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import cast

import aiohttp

from headway.app import Headway
from headway.bench.app import ANSWERS, QUEUE
from headway.bench.child import Parent, Stopwatch, clock
from headway.bench.children import BenchFailed, Child, play
from headway.bench.report import Line
from headway.bench.stage import Stage
from headway.clock import sleep
from headway.outgoing.guard import ALLOW_PRIVATE
from headway.serve import tune_process

HOST = "127.0.0.1"
SLOW = 1.0
IN_FLIGHT = 100
LOOK_EVERY = 0.01
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"


async def callbacks(stage: Stage) -> list[Line]:
    """One worker, as `headway up` starts it."""
    sizes = stage.sizes
    waits: list[float] = []
    ours: list[dict[str, float]] = []
    bare: list[dict[str, float]] = []
    async with _endpoint() as base:
        for _ in range(sizes.repeat):
            stage.step(f"{sizes.waiting:,} callbacks that take {SLOW:g} s")
            waits.append((await _ours(stage, f"{base}/slow", sizes.waiting))["seconds"] * 1000)
            stage.step(f"{sizes.callbacks:,} short callbacks")
            ours.append(await _ours(stage, f"{base}/quick", sizes.callbacks))
            stage.step("the same, bare aiohttp")
            bare.append(await play("callbacks.bare", url=f"{base}/quick", count=sizes.callbacks))
    return [
        Line(
            what=f"{sizes.waiting:,} callbacks to a {SLOW:g}-second endpoint, one worker", unit="ms", runs=tuple(waits)
        ).aiming(at_most=3000.0),
        Line(
            what="short callbacks, one worker",
            unit="jobs/s",
            runs=tuple(sizes.callbacks / used["seconds"] for used in ours),
            ceiling_runs=tuple(sizes.callbacks / used["seconds"] for used in bare),
            note="the ceiling is bare aiohttp, without a store",
        ).aiming(share=0.5),
        Line(
            what="  CPU per callback",
            unit="µs",
            runs=tuple(used["cpu"] / sizes.callbacks * 1e6 for used in ours),
            ceiling_runs=tuple(used["cpu"] / sizes.callbacks * 1e6 for used in bare),
        ),
    ]


@asynccontextmanager
async def _endpoint() -> AsyncIterator[str]:
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    async with Child("callbacks.endpoint", port=port) as server:
        await server.ready()
        try:
            yield f"http://{HOST}:{port}"
        finally:
            await server.tell("stop")
            await server.result()


async def _ours(stage: Stage, target: str, count: int) -> dict[str, float]:
    async with stage.store() as url:
        await play("callbacks.load", url=url, target=target, count=count)
        used: dict[str, float] = await play("callbacks.send", url=url, count=count)
        if await stage.site.completed(url) != count:
            raise BenchFailed(f"not all of {count:,} callbacks have been answered")
        return used


# Roles


class _Conversation(asyncio.Protocol):
    """Answers each request with the same, at once or later; it reads no more of one than it must."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._came = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of a class of their own.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, end, _ = self._came.partition(b"\r\n\r\n")
        if not end:
            return
        self._came = b""
        slow = head.startswith(b"POST /slow")
        if slow:
            asyncio.get_running_loop().call_later(SLOW, self._answer)
        else:
            self._answer()

    def _answer(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(ANSWER)


async def endpoint(parent: Parent, *, port: int) -> None:
    """A server that is no bottleneck."""
    server = await asyncio.get_running_loop().create_server(_Conversation, HOST, port, backlog=4096)
    await parent.go()
    server.close()


async def load(_parent: Parent, *, url: str, target: str, count: int) -> None:
    """So many due callbacks."""
    app = Headway(url)
    for start in range(0, count, 1000):
        numbers = range(start, min(start + 1000, count))
        await asyncio.gather(
            *(app.asubmit("http", {"callback_url": f"{target}?{number}"}, queue=QUEUE) for number in numbers)
        )
    await asyncio.to_thread(app.close)


async def send(_parent: Parent, *, url: str, count: int) -> dict[str, float]:
    """A worker that sends all of them, in a process like that of `headway worker`. It serves another queue before: the
    bare client has its library, too, before it begins."""
    os.environ[ALLOW_PRIVATE] = HOST
    import_module("headway.outgoing.client")
    worker = Headway(url).worker(queues=[ANSWERS])
    await worker.start()
    assert worker.worker is not None
    tune_process()
    watch = Stopwatch()
    worker.start_queue(QUEUE)
    while worker.worker.ended < count:
        await sleep(clock, LOOK_EVERY)
    used = watch.read()
    await worker.stop()
    return used


async def bare(_parent: Parent, *, url: str, count: int) -> dict[str, float]:
    """The same requests by aiohttp alone."""
    supply = iter(range(count))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def sender() -> None:
            for number in supply:
                async with session.post(f"{url}?{number}") as response:
                    await response.read()

        watch = Stopwatch()
        await asyncio.gather(*(sender() for _ in range(IN_FLIGHT)))
        return watch.read()
