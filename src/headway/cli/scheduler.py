"""`headway scheduler` and `headway up`."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import typer

from headway import compose
from headway.app import Headway
from headway.bus.contract import redacted
from headway.cli.options import Bus, LogJson, LogLevel, Store
from headway.cli.worker import Concurrency, Grace, Lease, Queues, run_loop, serve, slots_of
from headway.components.assembly import ALL
from headway.serve import tune_process
from headway.store import make_store
from headway.worker.worker import SLOTS

MaybeApp = Annotated[
    str | None, typer.Option("--app", help="Where your app is: module:attribute.", metavar="MODULE:APP")
]


EVERY = ",".join(ALL)
Components = Annotated[
    str, typer.Option("--components", help="Which components act on commands from the bus.", metavar="NAME,…")
]


def scheduler(  # noqa: PLR0913 - one parameter per flag
    app: MaybeApp = None,
    store: Store = None,
    bus: Bus = None,
    components: Components = EVERY,
    log_level: LogLevel = "info",
    log_json: LogJson = False,
) -> None:
    """Fire schedules until stopped (Ctrl-C or SIGTERM). Any number may run at once; each time is fired once.

    With --app the schedules in its code are declared. Jobs are run by workers. With --bus it rings for due jobs there,
    and acts on commands.
    """
    compose.configure_logs(log_level, as_json=log_json)
    loaded = compose.app_or_none(app, store)
    loaded.bus = bus or loaded.bus
    tune_process()
    sys.exit(run_loop(loaded.scheduler(components=[name.strip() for name in components.split(",")]).run()))


def up(  # noqa: PLR0913 - one parameter per flag
    app: MaybeApp = None,
    store: Store = None,
    queue: Queues = None,
    concurrency: Concurrency = SLOTS,
    lease: Lease = None,
    grace: Grace = 30.0,
    bus: Bus = None,
    log_level: LogLevel = "info",
    log_json: LogJson = False,
) -> None:
    """Everything in one process: a worker and a scheduler, on SQLite unless told otherwise.

    Without --queue it serves all queues that the app's functions name, and `default`.
    """
    compose.configure_logs(log_level, as_json=log_json)
    loaded = compose.app_or_none(app, store)
    loaded.bus = bus or loaded.bus
    asyncio.run(_migrate(loaded.url))
    settings: dict[str, Any] = {
        "queues": slots_of(queue or _queues(loaded), concurrency),
        "lease": compose.lease(lease),
        "grace": grace,
        "scheduler": True,
    }
    serving = settings["queues"]
    typer.echo(f"headway: a worker for {', '.join(serving)} and a scheduler on {redacted(loaded.url)}", err=True)
    tune_process()
    sys.exit(run_loop(serve(loaded.worker(**settings))))


def _queues(app: Headway) -> list[str]:
    return sorted({"default", *(function.options.queue for function in app.registry)})


async def _migrate(url: str) -> None:
    """All in one also means that nobody else does it."""
    store = make_store(url)
    try:
        await store.migrate()
    finally:
        await store.close()
