"""`headway scheduler`."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

from headway import compose
from headway.cli.options import Bus, Components, LogJson, LogLevel, MaybeApp, MetricsPort, Reload, Store
from headway.cli.reloading import Reloader
from headway.cli.worker import run_loop
from headway.components.assembly import components_of
from headway.firing import AppScheduler
from headway.observe import traces
from headway.observe.page import Address, reported
from headway.serve import tune_process

METRICS_PORT = 9102


def scheduler(  # noqa: PLR0913 - one parameter per flag
    app: MaybeApp = None,
    store: Store = None,
    bus: Bus = None,
    components: Components = None,
    metrics_port: MetricsPort = None,
    log_level: LogLevel = None,
    log_json: LogJson = None,
    reload: Reload = False,
) -> None:
    """Fire schedules until stopped (Ctrl-C or SIGTERM). Any number may run at once; each time is fired once.

    With --app the schedules in its code are declared. Jobs are run by workers. With --bus it rings for due jobs there,
    and acts on commands.
    """
    held = compose.settings(app=app, bus=bus, metrics_port=metrics_port, log_level=log_level, log_json=log_json)
    compose.configure_logs(held.log_level, as_json=held.log_json)
    if reload:
        sys.exit(Reloader().run())
    loaded = compose.app_or_none(held.app, store)
    compose.use_bus(loaded, held.bus)
    traces.export()
    tune_process()
    made = loaded.scheduler(components=components_of(components), tell_backlog=held.cloudwatch)
    sys.exit(run_loop(serve(made, compose.metrics_address(held, METRICS_PORT))))


async def serve(made: AppScheduler, address: Address | None) -> int:
    """Until it is stopped; the exit status."""
    loop = asyncio.get_running_loop()
    with reported(address, more=partial(made.census.from_thread, loop), signs=made.signs):
        return await made.run()
