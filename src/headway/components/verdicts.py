"""What the store says of each job that an act was for."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headway.model.states import State
from headway.model.submission import Moved
from headway.observe import series, trail
from headway.store.scripts.cancel import Verdict


def told(component: str, ids: Sequence[UUID], verdicts: list[Verdict], correlation_id: str | None) -> list[Verdict]:
    """The verdicts, with every change told in the log."""
    series.jobs_withdrawn.add(("cancelled",), sum(map(_withdrawn, verdicts)))
    if trail.heard():
        for job_id, verdict in zip(ids, verdicts, strict=True):
            if isinstance(verdict, Moved) and verdict.before is not verdict.state:
                trail.changed(
                    component, job_id, before=verdict.before, after=verdict.state, correlation_id=correlation_id
                )
    return verdicts


def _withdrawn(verdict: Verdict) -> bool:
    """Cancelled before it began."""
    return isinstance(verdict, Moved) and not verdict.before.terminal and verdict.state is State.CANCELLED


def sole(verdicts: Sequence[Verdict]) -> Moved:
    """The verdict on the only job; an error is raised."""
    [verdict] = verdicts
    if isinstance(verdict, Moved):
        return verdict
    raise verdict
