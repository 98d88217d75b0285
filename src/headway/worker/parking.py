"""Tells of jobs that can't be run here."""

from __future__ import annotations

import msgspec

from headway.model.job import Claim
from headway.observe.logs import get_logger

AGAIN_AFTER = 60.0
"""Seconds after which the same is told once more."""
DIFFERENT = 1000
"""So many names with their reasons are remembered."""

log = get_logger("headway.worker")


class Told(msgspec.Struct):
    """When it was told last, and how many tries there were since."""

    at: float
    since: int = 0


class Parking:
    """Each name and reason is told at most once a minute: parked jobs are tried again every few seconds, and there may
    be thousands."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], Told] = {}

    def tell(self, claim: Claim, why: str, now: float) -> None:
        """This one was given back, at this steady time."""
        told = self._told.get((claim.name, why))
        if told is not None and now - told.at < AGAIN_AFTER:
            told.since += 1
            return
        untold = told.since if told is not None else 0
        log.warning("job.parked", job_id=str(claim.id), name=claim.name, why=why, untold=untold)
        if len(self._told) >= DIFFERENT:
            self._told.clear()
        self._told[claim.name, why] = Told(now)
