"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

App = Annotated[str, typer.Option("--app", help="Where your app is: module:attribute.", metavar="MODULE:APP")]
MaybeApp = Annotated[
    str | None,
    typer.Option("--app", envvar="HEADWAY_APP", help="Where your app is: module:attribute.", metavar="MODULE:APP"),
]
Store = Annotated[
    str | None,
    typer.Option("--store", envvar="HEADWAY_STORE", help="sqlite:///path.db or postgresql://…", metavar="URL"),
]
Bus = Annotated[
    str | None,
    typer.Option(
        "--bus", envvar="HEADWAY_BUS", help="amqp://… to be woken by RabbitMQ; else the store rings.", metavar="URL"
    ),
]
Components = Annotated[
    str | None,
    typer.Option(
        "--components", help="Which components act on commands from the bus.", metavar="NAME,…", show_default="all"
    ),
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host", envvar="HEADWAY_HOST", help="The address to answer at.", metavar="ADDRESS", show_default="127.0.0.1"
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port", envvar="HEADWAY_PORT", min=0, max=65535, help="The port; 0: a free one.", show_default="8000"
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", envvar="HEADWAY_METRICS_PORT", help="Where to serve metrics; 0: a free port.", metavar="PORT"
    ),
]
LogLevel = Annotated[
    str | None,
    typer.Option("--log-level", envvar="HEADWAY_LOG_LEVEL", help="debug, info, warning, error.", show_default="info"),
]
LogJson = Annotated[
    bool | None, typer.Option("--log-json/--log-console", envvar="HEADWAY_LOG_JSON", help="Log lines as JSON.")
]
Reload = Annotated[bool, typer.Option("--reload", help="Start afresh when a source file changes: for development.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
By = Annotated[
    str | None, typer.Option("--by", help="Who asks, for the history.", metavar="NAME", show_default="cli:LOGIN")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask, do it.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, or a beginning that only it has.")]
JobIds = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Ids of jobs, or beginnings that only they have.")
]
