"""Schedules of a world, and the schedulers that fire them: crashed, frozen and stopped like everybody else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from headway.clock import sleep
from headway.model.errors import HeadwayError
from headway.model.schedule import Misfire, Overlap, Schedule, from_body
from headway.model.submission import Submission
from headway.model.when import Every
from headway.scheduler import Scheduler
from headway.store.contract import Store
from headway.store.scripts.ledger import Line
from headway.store.scripts.schedules import Draft, ScheduleRecord
from tests.sim.check import Checker
from tests.sim.loop import START
from tests.sim.process import Database, Process
from tests.sim.scripted import Script

T = TypeVar("T")

CATCH_UP = 14.0
"""Seconds without faults after which schedulers have nothing left to do: one may be frozen for another 2.5 leases, then
stop as it was told, and be started again 1.5 leases later."""
LATE = 1.5
"""Seconds by which a schedule may be late then: its turn may have come just before somebody looks."""


class Calendar:
    """What is scheduled in one world. Draws from a chance of its own, so that other worlds stay as they were."""

    def __init__(self, seed: int, database: Database, checker: Checker) -> None:
        self.chance = Random(seed ^ 0x5CED)
        self.database = database
        self.checker = checker
        self.schedules: dict[UUID, Schedule] = {}
        self.schedulers = self.chance.choice((0, 0, 0, 1, 2))
        """How many processes fire; without any there are no schedules."""

    async def open(self, process: Process) -> None:
        """Make the schedules, before anything goes wrong."""
        store = self.database.connect(process)
        for number in range(self.chance.randint(1, 3) if self.schedulers else 0):
            draft = self._draft(number)
            made = await store.create_schedule(draft, by="sim")
            self.schedules[made.id] = made.schedule
            self.checker.scheduled[made.id] = (made.schedule, draft.template)

    async def fire(self, process: Process, stop: Callable[[], Awaitable[object]]) -> None:
        """The life of a scheduler."""
        scheduler = Scheduler(process.clock, limit=self.chance.choice((1, 2, 1000)))
        process.spawn(_stop(scheduler, stop))
        await scheduler.run(self.database.connect(process))

    async def edit(self, process: Process) -> None:
        """A person who pauses, resumes and runs by hand, while there is trouble."""
        store = self.database.connect(process)
        for _ in range(self.chance.randint(0, 4) if self.schedules else 0):
            await sleep(process.clock, self.chance.expovariate(0.4))
            key = self.chance.choice(list(self.schedules))
            if self.chance.random() < 0.5:
                await self._insist(process, lambda key=key: store.pause_schedule(key, by="sim", reason="as drawn"))  # type: ignore[misc]
                await sleep(process.clock, self.chance.uniform(0.0, 3.0))
            await self._insist(process, lambda key=key: store.resume_schedule(key, by="sim"))  # type: ignore[misc]

    async def close(self, process: Process) -> None:
        """Without faults all schedules must be up to date soon; then they are paused, so that the world can end."""
        store = self.database.connect(process)
        for key in self.schedules:
            await self._insist(process, lambda key=key: store.resume_schedule(key, by="sim"))  # type: ignore[misc]
        await sleep(process.clock, CATCH_UP if self.schedules else 0.0)
        for key in self.schedules:
            found = await self._get(store, key)
            if found.next_at is None or found.next_at < process.clock.now() - timedelta(seconds=LATE):
                self.checker.fail(
                    "I12", f"{found.name} has stalled: due at {found.next_at}, it is {process.clock.now()}"
                )
            await self._insist(process, lambda key=key: store.pause_schedule(key, by="sim", reason="the end"))  # type: ignore[misc]

    async def check(self, process: Process) -> None:
        """Every nominal time stands in the ledger once, and those that fired are those that became jobs."""
        store = self.database.connect(process)
        for key, schedule in self.schedules.items():
            lines = (await store.occurrences(key, limit=100_000))[::-1]
            self._check_lines(schedule, lines, (await self._get(store, key)).last_at)
            fired = {line.nominal_at for line in lines if line.job_id}
            made = {at for schedule_id, at in self.checker.fired if schedule_id == key}
            if fired != made:
                self.checker.fail("I12", f"{schedule.name}: jobs and ledger differ in {sorted(fired ^ made)}")
            for line in lines:
                self.checker.count("times fired" if line.job_id else f"times skipped: {line.reason}")

    def _check_lines(self, schedule: Schedule, lines: list[Line], last_at: Any) -> None:
        assert isinstance(schedule.when, Every)
        step, nominal = timedelta(seconds=schedule.when.seconds), schedule.opening()
        for line in lines:
            if line.nominal_at != nominal or line.until_at != nominal + (line.count - 1) * step:
                self.checker.fail("I12", f"{schedule.name}: {nominal} is missing or recorded twice: {line}")
            nominal = line.until_at + step
        if not lines or last_at != nominal - step:
            self.checker.fail("I12", f"{schedule.name} stands at {last_at}, the ledger ends at {nominal - step}")

    def _draft(self, number: int) -> Draft:
        chance = self.chance
        body = {
            "name": f"schedule{number}",
            "schedule": {"every": chance.choice((0.5, 1.0, 2.5))},
            "misfire": chance.choice(list(Misfire)),
            "misfire_limit": chance.choice((2, 100)),
            "overlap": chance.choice(list(Overlap)),
            "jitter": chance.choice((0.0, 0.0, 1.0)),
            "job": {"kind": "sim"},
        }
        script = Script(
            do=chance.choice(("succeed", "succeed", "flaky", "fail")), run=chance.uniform(0.0, 1.2), times=1
        )
        template = Submission(
            id=UUID(int=0), kind="sim", name="fired", payload=msgspec.json.encode(script).decode(), queue="default"
        )
        schedule = from_body(body, id=UUID(int=0x7 << 76 | 0x2 << 62 | chance.getrandbits(62)), created_at=START)
        return Draft(schedule=schedule, template=template)

    async def _get(self, store: Store, key: UUID) -> ScheduleRecord:
        [found] = await store.schedules([key])
        assert isinstance(found, ScheduleRecord)
        return found

    async def _insist(self, process: Process, act: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await act()
            except HeadwayError:
                await sleep(process.clock, 0.3)


async def _stop(scheduler: Scheduler, stop: Callable[[], Awaitable[object]]) -> None:
    await stop()
    scheduler.stop()
