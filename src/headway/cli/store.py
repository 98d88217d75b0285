"""`headway migrate`, `headway functions`, `headway check`."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from headway import compose
from headway.cli.options import App, Store
from headway.executors.call.arguments import called
from headway.model.filters import JobFilter
from headway.model.job import JobRecord
from headway.store import make_store
from headway.store.lending import Stores

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def migrate(store: Store = None) -> None:
    """Bring the store's schema up to date."""
    url = compose.store_url(store)
    done = asyncio.run(_migrate(url))
    typer.echo("\n".join(f"applied {name}" for name in done) or "the schema is up to date")


def functions(store: Store = None, json: Json = False) -> None:
    """List the functions that workers have announced."""
    infos = asyncio.run(_with_store(compose.store_url(store), lambda opened: opened.functions()))
    if json:
        typer.echo(msgspec.json.encode(infos).decode())
        return
    table = Table("function", "queue", "parameters", "code version", "announced")
    for info in infos:
        parameters = ", ".join(info.parameters.get("properties", {}))
        table.add_row(info.name, info.queue, parameters, info.code_version, f"{info.announced_at:%Y-%m-%d %H:%M:%S}")
    Console().print(table if infos else "no worker has announced a function yet: start one with `headway worker`")


def check(app: App, limit: Annotated[int, typer.Option(help="Look at this many waiting jobs.")] = 1000) -> None:
    """Tell which waiting jobs this code can't run, before it is deployed. Status 1 when there are any."""
    loaded = compose.load_app(app)
    wanted = JobFilter(states=("scheduled", "blocked", "creating"), kind="call", limit=min(limit, 1000))
    waiting: list[JobRecord] = asyncio.run(_with_store(loaded.url, lambda opened: opened.find(wanted)))
    problems = [(job, problem) for job in waiting if (problem := _problem(loaded, job))]
    for job, problem in problems:
        typer.echo(f"{job.id}  {job.name}: {problem}")
    typer.echo(f"{len(waiting)} waiting jobs looked at, {len(problems)} that this code can't run")
    sys.exit(1 if problems else 0)


def _problem(app: Any, job: JobRecord) -> str | None:
    try:
        function = app.registry.get(called(job.payload))
        if function is None:
            return "the function is not part of this code"
        function.arguments.unpack(job.payload)
    except Exception as error:
        return str(error)
    return None


async def _migrate(url: str) -> list[str]:
    store = make_store(url)
    try:
        return await store.migrate()
    finally:
        await store.close()


async def _with_store(url: str, act: Any) -> Any:
    stores = Stores(url, None)
    store = await stores.acquire()
    try:
        return await act(store)
    finally:
        await stores.release(store)
        await stores.close()
