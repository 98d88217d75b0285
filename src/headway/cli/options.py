"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

App = Annotated[str, typer.Option("--app", help="Where your app is: module:attribute.", metavar="MODULE:APP")]
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
LogLevel = Annotated[str, typer.Option("--log-level", envvar="HEADWAY_LOG_LEVEL", help="debug, info, warning, error.")]
LogJson = Annotated[
    bool, typer.Option("--log-json/--log-console", envvar="HEADWAY_LOG_JSON", help="Log lines as JSON.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
By = Annotated[
    str | None, typer.Option("--by", help="Who asks, for the history.", metavar="NAME", show_default="cli:LOGIN")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask, do it.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, or a beginning that only it has.")]
JobIds = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Ids of jobs, or beginnings that only they have.")
]
