"""An act on all jobs that match: chosen first, then done in steps, so that others get their turn in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from uuid import UUID

import msgspec

from headway.clock import Clock, sleep
from headway.components.status import find_jobs
from headway.model.errors import KeyBusy
from headway.model.filters import JobFilter
from headway.store.contract import Store
from headway.store.scripts.cancel import Verdict

STEP = 200
"""Jobs in one transaction; an interruption leaves whole steps behind."""
PAGE = 1000
BUSY_TRIES = 10
BUSY_WAIT = 0.2

Ask = Callable[[Store, Sequence[UUID]], Awaitable[list[Verdict]]]


async def matching(store: Store, wanted: JobFilter) -> list[UUID]:
    """The ids, oldest first: what is retried in steps keeps its order."""
    found, cursor = list[UUID](), wanted.cursor
    while True:
        page = await find_jobs(store, msgspec.structs.replace(wanted, limit=PAGE, cursor=cursor))
        found += [job.id for job in page.jobs]
        if page.cursor is None:
            return found[::-1]
        cursor = page.cursor


async def in_steps(
    store: Store, ids: Sequence[UUID], ask: Ask, clock: Clock
) -> AsyncIterator[list[tuple[UUID, Verdict]]]:
    """What came of each job, step by step."""
    for start in range(0, len(ids), STEP):
        step = ids[start : start + STEP]
        yield list(zip(step, await _patiently(store, step, ask, clock), strict=True))


async def _patiently(store: Store, step: Sequence[UUID], ask: Ask, clock: Clock) -> list[Verdict]:
    """Rows in other hands are waited for; in the end they are named as not done, and the rest goes on."""
    for left in reversed(range(BUSY_TRIES)):
        try:
            return await ask(store, step)
        except KeyBusy as error:
            if not left:
                return [error for _ in step]
            await sleep(clock, BUSY_WAIT)
    return []
