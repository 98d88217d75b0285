"""What came of an act on jobs: counted, and every one that could not be done named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

import typer

from headway.cli.shapes import print_json
from headway.model.errors import HeadwayError
from headway.model.states import State
from headway.model.submission import Moved
from headway.model.words import count
from headway.store.scripts.cancel import Verdict

FEW = 20
"""Up to here every job has a line of its own; of those that failed, so many are named."""


class Report:
    """Gathers the store's answers."""

    def __init__(self, verb: str, told: Callable[[Moved], str], refused: Callable[[Moved], str | None]) -> None:
        self.verb = verb
        self.done: list[tuple[UUID, State, str]] = []
        self.failed: list[tuple[UUID, str]] = []
        self._told = told
        self._refused = refused

    def add(self, job_id: UUID, verdict: Verdict) -> None:
        problem = str(verdict) if isinstance(verdict, HeadwayError) else self._refused(verdict)
        if problem is not None:
            self.failed.append((job_id, problem))
        elif isinstance(verdict, Moved):
            self.done.append((job_id, verdict.state, self._told(verdict)))

    def shape(self) -> dict[str, Any]:
        """As JSON."""
        items: list[dict[str, Any]] = [{"id": job_id, "ok": True, "state": state} for job_id, state, _ in self.done]
        items += [{"id": job_id, "ok": False, "error": problem} for job_id, problem in self.failed]
        return {"items": items, "done": len(self.done), "failed": len(self.failed)}


def print_report(report: Report, *, as_json: bool) -> None:
    """Results on standard output, what could not be done on standard error."""
    if as_json:
        print_json(report.shape())
        return
    if len(report.done) <= FEW:
        for job_id, _, told in report.done:
            typer.echo(f"{job_id}  {told}")
    else:
        for told, number in Counter(told for _, _, told in report.done).items():
            typer.echo(f"{count(number, 'job')}: {told}")
    if not report.done and not report.failed:
        typer.echo("no job matches: nothing to do")
    for job_id, problem in report.failed[:FEW]:
        named = problem if str(job_id) in problem else f"job {job_id} {problem}"
        typer.secho(f"could not {report.verb}: {named}", err=True, fg="red")
    if len(report.failed) > FEW:
        typer.secho(f"… and {len(report.failed) - FEW:,} more that could not be done", err=True, fg="red")
