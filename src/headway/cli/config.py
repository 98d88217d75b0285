"""`--config FILE`, which every command takes."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from headway.settings import CONFIG


def with_config(command: Any) -> Any:
    """The command with the option."""
    command.params.append(_option())
    return command


def _option() -> Any:
    """Taken from a command that has it: typer makes options of parameters only."""
    bearer = typer.Typer(add_completion=False)
    bearer.command()(_bearer)
    [option] = typer.main.get_command(bearer).params
    return option


def _note(value: str | None) -> str | None:
    """As a variable, so that processes started by this one find the same file."""
    if value is not None:
        os.environ[CONFIG] = value
    return value


def _bearer(
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings in a TOML file.",
            show_default="headway.toml, if it is there",
            expose_value=False,
            is_eager=True,
            callback=_note,
        ),
    ] = None,
) -> None: ...
