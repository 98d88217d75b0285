"""`headway api`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from headway import compose
from headway.app import Headway
from headway.cli.entrance import welcome
from headway.cli.options import Bus, Host, LogJson, LogLevel, MaybeApp, Port, Reload, Store
from headway.cli.reloading import Reloader, free_port
from headway.cli.worker import run_loop
from headway.observe import traces
from headway.observe.family import WELL, Signs
from headway.observe.page import Address, reported
from headway.plugins import redacted
from headway.serve import tune_process
from headway.settings import Settings

if TYPE_CHECKING:
    from headway.api.process import AppApi


def api(  # noqa: PLR0913 - one parameter per flag
    app: MaybeApp = None,
    store: Store = None,
    host: Host = None,
    port: Port = None,
    bus: Bus = None,
    log_level: LogLevel = None,
    log_json: LogJson = None,
    reload: Reload = False,
) -> None:
    """Answer HTTP requests until stopped (Ctrl-C or SIGTERM). Any number may run; jobs are run by workers.

    With --app it knows the functions of your code without a worker having announced them. With the --bus that workers
    have it hears from there what they do.
    """
    held = compose.settings(app=app, host=host, port=port, bus=bus, log_level=log_level, log_json=log_json)
    compose.configure_logs(held.log_level, as_json=held.log_json)
    if reload:
        sys.exit(Reloader(port=None if held.port else free_port(held.host)).run())
    loaded = compose.app_or_none(held.app, store)
    compose.use_bus(loaded, held.bus)
    served = open_api(loaded, held)
    from headway.api.process import run_api

    traces.export()
    tune_process()
    # A port of their own is for those who ask for one: the API serves the metrics too, to whoever may read.
    sys.exit(run_loop(measured(served, run_api(served), compose.metrics_address(held, None))))


async def measured(
    served: AppApi, running: Coroutine[Any, Any, int], address: Address | None, signs: Signs = WELL
) -> int:
    """Until it is stopped, with its numbers at the address; the exit status."""
    census = partial(served.census.from_thread, asyncio.get_running_loop())
    with reported(address, more=census, signs=signs):
        return await running


def open_api(app: Headway, held: Settings) -> AppApi:
    """The API of an app, its port taken."""
    compose.require_server()
    from headway.api.process import AppApi

    held = msgspec.structs.replace(held, store=app.url)
    made = AppApi(app, terms=compose.api_terms(held), welcome=lambda api: welcome(api, held))
    typer.echo(f"headway: the API of {redacted(app.url)} at {made.url}", err=True)
    return made
