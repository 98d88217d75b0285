"""`headway worker` and `headway demo`."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Annotated, Any

import typer

from headway import compose
from headway.cli.lifeline import hold_on
from headway.cli.options import Bus, LogJson, LogLevel, MaybeApp, MetricsPort, Reload, Store
from headway.cli.processes import depart, supervise
from headway.cli.reloading import Reloader
from headway.model.errors import ConfigurationError
from headway.observe import traces
from headway.observe.page import Address, reported
from headway.serve import AppWorker, tune_process

Queues = Annotated[
    list[str] | None,
    typer.Option(
        "--queue",
        "-q",
        help="A queue to serve, with its slots if you like: mail or mail=10. Repeatable.",
        show_default="all that the app's functions name, and default",
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        "-c",
        min=1,
        help="Slots of queues given without a number.",
        show_default="100, and 2000 for requests",
    ),
]
Children = Annotated[
    int | None,
    typer.Option(
        "--children",
        min=1,
        help="Child processes at most, for functions with process=True.",
        show_default="one per core, or as many as slots are given",
    ),
]
Processes = Annotated[
    int, typer.Option("--processes", "-p", min=1, help="Worker processes. On SQLite one does the work of many.")
]
Lease = Annotated[
    float | None,
    typer.Option(
        "--lease", envvar="HEADWAY_LEASE", help="Seconds until a dead worker's jobs are rescued.", show_default="30"
    ),
]
Grace = Annotated[
    float | None,
    typer.Option(
        "--grace",
        envvar="HEADWAY_GRACE",
        help="Seconds running jobs get to end when the worker stops.",
        show_default="30",
    ),
]

Scheduler = Annotated[bool, typer.Option("--scheduler", help="Fire schedules as well.")]


METRICS_PORT = 9101


def worker(  # noqa: PLR0913 - one parameter per flag
    app: MaybeApp = None,
    queue: Queues = None,
    concurrency: Concurrency = None,
    children: Children = None,
    processes: Processes = 1,
    lease: Lease = None,
    grace: Grace = None,
    scheduler: Scheduler = False,
    bus: Bus = None,
    metrics_port: MetricsPort = None,
    log_level: LogLevel = None,
    log_json: LogJson = None,
    store: Store = None,
    reload: Reload = False,
) -> None:
    """Run jobs until stopped (Ctrl-C or SIGTERM: running jobs may end, others are given back).

    Without --queue it serves all queues that the app's functions name, and `default`. Without an app: scripts, requests
    and other jobs that need no code of yours, from the store that is named.
    """
    supervised = hold_on()
    held = compose.settings(
        app=app,
        lease=lease,
        grace=grace,
        bus=bus,
        metrics_port=metrics_port,
        log_level=log_level,
        log_json=log_json,
    )
    compose.configure_logs(held.log_level, as_json=held.log_json)
    if reload:
        sys.exit(Reloader().run())
    loaded = compose.app_or_none(held.app, store)
    compose.use_bus(loaded, held.bus)
    settings: dict[str, Any] = {
        "queues": slots_of(queue, concurrency),
        "concurrency": concurrency,
        "children": children,
        "lease": held.lease,
        "grace": held.grace,
        "scheduler": scheduler,
    }
    address = compose.metrics_address(held, METRICS_PORT)
    if processes > 1 and not supervised:
        if loaded.url.startswith("sqlite"):
            typer.echo("headway: SQLite has one writer; several processes are safe, but not faster", err=True)
        sys.exit(supervise(processes, address))
    traces.export()
    tune_process()
    sys.exit(run_loop(serve(loaded.worker(**settings), address, supervised=supervised)))


def demo(
    log_level: LogLevel = None, jobs: Annotated[int, typer.Option(help="Stop after this many; 0: never.")] = 0
) -> None:
    """Start a worker on a small demo app and watch jobs being done."""
    from headway.demo import run

    compose.configure_logs(log_level or "warning", as_json=False)
    run_loop(run(jobs))


async def serve(worker: AppWorker, address: Address | None, *, supervised: bool) -> int:
    """Until it is stopped; the exit status."""
    loop = asyncio.get_running_loop()
    census = partial(worker.census.from_thread, loop) if worker.fires else list
    with reported(address, more=census, signs=worker.signs):
        status = await worker.run()
    return depart(status, worker.left, supervised=supervised)


def slots_of(queues: list[str] | None, default: int | None) -> dict[str, int | None] | None:
    """Queues as flags name them, with their slots; None: no flag names any."""
    if not queues:
        return None
    slots: dict[str, int | None] = {}
    for text in queues:
        name, _, number = text.partition("=")
        if number and not number.isdigit():
            raise ConfigurationError(f"--queue {text!r} must look like mail or mail=10")
        slots[name] = int(number) if number else default
    return slots


def run_loop(main: Any) -> Any:
    """uvloop where it is installed: the same, faster."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)
