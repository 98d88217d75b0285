"""Queues and workers at a glance. What it costs grows with the jobs that are open, not with those that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from headway.model.limits import QueueSettings
from headway.model.overview import Pause, QueueStats, WorkerStats
from headway.model.states import State
from headway.store.scripts import settings, views
from headway.store.statements import Row, Script, one

_HEX = 32


def queue_stats() -> Script[list[QueueStats]]:
    """Every queue that holds open jobs, is served or has settings; by name."""
    yield one("still_view")
    held = yield one("count_held")
    workers = yield from _workers(held)
    numbers = yield from _numbers(held)
    limits = yield from settings.limits()
    paused = yield from pauses()
    served = {queue for worker in workers if worker.alive for queue in worker.info.queues}
    return [
        QueueStats(
            name=name,
            settings=limits.queues.get(name) or QueueSettings(name=name),
            pause=paused.get(name),
            workers=tuple(worker.info.name for worker in workers if worker.serves(name)),
            **numbers.get(name, {}),
        )
        for name in sorted({*numbers, *limits.queues, *served})
    ]


def worker_stats() -> Script[list[WorkerStats]]:
    """All workers, those gone silent too."""
    yield one("still_view")
    return (yield from workers_now())


def workers_now() -> Script[list[WorkerStats]]:
    """The same, as part of a larger look."""
    return (yield from _workers((yield one("count_held"))))


def _workers(held: Sequence[Row]) -> Script[list[WorkerStats]]:
    infos = yield from views.workers()
    now = yield from store_time()
    return [
        WorkerStats(
            info=info,
            held=sum(row["number"] for row in held if row["worker_id"] == info.id),
            silent=max(0.0, (now - (info.seen_at or now)).total_seconds()),
        )
        for info in infos
    ]


def pauses() -> Script[dict[str, Pause]]:
    """The queues that are paused."""
    return {row["name"]: Pause(row["paused_at"], row["paused_by"]) for row in (yield one("pauses"))}


def store_time() -> Script[datetime]:
    [row] = yield one("store_time")
    now: datetime = row["now_at"]
    return now


def ids_starting(prefix: str, limit: int) -> Script[list[UUID]]:
    """The first jobs whose id begins like this: hexadecimal digits, hyphens or not."""
    digits = prefix.replace("-", "").lower()
    first, last = UUID(digits.ljust(_HEX, "0")), UUID(digits.ljust(_HEX, "f"))
    return [row["id"] for row in (yield one("ids_between", first_id=first, last_id=last, limit=limit))]


_PLACES = {
    State.BLOCKED: "blocked",
    State.CREATING: "on_hold",
    State.RUNNING: "running",
    State.CANCELLING: "cancelling",
}


def _numbers(held: Sequence[Row]) -> Script[dict[str, dict[str, Any]]]:
    """The figures of `QueueStats`, by queue."""
    now = yield from store_time()
    numbers = {row["queue"]: _waiting(row, now) for row in (yield one("count_waiting"))}
    for row in [*(yield one("count_held_back")), *held]:
        place, queue = _PLACES[State(row["state"])], numbers.setdefault(row["queue"], {})
        queue[place] = queue.get(place, 0) + row["number"]
    return numbers


def _waiting(row: Row, now: datetime) -> dict[str, Any]:
    oldest = {"oldest_due": (now - row["first_run_at"]).total_seconds()} if row["due"] else {}
    return {"waiting": row["waiting"], "due": row["due"], **oldest}
