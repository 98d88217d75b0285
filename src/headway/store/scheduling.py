"""The part of a store over SQL that keeps schedules: `Schedules` of the contract, by scripts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from headway.model.errors import KeyBusy, StoreUnavailable
from headway.model.overview import SILENT_AFTER
from headway.store.driver import Driver, Lane
from headway.store.scripts import declare, fire, schedules
from headway.store.scripts.fire import Fired, NotFired, ScheduleStats
from headway.store.scripts.ledger import Line
from headway.store.scripts.schedules import Draft, Found, ScheduleFilter, ScheduleRecord
from headway.store.scripts.submit import Answer


class SqlSchedules:
    """Schedules through a driver. Not on the lane of writes: a tick may take a while, and no worker waits for it."""

    _driver: Driver

    async def create_schedule(self, draft: Draft, *, by: str | None) -> ScheduleRecord:
        return await self._driver.run(lambda: schedules.create(draft, by=by), Lane.KEYED)

    async def change_schedule(self, draft: Draft, version: int | None, *, by: str | None) -> ScheduleRecord:
        return await self._driver.run(lambda: schedules.change(draft, version, by=by), Lane.KEYED)

    async def pause_schedule(self, schedule_id: UUID, *, by: str | None, reason: str | None) -> ScheduleRecord:
        return await self._driver.run(lambda: schedules.pause(schedule_id, by=by, reason=reason), Lane.KEYED)

    async def resume_schedule(self, schedule_id: UUID, *, by: str | None) -> ScheduleRecord:
        return await self._driver.run(lambda: schedules.resume(schedule_id, by=by), Lane.KEYED)

    async def run_schedule(self, schedule_id: UUID, job_id: UUID, *, by: str | None) -> Answer:
        return await self._driver.run(lambda: schedules.run_now(schedule_id, job_id, by=by), Lane.KEYED)

    async def delete_schedule(self, schedule_id: UUID, version: int | None = None) -> None:
        await self._driver.run(lambda: schedules.delete(schedule_id, version), Lane.KEYED)

    async def declare_schedules(self, drafts: Sequence[Draft], source: str, code_version: str | None) -> list[str]:
        # Not on the lane of keys: a worker that starts needs no other connection for it than those it has.
        return await self._driver.run(lambda: declare.declare(drafts, source, code_version), Lane.WRITE)

    async def schedules(self, schedule_ids: Sequence[UUID]) -> list[Found | None]:
        return await self._driver.run(lambda: schedules.get(schedule_ids), Lane.READ, single=True)

    async def find_schedules(self, wanted: ScheduleFilter) -> list[Found]:
        return await self._driver.run(lambda: schedules.find(wanted), Lane.READ, single=True)

    async def occurrences(self, schedule_id: UUID, *, before: datetime | None = None, limit: int = 100) -> list[Line]:
        return await self._driver.run(lambda: schedules.occurrences(schedule_id, before, limit), Lane.READ, single=True)

    async def calendar(self, schedule_id: UUID) -> list[Line]:
        return await self._driver.run(lambda: schedules.calendar(schedule_id), Lane.READ, single=True)

    async def fire(self, *, previous: datetime | None = None, limit: int = 1000) -> Fired:
        tried: list[UUID] = []
        try:
            return await self._driver.run(lambda: fire.fire(limit, previous, tried), Lane.KEYED)
        except Exception as error:
            if not tried or (isinstance(error, StoreUnavailable) and not isinstance(error, KeyBusy)):
                raise
            raise NotFired(tried, error) from error

    async def put_aside(self, schedule_id: UUID, seconds: float) -> bool:
        return await self._driver.run(lambda: fire.put_aside(schedule_id, seconds), Lane.KEYED)

    async def realign(self, after_id: UUID | None, limit: int = 500) -> UUID | None:
        return await self._driver.run(lambda: fire.realign(after_id, limit), Lane.KEYED)

    async def schedulers(self) -> int:
        return await self._driver.run(lambda: fire.schedulers(SILENT_AFTER), Lane.WRITE, single=True)

    async def schedule_stats(self) -> ScheduleStats:
        return await self._driver.run(fire.stats, Lane.READ, single=True)

    async def prune_ledger(self, age: float, limit: int = 1000) -> int:
        return await self._driver.run(lambda: schedules.prune(age, limit), Lane.WRITE)
