"""How far claims have looked through a queue, where jobs that may not start stand in their way."""

from __future__ import annotations

from collections.abc import Set
from datetime import UTC, datetime
from uuid import UUID

START = datetime(1, 1, 1, tzinfo=UTC)
NO_ID = UUID(int=0)
WALK_AGAIN = 2.0
"""Seconds after which a claim starts from the beginning again, to see what was put before the place it had reached."""


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
