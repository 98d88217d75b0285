"""How far a worker has claimed: rows before it are claimed already, and claims needn't walk over their remains."""

from __future__ import annotations

from collections.abc import Set
from datetime import UTC, datetime
from uuid import UUID

from headway.store.statements import Row

START = datetime(1, 1, 1, tzinfo=UTC)
NO_ID = UUID(int=0)
RESCAN = 0.25
"""Seconds after which a claim starts from the beginning again, to see what was put before the mark meanwhile."""
WALK_AGAIN = 2.0
"""The same for a claim that has to walk past many jobs of full keys: that takes it tens of milliseconds."""


class Watermark:
    """The place of the last claimed job of one queue; a new one stands before everything."""

    def __init__(self, made_at: float) -> None:
        self.made_at = made_at
        self.fresh = True
        self.rank = -32768
        self.run_at = START
        self.id = NO_ID

    def move(self, row: Row) -> None:
        self.fresh = False
        self.rank, self.run_at, self.id = row["rank"], row["due"], row["id"]


class Walk:
    """How far claims under limits have looked through one queue, while many jobs of full keys stand in their way: of
    what was due by then, only jobs of those keys are left."""

    def __init__(self, made_at: float) -> None:
        self.made_at = made_at
        self._until = START
        self._full: frozenset[str] = frozenset()

    def since(self, full: Set[str]) -> datetime:
        """From where on to look: from the start if one of the keys isn't full any more."""
        return self._until if self._full <= full else START

    def move(self, until: datetime, full: Set[str]) -> None:
        self._until, self._full = until, frozenset(full)

    def forget(self) -> None:
        self._until, self._full = START, frozenset()
