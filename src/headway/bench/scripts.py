"""Scripts on a server of our own: how many short ones a second, beside bare asyncssh; how soon output is seen."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from typing import Any

import asyncssh
import msgspec
from uuid_utils.compat import uuid7

from headway.app import Headway
from headway.bench.child import Parent, Stopwatch, clock
from headway.bench.children import BenchFailed, Child, play
from headway.bench.report import Line, percentile
from headway.bench.server import free_port
from headway.bench.sshd import PrivateSshd
from headway.bench.stage import Stage
from headway.clock import sleep
from headway.model.errors import ConfigurationError
from headway.model.sealed import Credential
from headway.model.target import Target
from headway.serve import tune_process

SCRIPT = "echo hello"
SESSIONS = 6
"""As many as bare asyncssh can have open at a time, with those that the server is about to close."""
LOOK_EVERY = 0.005
PAUSE = 0.05
"""Seconds between two lines that a script prints."""
SOON = 200.0
"""Milliseconds within which a reader is to have a line."""
DATA = "HEADWAY_DATA"
TOKEN = "bench"  # noqa: S105 - of a service that lives for seconds, on loopback


async def scripts(stage: Stage) -> list[Line]:
    """One target, one worker as `headway worker` starts it, connections that are kept."""
    try:
        server = PrivateSshd()
    except ConfigurationError as error:
        stage.step("no OpenSSH server")
        return [Line(what="short scripts", unit="jobs/s", runs=(0.0,), note=f"not measured: {error}")]
    with server, tempfile.TemporaryDirectory(prefix="headway-bench-") as data:
        place = _place(server)
        return [await _short(stage, place, data), *await _live(stage, place, data)]


async def _short(stage: Stage, place: dict[str, Any], data: str) -> Line:
    ours, bare = [], []
    count = stage.sizes.scripts
    for _ in range(stage.sizes.repeat):
        stage.step(f"{count:,} short scripts")
        async with stage.store() as url:
            await play("scripts.load", url=url, data=data, place=place, count=count)
            ours.append(count / await play("scripts.run", url=url, data=data, count=count))
            if await stage.site.completed(url) != count:
                raise BenchFailed(f"not all of {count:,} scripts have completed")
        stage.step("the same, bare asyncssh")
        bare.append(count / await play("scripts.bare", place=place, count=count))
    line = Line(
        what="short scripts to one target, one worker",
        unit="jobs/s",
        runs=tuple(ours),
        ceiling_runs=tuple(bare),
        note="as a normal user, /bin/sh; the ceiling is bare asyncssh, a session for each",
    )
    return line.aiming(at_least=200.0) if line.value >= 200.0 else line.aiming(share=0.5)


async def _live(stage: Stage, place: dict[str, Any], data: str) -> list[Line]:
    count = max(stage.sizes.latency // 2, 10)
    stage.step(f"{count} lines, followed by the API")
    async with stage.store() as url:
        delays = await _followed(url, place, data, count)
    worst = f"{count} lines {PAUSE * 1000:.0f} ms apart; slowest {max(delays) * 1000:.0f} ms"
    what = "a printed line reaches a reader of the event stream"
    return [
        Line(what=f"{what}, p50", unit="ms", runs=(percentile(delays, 50),), note=worst).aiming(at_most=SOON),
        Line(what=f"{what}, p99", unit="ms", runs=(percentile(delays, 99),)).aiming(at_most=SOON),
    ]


async def _followed(url: str, place: dict[str, Any], data: str, count: int) -> list[float]:
    """Seconds between the printing of each line and its arrival."""
    port = free_port()
    async with Child("scripts.serve", url=url, data=data, place={**place, "api": port}, count=count) as service:
        await service.ready()
        await service.tell()
        job: str = await service.result()
        delays = [now - printed async for now, printed in _lines(port, job)]
        await service.tell("seen")
    if len(delays) != count:
        raise BenchFailed(f"{count} lines were printed, {len(delays)} have arrived")
    return delays


async def _lines(port: int, job: str) -> AsyncIterator[tuple[float, float]]:
    """When each line came, and when it was printed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = f"/api/v1/jobs/{job}/output?follow=true&stream=stdout"
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n".encode()
    )
    rest = ""
    while line := await reader.readline():
        now = clock.now().timestamp()
        if line.startswith(b"data: ") and b'"text"' in line:
            *whole, rest = (rest + msgspec.json.decode(line[6:])["text"]).split("\n")
            for printed in whole:
                yield now, float(printed)
    writer.close()
    await writer.wait_closed()


