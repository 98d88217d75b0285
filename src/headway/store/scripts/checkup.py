"""What the duties have left undone, for `headway doctor`."""

from __future__ import annotations

from headway.model.limits import Retention
from headway.model.overview import Stuck, Upkeep
from headway.store.scripts.walk import NO_ID
from headway.store.statements import Script, one

STUCK_LIMIT = 20
OLDEST = 1000
"""How many of the oldest jobs are looked at."""


def upkeep(retention: Retention, cancel_patience: float) -> Script[Upkeep]:
    """Leases that nobody rescues, cancels that nobody carries out, jobs that nobody prunes."""
    yield one("still_view")
    [lapsed] = yield one("count_lapsed")
    stuck = yield one("stuck_cancels", age=cancel_patience, limit=STUCK_LIMIT)
    oldest = yield one("oldest_job")
    old = yield one(
        "old_jobs",
        after_id=NO_ID,
        limit=OLDEST,
        completed=retention.completed,
        failed=retention.failed,
        horizon=0.0,
    )
    return Upkeep(
        lapsed=lapsed["number"],
        lapsed_for=lapsed["seconds"] or 0.0,
        stuck=tuple(Stuck(row["id"], row["name"], row["worker"], row["seconds"]) for row in stuck),
        overdue=sum(1 for row in old if row["past"]),
        oldest_created=oldest[0]["created_at"] if oldest else None,
    )
