"""How far a worker has claimed: rows before it are claimed already, and claims needn't walk over their remains."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from headway.store.statements import Row

START = datetime(1, 1, 1, tzinfo=UTC)
NO_ID = UUID(int=0)
RESCAN = 0.25
"""Seconds after which a claim starts from the beginning again, to see what was put before the mark meanwhile."""


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
        self.rank, self.run_at, self.id = row["rank"], row["run_at"], row["id"]
