"""`headway worker` and `headway demo`."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Annotated, Any

import typer

from headway import compose
from headway.cli.options import App, Bus, LogJson, LogLevel
from headway.cli.processes import Supervisor
from headway.model.errors import ConfigurationError
from headway.serve import AppWorker, tune_process
from headway.worker.worker import SLOTS

Queues = Annotated[
    list[str] | None,
    typer.Option("--queue", "-q", help="A queue to serve, with its slots if you like: mail or mail=10. Repeatable."),
]
Concurrency = Annotated[int, typer.Option("--concurrency", "-c", min=1, help="Slots of queues given without a number.")]
Processes = Annotated[
    int, typer.Option("--processes", "-p", min=1, help="Worker processes. On SQLite one does the work of many.")
]
Lease = Annotated[
    float | None,
    typer.Option("--lease", envvar="HEADWAY_LEASE", help="Seconds until a dead worker's jobs are rescued."),
]
Grace = Annotated[
    float,
    typer.Option("--grace", envvar="HEADWAY_GRACE", help="Seconds running jobs get to end when the worker stops."),
]

Scheduler = Annotated[bool, typer.Option("--scheduler", help="Fire schedules as well.")]


def worker(  # noqa: PLR0913 - one parameter per flag
    app: App,
    queue: Queues = None,
    concurrency: Concurrency = SLOTS,
    processes: Processes = 1,
    lease: Lease = None,
    grace: Grace = 30.0,
    scheduler: Scheduler = False,
    bus: Bus = None,
    log_level: LogLevel = "info",
    log_json: LogJson = False,
) -> None:
    """Run jobs until stopped (Ctrl-C or SIGTERM: running jobs may end, others are given back)."""
    compose.configure_logs(log_level, as_json=log_json)
    loaded = compose.load_app(app)
    loaded.bus = bus or loaded.bus
    settings: dict[str, Any] = {
        "queues": slots_of(queue or ["default"], concurrency),
        "lease": compose.lease(lease),
        "grace": grace,
        "scheduler": scheduler,
    }
    if processes > 1:
        if loaded.url.startswith("sqlite"):
            typer.echo("headway: SQLite has one writer; several processes are safe, but not faster", err=True)
        sys.exit(Supervisor(processes).run())
    tune_process()
    sys.exit(run_loop(serve(loaded.worker(**settings))))


def demo(
    log_level: LogLevel = "warning", jobs: Annotated[int, typer.Option(help="Stop after this many; 0: never.")] = 0
) -> None:
    """Start a worker on a small demo app and watch jobs being done."""
    from headway.demo import run

    compose.configure_logs(log_level, as_json=False)
    run_loop(run(jobs))


async def serve(worker: AppWorker) -> int:
    """Until it is stopped; the exit status."""
    status = await worker.run()
    if worker.left:
        # The loop would wait for them for ever. Their leases lapse, and other workers see to the jobs.
        sys.stderr.flush()
        os._exit(status)
    return status


def slots_of(queues: list[str], default: int) -> dict[str, int]:
    """Queues as flags name them, with their slots."""
    slots: dict[str, int] = {}
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
