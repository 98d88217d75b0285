"""What the API costs: submits beside the bare framework, batches, and looks at a million jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import msgspec

from headway.access.trail import entry
from headway.bench.app import ANSWERS, NOOP, Bench
from headway.bench.asking import ask, rate
from headway.bench.child import Parent, Stopwatch, clock
from headway.bench.children import Child, play
from headway.bench.report import Line, percentile
from headway.bench.server import free_port
from headway.bench.stage import Stage
from headway.model.access import Caller, Fingerprint, Role, Token
from headway.model.errors import NameTaken
from headway.store.contract import Store

CONNECTIONS = 64
BATCH = 1000
TOKEN = "bench"  # noqa: S105 - of a service that lives for seconds, on loopback
JOB = msgspec.json.encode({"kind": "call", "function": NOOP, "kwargs": {"number": 1}})
SCHEDULE = "018f0000-0000-7000-8000-000000000000"
SPACING = 0.25
"""Seconds between the jobs of `fill_mixed`; in their middle there is a gap of ten minutes."""


def filters(jobs: int) -> dict[str, str]:
    """What is asked for: of each condition what many jobs match, what ten do, and what none does."""
    middle = clock.now() - timedelta(seconds=jobs / 2 * SPACING)

    def frame(time: str, hours: float, length: float) -> str:
        since = middle - timedelta(hours=hours)
        until = since + timedelta(hours=length)
        return f"&time={time}&from={quote(since.isoformat())}&to={quote(until.isoformat())}"

    times = {
        f"{time}, {what}": frame(time, *hours)
        for time in ("created", "run", "finished")
        for what, hours in {"an hour": (5.0, 1.0), "a minute": (5.0, 1 / 60), "none": (0.1, 0.02)}.items()
    }
    return {
        "no filter": "",
        "state": "&state=failed",
        "state, rare": "&state=cancelled",
        "state, none": "&state=running",
        "kind": "&kind=http",
        "kind, rare": "&kind=script",
        "queue": "&queue=queue-7",
        "queue, rare": "&queue=aside",
        "queue, none": "&queue=nowhere",
        "name": "&name=job.42",
        "name, rare": "&name=seldom",
        "name, none": "&name=never",
        "name prefix": "&name=job.4*",
        "name prefix, rare": "&name=sel*",
        "name prefix, none": "&name=nev*",
        "schedule, rare": f"&schedule={SCHEDULE}",
        "schedule, none": f"&schedule={SCHEDULE[:-1]}1",
        **times,
        "error": f"&error={quote('far side')}",
        "tags": "&tags=tag-3",
        "created_by": "&created_by=token:3",
        "state and name, none": "&state=failed&name=job.42",
        "state and queue, none": "&state=failed&queue=queue-7",
        "queue, kind and name, none": "&queue=queue-2&kind=http&name=job.41",
        "all at once": "&state=completed&queue=queue-2&name=job.*&created_by=token:2"
        "&time=run&from=2020-01-01T00:00:00Z",
    }


async def api(stage: Stage) -> list[Line]:
    """Submits, batches, reads, lists."""
    sizes = stage.sizes
    submits, batches = await _submits(stage), await _batches(stage)
    stage.step("GET /jobs/{id}, 304 and /result")
    async with stage.store() as url, _serving("service.ours", url=url) as address:
        reads = await _reads(url, address, sizes.concurrent // 5)
    async with stage.store() as url:
        stage.step(f"{sizes.beside:,} jobs")
        await stage.site.fill(url, "fill_mixed", sizes.beside)
        stage.step("GET /jobs?limit=50, each filter")
        async with _serving("service.ours", url=url) as address:
            lists = [line for asked in filters(sizes.beside).items() for line in await _list(address, *asked, sizes)]
    return [*submits, *batches, *reads, *lists]


async def _submits(stage: Stage) -> list[Line]:
    """One by one, in turn with the same framework without a store."""
    ours, bare = [], []
    for _ in range(stage.sizes.repeat):
        stage.step(f"POST /jobs over {CONNECTIONS} connections")
        async with stage.store() as url:
            ours.append(await _posted("service.ours", stage.sizes.concurrent // 5, url=url))
        stage.step("the same framework without a store")
        bare.append(await _posted("service.bare", stage.sizes.concurrent // 5))
    rates = Line(
        what=f"POST /jobs, {CONNECTIONS} connections",
        unit="requests/s",
        runs=tuple(rate for rate, _ in ours),
        ceiling_runs=tuple(rate for rate, _ in bare),
        note="beside the same framework without a store",
    )
    cpu = Line(
        what="  CPU of the service per POST /jobs",
        unit="µs",
        runs=tuple(cpu for _, cpu in ours),
        ceiling_runs=tuple(cpu for _, cpu in bare),
    )
    return [rates.aiming(share=0.6), cpu]


async def _posted(role: str, count: int, **spec: str) -> tuple[float, float]:
    """Requests a second, and the microseconds of CPU that each took in the service."""
    port, count = free_port(), max(count // CONNECTIONS, 1) * CONNECTIONS
    async with Child(role, port=port, **spec) as child:
        await child.ready()
        reached = await rate(port, _post("/api/v1/jobs", JOB), count, CONNECTIONS)
        await child.tell()
        return reached, (await child.result())["cpu"] / count * 1e6


async def _batches(stage: Stage) -> list[Line]:
    """A thousand at a time, in turn with the library's own `submit_many`."""
    jobs = _post("/api/v1/jobs/batch", b'{"jobs": [' + b",".join([JOB] * BATCH) + b"]}")
    count = max(stage.sizes.many // BATCH, 4)
    ours, library = [], []
    for _ in range(stage.sizes.repeat):
        stage.step(f"POST /jobs/batch of {BATCH:,}")
        async with stage.store() as url, _serving("service.ours", url=url) as address:
            ours.append(BATCH * await rate(address, jobs, count, 4))
        stage.step("the same by the library")
        async with stage.store() as url, Child("ours.many", url=url, count=count * BATCH, batch=BATCH) as child:
            await child.ready()
            await child.tell()
            library.append(count * BATCH / (await child.result())["seconds"])
    line = Line(
        what=f"POST /jobs/batch of {BATCH:,}",
        unit="jobs/s",
        runs=tuple(ours),
        ceiling_runs=tuple(library),
        note="beside the library's submit_many",
    )
    return [line.aiming(at_least=20_000)]


async def ours(parent: Parent, url: str, port: int) -> dict[str, float]:
    """The API alone, as `headway api` runs it."""
    from headway.api.process import AppApi
    from headway.serve import tune_process

    app = Bench(url).app
    async with AppApi(app, port=port):
        await app.client.call_patiently(_let_in)
        tune_process()
        watch = Stopwatch()
        await parent.go()
        used = watch.read()
    await app.aclose()
    return used


async def _let_in(store: Store) -> None:
    """The one who measures has a token like everybody else."""
    line = entry(Caller("bench"), "tokens.create", "tokens/bench")
    with suppress(NameTaken):
        await store.create_token(Token(name="bench", role=Role.ADMIN), Fingerprint.of(TOKEN), line)


async def answered(_parent: Parent, url: str) -> str:
    """A job that has ended with a result."""
    bench = Bench(url)
    async with bench.app.worker(queues=[ANSWERS]):
        job = await (await bench.echo.asubmit(1)).finished(timeout=60)
    await bench.app.aclose()
    return str(job.id)


async def bare(parent: Parent, port: int) -> dict[str, float]:
    """The same framework and server, which read a body and answer with a job, and do nothing."""
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route, Router

    from headway.api.examples import JOB as SHOWN
    from headway.api.server import ApiServer
    from headway.serve import tune_process

    async def answer(request: Request) -> Response:
        msgspec.json.decode(await request.body())
        return Response(msgspec.json.encode(SHOWN), 201, media_type="application/json")

    server = ApiServer(Router([Route("/api/v1/jobs", answer, methods=["POST"])]), "127.0.0.1", port)
    await server.start()
    tune_process()
    watch = Stopwatch()
    await parent.go()
    used = watch.read()
    await server.stop()
    return used


@asynccontextmanager
async def _serving(role: str, **spec: Any) -> AsyncIterator[int]:
    """A service in a process of its own; its port."""
    port = free_port()
    async with Child(role, port=port, **spec) as child:
        await child.ready()
        yield port
        await child.tell()
        await child.result()


def _post(path: str, body: bytes) -> bytes:
    return _request("POST", path, f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n") + body


def _request(method: str, path: str, headers: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n".encode()


async def _reads(url: str, port: int, count: int) -> list[Line]:
    """One job, again and again; and the answer that nothing has changed."""
    job = msgspec.json.decode(await ask(port, [_post("/api/v1/jobs", JOB)]))
    path = f"/api/v1/jobs/{job['id']}"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_request("GET", path))
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    tag = head.decode().lower().partition("etag: ")[2].partition("\r\n")[0]
    plain = await rate(port, _request("GET", path), count, CONNECTIONS)
    same = await rate(port, _request("GET", path, f"If-None-Match: {tag}\r\n"), count, CONNECTIONS)
    ended = f"/api/v1/jobs/{await play('service.answered', url=url)}/result"
    result = await rate(port, _request("GET", ended), count, CONNECTIONS)
    return [
        Line(what="GET /jobs/{id}", unit="requests/s", runs=(plain,)),
        Line(what="GET /jobs/{id}, 304", unit="requests/s", runs=(same,)),
        Line(what="GET /jobs/{id}/result", unit="requests/s", runs=(result,)),
    ]


async def _list(port: int, name: str, query: str, sizes: Any) -> list[Line]:
    took: list[float] = []
    request = _request("GET", f"/api/v1/jobs?limit=50{query}")
    await ask(port, [request] * max(sizes.latency // 4, 10), took)
    what = f"GET /jobs?limit=50, {name}"
    return [
        Line(what=f"{what}, p50", unit="ms", runs=(percentile(took, 50),)),
        Line(what=f"{what}, p99", unit="ms", runs=(percentile(took, 99),)).aiming(at_most=20.0),
    ]
