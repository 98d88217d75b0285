"""The measurements, each a few runs of Headway and of the bare driver in turn, so that noise meets both alike."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path

import msgspec

from headway.bench.callbacks import callbacks
from headway.bench.children import BenchFailed, Child, Counts, play
from headway.bench.dispatch import dispatch
from headway.bench.idle import idle
from headway.bench.report import Line, milliseconds, percentile
from headway.bench.schedules import schedules
from headway.bench.scripts import scripts
from headway.bench.service import api
from headway.bench.sizes import BATCH, CALLERS, CLAIM_ROWS, MANY, PER_SECOND, SLOTS, Sizes
from headway.bench.stage import Stage
from headway.clock import SystemClock, sleep

LOOK_EVERY = 0.005
WARM_UP = 5
"""Claims that come before those that count."""
PROBES = 20
PROBE_EVERY = 0.05

clock = SystemClock()


class Measure(msgspec.Struct, frozen=True):
    """One or several lines of the report."""

    name: str
    act: Callable[[Stage], Awaitable[list[Line]]]
    runs: Callable[[Sizes], int]


async def submits(stage: Stage) -> list[Line]:
    """One by one, many callers at once, in batches."""
    sizes = stage.sizes
    largest = max(sizes.single, sizes.concurrent, sizes.many)
    async with stage.store() as rows:
        stage.step("rows for the bare driver")
        await play("ours.load", url=rows, count=largest)
        single = await _submit(stage, rows, "single", count=sizes.single)
        concurrent = await _submit(stage, rows, "concurrent", count=sizes.concurrent, callers=CALLERS)
        many = await _submit(stage, rows, "many", count=sizes.many, batch=MANY)
    return [
        _named(single, "single submits, one caller"),
        _named(concurrent, f"{CALLERS} concurrent submitters").aiming(share=0.5),
        _named(many, f"submit_many of {MANY:,}"),
    ]


async def _submit(stage: Stage, rows: str, role: str, *, count: int, **spec: int) -> Line:
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(stage.sizes.repeat):
        for playing, rates, more in ((stage.ours(role), ours, {}), (stage.bare(role), bare, {"rows_from": rows})):
            stage.step(f"{role} submits, {playing}")
            async with stage.store() as url, Child(playing, url=url, count=count, **spec, **more) as child:
                await child.ready()
                await child.tell()
                rates.append(count / (await child.result())["seconds"])
    return Line(what=role, unit="jobs/s", runs=tuple(ours), ceiling_runs=tuple(bare))


async def drain(stage: Stage) -> list[Line]:
    """Preloaded no-op jobs, until the store shows all of them done."""
    lines: list[Line] = []
    async with stage.store() as loaded:
        stage.step("jobs to drain")
        await play("ours.load", url=loaded, count=stage.sizes.drain)
        for processes in (1, 2):
            lines += await _drain_with(stage, loaded, processes)
    return lines


async def _drain_with(stage: Stage, loaded: str, processes: int) -> list[Line]:
    ours, bare = [], []
    for _ in range(stage.sizes.repeat):
        stage.step(f"drain, {processes} process(es), Headway")
        ours.append(await _drain_once(stage, loaded, processes, stage.ours("drain"), slots=SLOTS))
        stage.step(f"drain, {processes} process(es), bare")
        bare.append(await _drain_once(stage, loaded, processes, stage.bare("drain"), batch=BATCH))
    rate = Line(
        what=f"drain {stage.sizes.drain:,} jobs, {processes} process{'es' if processes > 1 else ''}",
        unit="jobs/s",
        runs=tuple(run.rate for run in ours),
        ceiling_runs=tuple(run.rate for run in bare),
    )
    cpu = Line(
        what=f"  CPU per job, {processes} process{'es' if processes > 1 else ''}",
        unit="µs",
        runs=tuple(run.cpu for run in ours),
        ceiling_runs=tuple(run.cpu for run in bare),
    )
    return [rate.aiming(at_least=30_000, share=0.5) if processes == 1 else rate, cpu]


async def metrics(stage: Stage) -> list[Line]:
    """The same drain with the page of metrics and without, in turn: what counting costs."""
    counted, plain = [], []
    async with stage.store() as loaded:
        stage.step("jobs to drain")
        await play("ours.load", url=loaded, count=stage.sizes.drain)
        for _ in range(2 * stage.sizes.repeat):
            stage.step("drain with metrics")
            counted.append(await _drain_once(stage, loaded, 1, stage.ours("drain"), slots=SLOTS, counted=True))
            stage.step("drain without")
            plain.append(await _drain_once(stage, loaded, 1, stage.ours("drain"), slots=SLOTS))
    rate = Line(
        what="drain with metrics, beside none",
        unit="jobs/s",
        runs=tuple(run.rate for run in counted),
        ceiling_runs=tuple(run.rate for run in plain),
    )
    cpu = Line(
        what="  CPU per job with metrics, beside none",
        unit="µs",
        runs=tuple(run.cpu for run in counted),
        ceiling_runs=tuple(run.cpu for run in plain),
    )
    return [rate.aiming(share=0.97), cpu]


class Drained(msgspec.Struct, frozen=True):
    """One drain: jobs a second, CPU µs per job, and when each tenth was done."""

    rate: float
    cpu: float
    tenths: Sequence[float]


async def _drain_once(stage: Stage, loaded: str, processes: int, role: str, **spec: int | bool) -> Drained:
    async with stage.store(like=loaded) as url, _workers(url, role, processes, spec) as (workers, counts):
        jobs = stage.sizes.drain
        return await _until_drained(stage, url, jobs, workers, counts)


@asynccontextmanager
async def _workers(
    url: str, role: str, processes: int, spec: Mapping[str, int | bool]
) -> AsyncIterator[tuple[list[Child], Counts]]:
    """Processes that are ready to go, and their common count."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headway-bench-")))
        counts = Counts(directory / "counts", processes)
        workers = [await stack.enter_async_context(Child(role, url=url, seat=seat, **spec)) for seat in counts.specs]
        for worker in workers:
            await worker.ready()
        yield workers, counts


