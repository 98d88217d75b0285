"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

App = Annotated[str, typer.Option("--app", help="Where your app is: module:attribute.", metavar="MODULE:APP")]
Store = Annotated[
    str | None,
    typer.Option("--store", envvar="HEADWAY_STORE", help="sqlite:///path.db or postgresql://…", metavar="URL"),
]
LogLevel = Annotated[str, typer.Option("--log-level", envvar="HEADWAY_LOG_LEVEL", help="debug, info, warning, error.")]
LogJson = Annotated[
    bool, typer.Option("--log-json/--log-console", envvar="HEADWAY_LOG_JSON", help="Log lines as JSON.")
]
