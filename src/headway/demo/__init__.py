"""A small app to watch. `headway demo` submits a few jobs a second and shows how they end; with `headway up --app
headway.demo:app` (which is what `make run` does) they come by themselves, by schedules."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headway.app import Headway
from headway.clock import SystemClock, sleep
from headway.executors.contract import current
from headway.jobs import Job
from headway.model.retry import Retry
from headway.model.when import every
from headway.schedules import Schedule

clock = SystemClock()
console = Console()


def make_app(url: str) -> Headway:
    """An app with jobs of three sorts."""
    app = Headway(url)

    @app.job(queue="mail", name="welcome")
    async def welcome(user: int) -> str:
        await sleep(clock, 0.2)
        return f"mail to user {user}"

    @app.job(queue="reports", name="report", priority=5)
    def report(month: int) -> int:
        current().progress(1, 2, "adding up")
        return sum(range(month * 1000))

    @app.job(queue="mail", name="flaky", retry=Retry(max_attempts=4, wait=0.3))
    async def flaky(number: int) -> str:
        if random.random() < 0.5:
            raise ConnectionError("the far side did not answer")
        return f"number {number} got through"

    for hook, word in ((app.on_success, "[green]completed[/]"), (app.on_failed, "[red]failed[/]")):
        hook(_show(word))
    app.on_retry(_show("[yellow]to be retried[/]"))
    return app


def make_live_app(url: str) -> Headway:
    """The same, with jobs that come by themselves."""
    app = make_app(url)

    @app.job(name="visitors", schedule=Schedule(every(1), overlap="allow", description="some visitors a second"))
    async def visitors() -> int:
        number = random.randint(1, 3)
        for _ in range(number):
            await app.function(random.choice(("welcome", "flaky"))).asubmit(random.randint(1, 999))
        return number

    @app.job(name="monthly", schedule=Schedule(every(5), description="a report every five seconds, to be watched"))
    async def monthly() -> None:
        await app.function("report").asubmit(random.randint(1, 12))

    return app


async def run(jobs: int) -> None:
    """Submit and work until `jobs` are submitted and done (0: until interrupted)."""
    with tempfile.TemporaryDirectory(prefix="headway-demo-") as directory:
        app = make_app(f"sqlite:///{Path(directory) / 'demo.db'}")
        console.print(f"[bold]Headway demo[/] on {app.url} - Ctrl-C ends it")
        async with app.worker(queues=["mail", "reports"], concurrency=10):
            submitted = await _feed(app, jobs)
            for job in submitted:
                await job.finished(60)
        await _summary(app)
        await app.aclose()


async def _feed(app: Headway, jobs: int) -> list[Job[Any]]:
    functions = [app.function("welcome"), app.function("report"), app.function("flaky")]
    submitted: list[Job[Any]] = []
    number = 0
    while not jobs or number < jobs:
        number += 1
        job = await random.choice(functions).asubmit(number)
        if jobs:
            submitted.append(job)
        await sleep(clock, 0.02 if jobs else 0.25)
    return submitted


def _show(word: str) -> Any:
    def hook(job: Job[Any]) -> None:
        detail = job.result if job.error is None else job.error.message
        console.print(f"{job.name:<8} attempt {job.attempt}  {word}  {detail}")

    return hook


def _url() -> str:
    """Where the demo that goes on keeps its jobs: others may look at them meanwhile."""
    return os.environ.get("HEADWAY_STORE") or f"sqlite:///{tempfile.gettempdir()}/headway-demo-{os.getuid()}.db"


async def _summary(app: Headway) -> None:
    table = Table("job", "state", "attempts", title="The last jobs")
    for job in await app.ajobs(limit=10):
        table.add_row(job.name, job.state.value, str(job.attempt))
    console.print(table)


app = make_live_app(_url())
