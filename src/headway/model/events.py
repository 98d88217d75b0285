"""What becomes of jobs, as it is told: a `Transition` that the store has recorded, and the `Event` others hear of."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from headway.model.states import Outcome, State

DELETED = "deleted"
"""Told instead of a state when a job is gone."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of a job; told at most once, and after the store has recorded it."""

    event: str
    job_id: UUID
    kind: str
    name: str
    queue: str
    state: State
    outcome: Outcome | None
    attempt: int
    at: datetime

    @property
    def key(self) -> str:
        """What subscriptions go by."""
        return self.event


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """A job as a change has left it."""

    job_id: UUID
    kind: str
    name: str
    queue: str
    state: State
    outcome: Outcome | None = None
    attempt: int = 0
    before: State | None = None
    """The state it was in; None: it is new."""
    correlation_id: str | None = None
    deleted: bool = False

    def event(self, at: datetime) -> Event:
        return Event(
            event=f"job.{DELETED if self.deleted else self.state.value}",
            job_id=self.job_id,
            kind=self.kind,
            name=self.name,
            queue=self.queue,
            state=self.state,
            outcome=self.outcome,
            attempt=self.attempt,
            at=at,
        )