async def _until_drained(stage: Stage, url: str, jobs: int, workers: list[Child], counts: Counts) -> Drained:
    """Timed from the signal until the store, asked once the workers say that they are done, shows it."""
    began = clock.monotonic()
    tenths: list[float] = []
    for worker in workers:
        await worker.tell()
    while (done := counts.total) < jobs:
        while done >= jobs * (len(tenths) + 1) / 10:
            tenths.append(clock.monotonic() - began)
        await _watch(workers)
    # Not what it takes to ask the store, which counts all rows: that would be laid upon the last tenth alone.
    tenths += [clock.monotonic() - began] * (10 - len(tenths))
    if await stage.site.completed(url) != jobs:
        raise BenchFailed(f"{jobs:,} jobs should be completed, the store shows {await stage.site.completed(url):,}")
    took = clock.monotonic() - began
    for worker in workers:
        await worker.tell("stop")
    used = [await worker.result() for worker in workers]
    return Drained(jobs / took, sum(one["cpu"] for one in used) / jobs * 1e6, tenths)


async def _watch(workers: Sequence[Child]) -> None:
    for worker in workers:
        worker.check()
    await sleep(clock, LOOK_EVERY)


async def in_a_row(stage: Stage) -> list[Line]:
    """Many jobs one after another: does it stay as fast, and is a claim as quick behind all that was done?"""
    jobs = stage.sizes.in_a_row
    if not jobs:
        return []
    async with stage.store() as url:
        stage.step(f"{jobs:,} jobs to drain in a row")
        await play("ours.load", url=url, count=jobs)
        stage.step(f"drain {jobs:,} in a row")
        async with _workers(url, stage.ours("drain"), 1, {"slots": SLOTS}) as (workers, counts):
            run = await _until_drained(stage, url, jobs, workers, counts)
        stage.step(f"claims beside {jobs:,} that were really done")
        took = await play("ours.claim", url=url, rows=CLAIM_ROWS, times=stage.sizes.claims + WARM_UP)
    tenth = jobs // 10
    rates = [tenth / max(after - before, LOOK_EVERY) for before, after in pairwise([0.0, *run.tenths])]
    first, last = rates[0], rates[-1]
    kept = Line(what=f"  last {tenth:,} against the first", unit="%", runs=(100 * last / first,))
    return [
        Line(what=f"drain {jobs:,} in a row, 1 process", unit="jobs/s", runs=(run.rate,)).aiming(at_least=30_000),
        msgspec.structs.replace(kept, note="by tenth: " + " ".join(f"{rate / 1000:.1f}k" for rate in rates)).aiming(
            at_least=70
        ),
        Line(what=f"  claim of {CLAIM_ROWS} right behind it", unit="ms", runs=milliseconds(took[WARM_UP:])),
    ]


