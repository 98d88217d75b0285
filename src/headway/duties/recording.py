"""HISTORY: minute by minute, what each queue did and how much waited in it.

Every process writes down what it did itself, once a minute; one of them also looks how much waits, gathers the lines of
all into one for each queue and minute, later into longer steps, and removes old ones. What a process that is killed had
counted since its last line is lost: these are figures for people, not the truth about jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from uuid_utils.compat import uuid7

from headway.model.history import MINUTE, Figures, Row, floor
from headway.store.contract import Store

TERM = 75.0
"""Seconds for which one process is the one that looks and gathers."""
BEHIND = 0.2
"""Seconds after the full minute at which it is written down."""
HALF = timedelta(seconds=30)


class Counted(Protocol):
    """Who knows what a process has done."""

    def take(self) -> dict[str, Figures]: ...
    def put_back(self, taken: dict[str, Figures]) -> None: ...


class Recorder:
    """Writes the lines of one process; without `counted` it only looks at the store."""

    def __init__(self, holder: UUID, counted: Counted | None = None, new_id: Callable[[], UUID] = uuid7) -> None:
        self._holder = holder
        self._counted = counted
        self._new_id = new_id
        self._begun = False

    async def record(self, store: Store) -> float:
        """The minute that is over; seconds until the next one is."""
        now = await store.now()
        if self._begun:
            looks = await store.take_duty("history", self._holder, TERM)
            figures = await self._backlog(store) if looks else {}
            await self._write(store, figures)
            if looks:
                await store.gather_figures()
        self._begun = True
        return (floor(now, MINUTE) + MINUTE - now).total_seconds() + BEHIND

    async def flush(self, store: Store) -> None:
        """What is left when the process ends."""
        await self._write(store, {})

    async def _write(self, store: Store, figures: dict[str, Figures]) -> None:
        taken = self._counted.take() if self._counted is not None else {}
        if not taken and not figures:
            return
        try:
            at = floor(await store.now() - HALF, MINUTE)
            for queue, done in taken.items():
                figures.setdefault(queue, Figures()).add(done)
            await store.add_figures(self._new_id(), [Row(at, queue, found) for queue, found in figures.items()])
        except BaseException:
            if self._counted is not None:
                self._counted.put_back(taken)
            raise

    async def _backlog(self, store: Store) -> dict[str, Figures]:
        return {
            queue.name: Figures(due=queue.due, running=queue.running, oldest_due=queue.oldest_due or 0.0)
            for queue in await store.queue_stats()
        }
