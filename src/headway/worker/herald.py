"""Tells the log, the bus and those who watch what has become of this worker's jobs, once the store has recorded it.

What follows from it within the store (who waited goes on, who can't go on is cancelled) the store tells by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from headway.bus.contract import Bus
from headway.clock import Clock, sleep
from headway.model.errors import StoreUnavailable
from headway.model.events import Transition
from headway.model.job import Claim, Ended
from headway.model.states import Outcome, State
from headway.observe import trail
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.scripts.news import WATCH_TERM
from headway.worker.attempt import Attempt
from headway.worker.judge import Move
from headway.worker.parts import Accepted

PAUSE = 0.05
"""Seconds between two tellings; people don't see more."""
MOST = 500
"""Told at a time. Of a worker that is faster, watchers hear that they should look for themselves."""

log = get_logger("headway.worker")


class Herald:
    """The news of one worker, each told at most once: what is lost is not told again. With a bus that carries them,
    without one the store, if anybody watches."""

    def __init__(self, store: Store, bus: Bus | None, clock: Clock) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._watched_until = 0.0
        self._untold: list[Transition] = []
        self._some = asyncio.Event()

    def watched(self) -> None:
        """Somebody wants to hear of everything, for a while."""
        self._watched_until = self._clock.monotonic() + WATCH_TERM

    def began(self, claims: Sequence[Claim]) -> None:
        """These are held by this worker now."""
        if trail.heard():
            for claim in claims:
                _write_line(claim, State.SCHEDULED, State.RUNNING)
        if self._listened_to():
            self._tell([_transition(claim, State.RUNNING, None) for claim in claims])

    def ended(self, ends: Sequence[Accepted]) -> None:
        """These have moved on."""
        if trail.heard():
            for attempt, move, end in ends:
                if end.state is not None:
                    _write_line(attempt.claim, _before(attempt, move, end), end.state)
        if self._listened_to():
            self._tell(
                [_transition(each.claim, end.state, end.outcome) for each, _, end in ends if end.state is not None]
            )

    async def run(self) -> None:
        """Tell those who watch."""
        while True:
            await self._some.wait()
            self._some.clear()
            told, self._untold = self._untold, []
            try:
                await self._store.tell(told[:MOST])
                if len(told) > MOST:
                    await self._store.tell([])
            except StoreUnavailable as error:
                log.debug("worker.news_lost", error=str(error))
            await sleep(self._clock, PAUSE)

    def _listened_to(self) -> bool:
        return self._bus is not None or self._clock.monotonic() < self._watched_until

    def _tell(self, changes: list[Transition]) -> None:
        if self._bus is not None:
            at = self._clock.now()
            self._bus.emit([change.event(at) for change in changes])
        elif len(self._untold) <= MOST:
            self._untold += changes
            self._some.set()


def _before(attempt: Attempt, move: Move, end: Ended) -> State:
    """Where it came from. That a cancel had been asked for may show only in what the store made of its end."""
    overruled = end.state is State.CANCELLED and move.outcome is not Outcome.CANCELLED
    return State.CANCELLING if attempt.cancelled or overruled else State.RUNNING


def _write_line(claim: Claim, before: State, after: State) -> None:
    trail.changed(
        "worker",
        claim.id,
        before=before,
        after=after,
        correlation_id=claim.correlation_id,
        traceparent=claim.traceparent,
    )


def _transition(claim: Claim, state: State, outcome: Outcome | None) -> Transition:
    return Transition(
        job_id=claim.id,
        kind=claim.kind,
        name=claim.name,
        queue=claim.queue,
        state=state,
        outcome=outcome,
        attempt=claim.attempt,
    )
