"""A real worker process with nothing to do: what it takes all the same."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from headway.bench.children import BenchFailed
from headway.bench.report import Line
from headway.bench.stage import Stage
from headway.clock import SystemClock, sleep

SETTLE = 2.0
COUNTS_LAG = 11.0
"""A backend of PostgreSQL tells its counts after ten idle seconds at the latest."""

clock = SystemClock()


async def idle(stage: Stage) -> list[Line]:
    """A real worker process with nothing to do."""
    stage.step("an idle worker")
    async with stage.store() as url, _idle_worker(url) as pid:
        queries = await _queries(stage, url)
        memory = Line(what="memory of an idle worker", unit="MB", runs=(_resident(pid),)).aiming(at_most=60.0)
    return [memory] if queries is None else [memory, queries.aiming(at_most=2.0)]


async def _queries(stage: Stage, url: str) -> Line | None:
    """Transactions a second, without those of the start."""
    if await stage.site.transactions(url) is None:
        await sleep(clock, min(SETTLE, stage.sizes.idle))
        return None
    await sleep(clock, min(COUNTS_LAG, stage.sizes.idle))
    before, began = await stage.site.transactions(url), clock.monotonic()
    await sleep(clock, stage.sizes.idle)
    after, took = await stage.site.transactions(url), clock.monotonic() - began
    return Line(what="queries of an idle worker", unit="queries/s", runs=(((after or 0) - (before or 0)) / took,))


@asynccontextmanager
async def _idle_worker(url: str) -> AsyncIterator[int]:
    """`headway worker` as people run it; its process id."""
    command = ("-m", "headway", "worker", "--app", "headway.bench.served:app", "--queue", "bench")
    with tempfile.TemporaryFile() as complaints:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *(*command, "--log-level", "info", "--log-json"),
            env={**os.environ, "HEADWAY_STORE": url},
            stderr=asyncio.subprocess.PIPE,
            stdout=complaints,
        )
        assert process.stderr is not None
        try:
            while b"worker.started" not in (line := await process.stderr.readline()):
                if not line:
                    raise BenchFailed(f"`headway worker` did not start (status {await process.wait()})")
            yield process.pid
        finally:
            process.terminate()
            await process.communicate()


def _resident(pid: int) -> float:
    """Resident memory in MB (of a million bytes)."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return float("nan")
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024 / 1e6
