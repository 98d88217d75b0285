"""The command line: one file per command group, each command a few lines over the app."""

from __future__ import annotations

import sys

import typer

from headway.cli import bench, store, worker
from headway.model.errors import HeadwayError

cli = typer.Typer(
    name="headway",
    help="Background jobs that are never lost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
cli.command("worker")(worker.worker)
cli.command("demo")(worker.demo)
cli.command("migrate")(store.migrate)
cli.command("functions")(store.functions)
cli.command("check")(store.check)
cli.command("bench")(bench.bench)


def main() -> None:
    """The `headway` command. What goes wrong is said in one sentence; 2 is the status of a wrong setting."""
    try:
        cli()
    except HeadwayError as error:
        typer.secho(f"headway: {error}", err=True, fg="red")
        sys.exit(2)
