"""`headway up`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from headway import compose
from headway.app import Headway
from headway.cli.api import measured, open_api
from headway.cli.options import Bus, Components, Host, LogJson, LogLevel, MaybeApp, Port, Reload, Store
from headway.cli.processes import depart
from headway.cli.reloading import Reloader, free_port
from headway.cli.worker import Concurrency, Grace, Lease, Queues, run_loop, slots_of
from headway.components.assembly import components_of
from headway.observe import traces
from headway.plugins import redacted
from headway.serve import AppWorker, tune_process
from headway.settings import Settings
from headway.store import make_store


def up(  # noqa: PLR0913 - one parameter per flag
    app: MaybeApp = None,
    store: Store = None,
    host: Host = None,
    port: Port = None,
    queue: Queues = None,
    concurrency: Concurrency = None,
    lease: Lease = None,
    grace: Grace = None,
    bus: Bus = None,
    components: Components = None,
    log_level: LogLevel = None,
    log_json: LogJson = None,
    reload: Reload = False,
    demo: Annotated[bool, typer.Option("--demo", help="Fill the store with jobs and schedules to look at.")] = False,
) -> None:
    """Everything in one process: the API, its web page, a worker and a scheduler, on SQLite unless told otherwise.

    Without --queue it serves all queues that the app's functions name, and `default`. With --reload it starts afresh
    whenever a source file changes, here or in headway itself.
    """
    held = compose.settings(
        app=app, host=host, port=port, lease=lease, grace=grace, bus=bus, log_level=log_level, log_json=log_json
    )
    compose.configure_logs(held.log_level, as_json=held.log_json)
    if reload:
        sys.exit(Reloader(port=None if held.port else free_port(held.host)).run())
    loaded = compose.app_or_none(held.app, store)
    compose.use_bus(loaded, held.bus)
    worker = loaded.worker(
        queues=slots_of(queue, concurrency),
        concurrency=concurrency,
        lease=held.lease,
        grace=held.grace,
        scheduler=True,
        components=components_of(components),
    )
    traces.export()
    tune_process()
    sys.exit(run_loop(_serve(loaded, worker, held, demo=demo)))


async def _serve(app: Headway, worker: AppWorker, held: Settings, *, demo: bool) -> int:
    # The port first: where it is taken, nothing begins.
    api = open_api(app, held)
    from headway.api.process import run_all
    from headway.demo.seeding import Shop

    await _migrate(app.url)
    shop = Shop(app, worker)
    api.service.seed = shop.seed
    typer.echo(f"headway: a worker for {', '.join(worker.queues)} and a scheduler on {redacted(app.url)}", err=True)
    if demo:
        typer.echo(
            "headway: with a demo, a shop that there isn't: within a minute the page is full of its life", err=True
        )
    address = compose.metrics_address(held, None)
    try:
        running = run_all(api, worker, shop.seed if demo else shop.reopen)
        status = await measured(api, running, address, worker.signs)
    finally:
        shop.close()
    return depart(status, worker.left)


async def _migrate(url: str) -> None:
    """All in one also means that nobody else does it."""
    store = make_store(url)
    try:
        await store.migrate()
    finally:
        await store.close()