async def latency(stage: Stage) -> list[Line]:
    """From just before the submission in one process to the start of the job in another."""
    stage.step("latency, Headway")
    ours = await _delays(stage, stage.ours("receive"), stage.ours("send"), slots=100)
    stage.step("latency, bare")
    bare = await _delays(stage, stage.bare("receive"), stage.bare("send"))
    lines = [
        Line(
            what=f"enqueue to start, {PER_SECOND}/s from another process, p{percent}",
            unit="ms",
            runs=(percentile(ours, percent),),
            ceiling_runs=(percentile(bare, percent),),
        )
        for percent in (50, 99)
    ]
    if stage.site.name == "SQLite":
        return [lines[0].aiming(at_most=5.0), lines[1]]
    return [lines[0].aiming(at_most=2.0), lines[1].aiming(at_most=6.0)]


async def _delays(stage: Stage, receiver: str, sender: str, **spec: int) -> list[float]:
    every = 1 / PER_SECOND
    async with stage.store() as url, Child(receiver, url=url, **spec) as receiving:
        await receiving.ready()
        async with Child(sender, url=url, count=stage.sizes.latency, every=every) as sending:
            await sending.ready()
            await sending.tell()
            await sending.result()
        await sleep(clock, 0.2)
        await receiving.tell("stop")
        delays: list[float] = await receiving.result()
    if len(delays) != stage.sizes.latency:
        raise BenchFailed(f"{stage.sizes.latency} jobs were sent to {receiver}, {len(delays)} came")
    return delays


async def claims(stage: Stage) -> list[Line]:
    """A claim of due rows: alone, beside rows due later, beside finished ones; in turn, there and back, since the one
    is judged by the other."""
    beside = {"alone": None, "future": "fill_future", "finished": "fill_finished"}
    ours: dict[str, list[float]] = {kind: [] for kind in beside}
    bare: dict[str, list[float]] = {kind: [] for kind in beside}
    async with AsyncExitStack() as stack:
        rows = await stack.enter_async_context(stage.store())
        await play("ours.load", url=rows, count=CLAIM_ROWS)
        urls = {kind: await stack.enter_async_context(_filled(stage, kind, fill)) for kind, fill in beside.items()}
        for kind in (*beside, *reversed(beside)) * _rounds(stage.sizes):
            stage.step(f"claims, {kind}")
            ours[kind] += await _claims(stage.ours("claim"), stage.sizes, url=urls[kind])
            bare[kind] += await _claims(stage.bare("claim"), stage.sizes, url=urls[kind], rows_from=rows)
    lines = {kind: _claim_line(stage.sizes, kind, ours[kind], bare[kind]) for kind in beside}
    alone = lines.pop("alone")
    return [alone, *(_compared(line, alone.value) for line in lines.values())]


