"""Schedules in a house: made in the words of a body, fired as a scheduler does it, and what is told of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from headway.model.errors import HeadwayError
from headway.model.filters import JobFilter
from headway.model.job import JobRecord
from headway.model.schedule import Origin, from_body, to_body
from headway.model.submission import Submission
from headway.store.scripts.fire import Fired
from headway.store.scripts.ledger import Line
from headway.store.scripts.schedules import Draft, ScheduleFilter, ScheduleRecord
from tests.contract.house import House, accepted

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86_400))
MINUTELY: dict[str, Any] = {
    "name": "report",
    "schedule": "* * * * *",
    "overlap": "allow",
    "job": {"kind": "call", "function": "report"},
}


class Firing:
    """One scheduler on a house's store; `previous` is carried on from tick to tick as it does."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.previous: datetime | None = None

    async def second(self) -> Firing:
        """A scheduler in another process."""
        return Firing(await self.house.second())

    @property
    def now(self) -> datetime:
        return self.house.now

    # Keeping

    def draft(self, *, template: dict[str, Any] | None = None, **body: Any) -> Draft:
        schedule = from_body(MINUTELY | body, id=self.house.new_id(), created_at=self.now)
        return Draft(schedule=schedule, template=self._template(template or {}))

    def declared(self, code_version: str | None = None, **body: Any) -> Draft:
        """As an app's code declares it."""
        schedule = from_body(
            MINUTELY | body,
            id=self.house.new_id(),
            created_at=self.now,
            origin=Origin.CODE,
            code_version=code_version,
        )
        return Draft(schedule=schedule, template=self._template({"code_version": code_version}))

    async def create(self, *, template: dict[str, Any] | None = None, **body: Any) -> UUID:
        made = await self.house.store.create_schedule(self.draft(template=template, **body), by="ann")
        return made.schedule.id

    async def change(self, schedule_id: UUID, version: int | None = None, **changes: Any) -> ScheduleRecord:
        """An operator's edit of some fields."""
        before = await self.get(schedule_id)
        old = before.schedule
        schedule = from_body(
            to_body(old) | changes,
            id=old.id,
            created_at=old.created_at,
            origin=old.origin,
            code_version=old.code_version,
        )
        draft = Draft(schedule=schedule, template=before.template)
        return await self.house.store.change_schedule(draft, version, by="bob")

    async def get(self, schedule_id: UUID) -> ScheduleRecord:
        [found] = await self.house.store.schedules([schedule_id])
        assert isinstance(found, ScheduleRecord), found
        return found

    async def named(self, name: str = "report") -> ScheduleRecord:
        [found] = await self.house.store.find_schedules(ScheduleFilter(name=name))
        assert isinstance(found, ScheduleRecord), found
        return found

    async def names(self, **wanted: Any) -> list[str]:
        return [
            found.schedule.name if isinstance(found, ScheduleRecord) else found.name
            for found in await self.house.store.find_schedules(ScheduleFilter(**wanted))
        ]

    async def declare(self, *drafts: Draft, source: str = "shop", version: str | None = None) -> list[str]:
        return await self.house.store.declare_schedules(drafts, source, version)

    # Firing

    async def tick(self, limit: int = 1000) -> Fired:
        """Fire until nothing is left, and remember up to when nothing is."""
        jobs = skipped = schedules = 0
        while True:
            fired = await self.house.store.fire(previous=self.previous, limit=limit)
            jobs, skipped, schedules = jobs + fired.jobs, skipped + fired.skipped, schedules + fired.schedules
            if not fired.schedules or fired.wait is None or fired.wait > 0:
                break
        self.previous = fired.clear_until
        return Fired(at=fired.at, wait=fired.wait, jobs=jobs, skipped=skipped, schedules=schedules)

    async def pass_by(self, span: timedelta, step: timedelta = SECOND) -> int:
        """Let time pass, ticking at each step; how many jobs were made."""
        jobs = 0
        for _ in range(int(span / step)):
            self.house.clock.advance(step.total_seconds())
            jobs += (await self.tick()).jobs
        return jobs

    async def realign(self, limit: int = 500) -> None:
        cursor = await self.house.store.realign(None, limit)
        while cursor is not None:
            cursor = await self.house.store.realign(cursor, limit)

    async def run(self, schedule_id: UUID) -> UUID:
        """Once by hand."""
        answer = await self.house.store.run_schedule(schedule_id, self.house.new_id(), by="ann")
        return accepted(answer).job_id

    # Looking

    async def lines(self, schedule_id: UUID, limit: int = 1000) -> list[Line]:
        """The ledger, in the order of time."""
        return (await self.house.store.occurrences(schedule_id, limit=limit))[::-1]

    async def told(self, schedule_id: UUID) -> list[tuple[float, float, int, str]]:
        """The ledger in short: seconds from the start of 2030, how many, and what became of them."""
        return [
            (self.since_start(line.nominal_at), self.since_start(line.until_at), line.count, line.reason or "job")
            for line in await self.lines(schedule_id)
        ]

    async def jobs(self) -> list[JobRecord]:
        """All jobs, in the order of their nominal times."""
        found: list[JobRecord] = []
        cursor: UUID | None = None
        while page := await self.house.store.find(JobFilter(limit=1000, cursor=cursor)):
            found += page
            cursor = page[-1].id
        return sorted(found, key=lambda job: (job.nominal_at or job.created_at, job.id))

    async def nominal(self) -> list[float]:
        """The nominal times of all jobs."""
        return [self.since_start(job.nominal_at) for job in await self.jobs() if job.nominal_at]

    def since_start(self, moment: datetime) -> float:
        return (moment - datetime(2030, 1, 1, tzinfo=moment.tzinfo)).total_seconds()

    def _template(self, options: dict[str, Any]) -> Submission:
        return self.house.job("report", **options)


async def refused(act: Any, error: type[HeadwayError]) -> HeadwayError:
    """The refusal that an act meets."""
    try:
        await act
    except error as met:
        return met
    raise AssertionError(f"{error.__name__} was not raised")


def minutes(*numbers: int) -> list[float]:
    return [60.0 * number for number in numbers]
