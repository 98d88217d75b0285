"""Tells the log and the bus what has become of jobs, once the store has recorded it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headway.bus.contract import Bus, Event
from headway.clock import Clock
from headway.model.job import Claim, Ended
from headway.model.states import Outcome, State
from headway.observe import trail


class Herald:
    """The news of one worker. On the bus at most once each: what it loses is not told again."""

    def __init__(self, bus: Bus | None, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock

    def began(self, claims: Sequence[Claim]) -> None:
        """These are held by this worker now."""
        if trail.heard():
            for claim in claims:
                _tell(claim, State.SCHEDULED, State.RUNNING)
        if self._bus is not None:
            at = self._clock.now()
            self._bus.emit([_event(claim, State.RUNNING, None, at) for claim in claims])

    def ended(self, claim: Claim, end: Ended) -> None:
        """This one has moved on."""
        if end.state is None:
            return
        if trail.heard():
            _tell(claim, State.RUNNING, end.state)
        if self._bus is not None:
            self._bus.emit([_event(claim, end.state, end.outcome, self._clock.now())])


def _tell(claim: Claim, before: State, after: State) -> None:
    trail.changed("worker", claim.id, before=before, after=after, correlation_id=claim.correlation_id)


def _event(claim: Claim, state: State, outcome: Outcome | None, at: datetime) -> Event:
    return Event(
        event=f"job.{state.value}",
        job_id=claim.id,
        kind=claim.kind,
        name=claim.name,
        queue=claim.queue,
        state=state,
        outcome=outcome,
        attempt=claim.attempt,
        at=at,
    )
