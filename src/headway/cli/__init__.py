"""The command line: one file per command group, each command a few lines over the app."""

from __future__ import annotations

import sys

import typer

from headway.cli import acts, bench, doctor, jobs, planning, queues, scheduler, schedules, store, worker
from headway.model.errors import HeadwayError

cli = typer.Typer(
    name="headway",
    help="Background jobs that are never lost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
cli.command("up")(scheduler.up)
cli.command("worker")(worker.worker)
cli.command("scheduler")(scheduler.scheduler)
cli.command("demo")(worker.demo)
cli.command("migrate")(store.migrate)
cli.command("functions")(store.functions)
cli.command("check")(store.check)
cli.command("workers")(queues.workers)
cli.command("doctor")(doctor.doctor)
cli.command("bench")(bench.bench)

jobs_group = typer.Typer(help="Look at jobs and change them.", no_args_is_help=True)
jobs_group.command("list")(jobs.list_jobs)
jobs_group.command("show")(jobs.show)
jobs_group.command("why")(jobs.why)
jobs_group.command("output")(jobs.output)
jobs_group.command("cancel")(acts.cancel)
jobs_group.command("retry")(acts.retry)
jobs_group.command("release")(acts.release)
jobs_group.command("delete")(acts.delete)
cli.add_typer(jobs_group, name="jobs")

queues_group = typer.Typer(help="Look at queues, pause them, set their limits.", no_args_is_help=True)
queues_group.command("list")(queues.list_queues)
queues_group.command("pause")(queues.pause)
queues_group.command("resume")(queues.resume)
queues_group.command("set")(queues.set_queue)
cli.add_typer(queues_group, name="queues")

schedules_group = typer.Typer(help="Look at schedules, make and change them.", no_args_is_help=True)
schedules_group.command("list")(schedules.list_schedules)
schedules_group.command("show")(schedules.show)
schedules_group.command("create")(planning.create)
schedules_group.command("preview")(schedules.preview)
schedules_group.command("occurrences")(schedules.occurrences)
schedules_group.command("pause")(planning.pause)
schedules_group.command("resume")(planning.resume)
schedules_group.command("run")(planning.run)
schedules_group.command("delete")(planning.delete)
cli.add_typer(schedules_group, name="schedules")


def main() -> None:
    """The `headway` command. What goes wrong is said in one sentence; 2 is the status of a wrong setting."""
    try:
        cli()
    except HeadwayError as error:
        typer.secho(f"headway: {error}", err=True, fg="red")
        sys.exit(2)