def _place(server: PrivateSshd) -> dict[str, Any]:
    return {
        "port": server.port,
        "user": server.user,
        "host_key": server.host_key,
        "key": server.key,
        "directory": str(server.runs),
    }


# Roles


@contextmanager
def _vault_in(data: str) -> Iterator[None]:
    """The vault's key lies there, and with it what all children of this measurement need."""
    os.environ[DATA] = data
    yield
    del os.environ[DATA]


@asynccontextmanager
async def _app(url: str, place: dict[str, Any] | None = None) -> AsyncIterator[Headway]:
    app = Headway(url)
    if place is not None:
        target = Target(
            id=uuid7(),
            name="box",
            host="127.0.0.1",
            port=place["port"],
            user=place["user"],
            host_key=place["host_key"],
            directory=place["directory"],
        )
        await app.vault.create_target(target, Credential(private_key=place["key"]), by="bench")
    yield app
    await app.aclose()


async def load(_parent: Parent, *, url: str, data: str, place: dict[str, Any], count: int) -> None:
    """So many due scripts."""
    with _vault_in(data):
        async with _app(url, place) as app:
            for start in range(0, count, 100):
                some = range(start, min(start + 100, count))
                await asyncio.gather(*(_submit(app, SCRIPT, f"script {number}") for number in some))


async def _submit(app: Headway, script: str, name: str) -> Any:
    return await app.asubmit("script", {"target": "box", "script": script, "probe": False}, name=name)


async def run(_parent: Parent, *, url: str, data: str, count: int) -> float:
    """Seconds that a worker takes for all of them, in a process like that of `headway worker`."""
    # The bare client has loaded its library too before it begins.
    import_module("headway.executors.script.executor")
    tune_process()
    with _vault_in(data):
        async with _app(url) as app:
            worker = app.worker()
            watch = Stopwatch()
            await worker.start()
            while worker.worker is not None and worker.worker.ended < count:
                await sleep(clock, LOOK_EVERY)
            took = watch.seconds
            await worker.stop()
    return took


async def bare(_parent: Parent, *, place: dict[str, Any], count: int) -> float:
    """The same by asyncssh alone, over one connection."""
    slots = asyncio.Semaphore(SESSIONS)
    pinned = asyncssh.import_public_key(place["host_key"])
    watch = Stopwatch()
    async with asyncssh.connect(
        "127.0.0.1",
        place["port"],
        username=place["user"],
        known_hosts=([pinned], [], []),
        client_keys=[asyncssh.import_private_key(place["key"])],
        config=None,
        agent_path=None,
    ) as connection:

        async def one() -> None:
            async with slots:
                while True:
                    try:
                        done = await connection.run("/bin/sh", input=f"{SCRIPT}\n")
                    except asyncssh.ChannelOpenError:
                        # The server counts sessions that are about to close.
                        await sleep(clock, LOOK_EVERY)
                        continue
                    if done.stdout != "hello\n":
                        raise BenchFailed(f"a script said {done.stdout!r}")
                    return

        await asyncio.gather(*(one() for _ in range(count)))
        return watch.seconds


async def serve(parent: Parent, *, url: str, data: str, place: dict[str, Any], count: int) -> str:
    """API and worker in one process, as `headway up` has them, while a script prints the time; the job's id first."""
    from headway.api.gate import TokenGate
    from headway.api.process import AppApi

    tune_process()
    script = f"i=0; while [ $i -lt {count} ]; do date +%s.%N; i=$((i + 1)); sleep {PAUSE}; done"
    with _vault_in(data):
        async with _app(url, place) as app, AppApi(app, TokenGate(TOKEN), port=place["api"]), app.worker():
            warm = await _submit(app, SCRIPT, "warm")
            await app.await_ended(warm.id, 60)
            await parent.go()
            job = await _submit(app, script, "live")
            parent.say(msgspec.json.encode(str(job.id)).decode())
            await app.await_ended(job.id, 600)
            # A service that stops ends its streams: the last line may still be on its way.
            await parent.hear()
    return str(job.id)