@asynccontextmanager
async def _filled(stage: Stage, kind: str, fill: str | None) -> AsyncIterator[str]:
    async with stage.store() as url:
        if fill:
            stage.step(f"{stage.sizes.beside:,} {kind} rows")
            await stage.site.fill(url, fill, stage.sizes.beside)
        yield url


async def _claims(role: str, sizes: Sizes, **spec: str) -> tuple[float, ...]:
    took: list[float] = await play(role, rows=CLAIM_ROWS, times=sizes.claims + WARM_UP, **spec)
    return milliseconds(took[WARM_UP:])


def _claim_line(sizes: Sizes, kind: str, ours: Sequence[float], bare: Sequence[float]) -> Line:
    where = "alone" if kind == "alone" else f"beside {sizes.beside:,} {kind} rows"
    return Line(what=f"claim of {CLAIM_ROWS} {where}", unit="ms", runs=tuple(ours), ceiling_runs=tuple(bare))


def _compared(line: Line, alone: float) -> Line:
    told = msgspec.structs.replace(line, note=f"{line.value / alone:.2f} times the time without them")
    return told.aiming(at_most=1.5 * alone)


def _rounds(sizes: Sizes) -> int:
    return (sizes.repeat + 1) // 2


async def behind(stage: Stage) -> list[Line]:
    """A job of another key behind a queue full of jobs that may not start."""
    firsts, all_of_them = [], []
    for _ in range(stage.sizes.repeat):
        stage.step(f"behind {stage.sizes.behind:,} jobs of a full key")
        delays = await _behind_once(stage)
        firsts.append(delays[0])
        all_of_them += delays
    line = Line(
        what=f"start of a job behind {stage.sizes.behind:,} of a full key",
        unit="ms",
        runs=milliseconds(firsts),
        note=f"the first of {PROBES}, 50 ms apart; slowest {max(all_of_them) * 1000:.1f} ms",
    )
    return [line.aiming(at_most=50.0)]


async def _behind_once(stage: Stage) -> list[float]:
    async with stage.store() as url:
        await stage.site.fill(url, "fill_full_key", stage.sizes.behind)
        async with (
            Child(stage.ours("send"), url=url, count=PROBES, every=PROBE_EVERY) as sending,
            Child(stage.ours("hold"), url=url, slots=100) as holding,
        ):
            await sending.ready()
            await holding.ready()
            await sending.tell()
            await sending.result()
            await sleep(clock, 0.5)
            await holding.tell("stop")
            delays: list[float] = await holding.result()
    if len(delays) != PROBES:
        raise BenchFailed(f"{PROBES} jobs were submitted behind a full key, {len(delays)} have started")
    return delays


def _named(line: Line, what: str) -> Line:
    return msgspec.structs.replace(line, what=what)


MEASURES = (
    Measure("submit", submits, lambda sizes: 1 + 6 * sizes.repeat),
    Measure("drain", drain, lambda sizes: 1 + 4 * sizes.repeat),
    Measure("metrics", metrics, lambda sizes: 1 + 4 * sizes.repeat),
    Measure("in-a-row", in_a_row, lambda sizes: 3 if sizes.in_a_row else 0),
    Measure("latency", latency, lambda _: 2),
    Measure("claim", claims, lambda sizes: 2 + 6 * _rounds(sizes)),
    Measure("behind", behind, lambda sizes: sizes.repeat),
    Measure("idle", idle, lambda _: 1),
    Measure("schedules", schedules, lambda sizes: 3 + sizes.repeat),
    Measure("api", api, lambda sizes: 3 + 4 * sizes.repeat),
    Measure("callbacks", callbacks, lambda sizes: 3 * sizes.repeat),
    Measure("dispatch", dispatch, lambda sizes: 2 * sizes.repeat),
    Measure("scripts", scripts, lambda sizes: 2 * sizes.repeat + 1),
)
