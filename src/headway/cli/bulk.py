"""An act on many jobs: chosen, counted, confirmed, done in steps."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from uuid import UUID

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from headway.cli.filters import Given
from headway.cli.naming import named_jobs
from headway.cli.reporting import Report
from headway.cli.tables import console
from headway.clock import SystemClock
from headway.components.bulk import PAGE, STEP, in_steps, matching
from headway.model.errors import ConfigurationError
from headway.model.words import count
from headway.store.contract import Store
from headway.store.scripts.cancel import Verdict


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs are meant. `default`: the states of a filter that names none; without, it must name some."""

    ids: list[str]
    given: Given = Given()
    default: list[str] | None = None
    filterable: bool = True

    @property
    def by_filter(self) -> bool:
        return not self.ids

    @property
    def filter(self) -> Given:
        return msgspec.structs.replace(self.given, states=self.given.states or self.default)

    def check(self, verb: str) -> None:
        """Refuse what is neither or both."""
        if self.ids and self.given.any:
            raise ConfigurationError(f"{verb} by id or by filter, not both at once")
        if not self.ids and not self.given.any:
            ways = "ids, or --state, --queue and so on" if self.filterable else "ids of jobs"
            raise ConfigurationError(f"nothing to {verb} is named: give {ways}")
        if not self.ids and not self.filter.states:
            raise ConfigurationError(f"to {verb} by filter, say with --state which jobs are meant")


class Asks(Protocol):
    """The part of an act that is needed here."""

    @property
    def ask(self) -> Callable[[Store, Sequence[UUID]], Awaitable[list[Verdict]]]: ...


async def choose(store: Store, target: Target) -> list[UUID]:
    """The ids, oldest first: what is retried in steps keeps its order. Exactly these are counted, shown and done."""
    if target.ids:
        return [job.id for job in await named_jobs(store, target.ids)]
    return await matching(store, target.filter.wanted(await store.now(), limit=PAGE))


def confirm(verb: str, number: int, target: Target, *, yes: bool) -> None:
    """Ask at a terminal; where nobody can answer, --yes must have been given."""
    which = f" ({target.filter})" if target.by_filter else ""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError(f"to {verb} {count(number, 'job')}{which} without a terminal to ask at, add --yes")
    if not typer.confirm(f"{verb.capitalize()} {count(number, 'job')}{which}?", err=True):
        typer.echo("nothing was done", err=True)
        raise typer.Exit(1)


async def carry_out(store: Store, ids: Sequence[UUID], act: Asks, report: Report, *, silent: bool) -> None:
    """Step by step, with a bar where somebody looks at it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = silent or len(ids) <= STEP or not sys.stderr.isatty()
    with Progress(*columns, console=console(err=True), disable=hidden, transient=True) as progress:
        bar = progress.add_task(report.verb, total=len(ids))
        async for step in in_steps(store, ids, act.ask, SystemClock()):
            for job_id, verdict in step:
                report.add(job_id, verdict)
            progress.advance(bar, len(step))
