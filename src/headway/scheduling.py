"""What an app can do with schedules. Each act has a blocking form and an async one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar, Unpack
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from headway.client import Client
from headway.clock import Clock
from headway.components.announced import Announced
from headway.components.create import run_schedule
from headway.functions import Call, JobFunction
from headway.jobs import Job
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies
from headway.model.errors import InvalidSchedule, NameTaken
from headway.model.submission import Submission
from headway.model.when import Fire, When
from headway.options import base_of_call, build
from headway.schedules import (
    Drafting,
    Schedule,
    ScheduleOptions,
    changed_schedule,
    find_schedule,
    new_schedule,
    schedule_of,
)
from headway.store.scripts.ledger import Line
from headway.store.scripts.schedules import ScheduleFilter, ScheduleRecord
from headway.vault.vault import Vault

T = TypeVar("T")

JobSpec = JobFunction[Any, Any] | Call | Mapping[str, Any]
"""The job that a schedule makes: a function, a call of one with its arguments, or the body of a job of any kind."""
Named = ScheduleRecord | UUID | str
"""A schedule, by itself, its id or its name."""

_SAME = ("name", "queue", "priority", "key", "timeout", "retry", "on_conflict", "dedupe", "on_parent_failure")
_OPTIONS = {
    **{name: name for name in (*_SAME, "tags", "metadata", "retain", "hold")},
    "expires_in": "expires",
}
"""What a call may say of its job, and how a body says it."""
_NOT_HERE = ("run_at", "delay", "expires_at", "after")
"""What the schedule says, or nobody can."""


class Scheduling(ABC):
    """The part of an app that keeps schedules: those of its code and all others in its store."""

    name: str
    client: Client
    functions: dict[str, JobFunction[Any, Any]]
    announced: Announced
    _clock: Clock

    @property
    @abstractmethod
    def vault(self) -> Vault:
        """Where secrets, scripts and credentials are kept."""

    @abstractmethod
    def block(self, call: Coroutine[Any, Any, T], name: str) -> T:
        """Wait for a call from plain code."""

    @abstractmethod
    async def aget(self, job_id: UUID) -> Job[Any]:
        """The job as it is now."""

    def schedule(
        self,
        name: str,
        when: When | str | Schedule,
        job: JobSpec,
        *,
        replace: bool = False,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleRecord:
        """Run a job by itself, again and again: `app.schedule("nightly", cron("0 3 * * *"), report.call("all"))`.
        Raises NameTaken if there is one of that name, unless it is to be replaced."""
        return self.block(self.aschedule(name, when, job, replace=replace, **options), "schedule")

    async def aschedule(
        self,
        name: str,
        when: When | str | Schedule,
        job: JobSpec,
        *,
        replace: bool = False,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleRecord:
        """Run a job by itself, again and again."""
        body = schedule_of(when, **options).body(name, self._job_body(job))
        drafting = Drafting(Bodies(load_kinds(), self.announced, self.vault), self.announced)
        draft, _ = await drafting.draft(new_schedule(body, self._clock.now()))
        try:
            return await self.client.call_patiently(lambda store: store.create_schedule(draft, by=self.name))
        except NameTaken:
            if not replace:
                raise
        before = await self.aget_schedule(name)
        draft, _ = await drafting.draft(changed_schedule(before.schedule, body))
        return await self.client.call_patiently(lambda store: store.change_schedule(draft, None, by=self.name))

    def unschedule(self, schedule: Named) -> None:
        """Remove a schedule, with its ledger; the jobs it made stay. One that code declares comes back with the next
        start: pause it instead, or remove it there."""
        self.block(self.aunschedule(schedule), "unschedule")

    async def aunschedule(self, schedule: Named) -> None:
        """Remove a schedule, with its ledger; the jobs it made stay."""
        found = await self._id(schedule)
        await self.client.call_patiently(lambda store: store.delete_schedule(found))

    def schedules(self, **wanted: Any) -> list[ScheduleRecord]:
        """Schedules by name, those that match: `name=`, `name_prefix=`, `tag=`, `paused=`, `cursor=`, `limit=`."""
        return self.block(self.aschedules(**wanted), "schedules")

    async def aschedules(self, **wanted: Any) -> list[ScheduleRecord]:
        """Schedules by name, those that match."""
        unknown = sorted(wanted.keys() - set(ScheduleFilter.__struct_fields__))
        if unknown:
            known = ", ".join(ScheduleFilter.__struct_fields__)
            raise InvalidSchedule(f"there is no filter {unknown[0]!r}: use some of {known}", field=unknown[0])
        found = await self.client.call(lambda store: store.find_schedules(ScheduleFilter(**wanted)))
        return [record for record in found if isinstance(record, ScheduleRecord)]

    def get_schedule(self, schedule: Named) -> ScheduleRecord:
        """The schedule as it is now. Raises ScheduleNotFound."""
        return self.block(self.aget_schedule(schedule), "get_schedule")

    async def aget_schedule(self, schedule: Named) -> ScheduleRecord:
        """The schedule as it is now. Raises ScheduleNotFound."""
        named = schedule.id if isinstance(schedule, ScheduleRecord) else schedule
        return await self.client.call(lambda store: find_schedule(store, named))

    def pause_schedule(self, schedule: Named, reason: str | None = None) -> ScheduleRecord:
        """Fire no more until it is resumed."""
        return self.block(self.apause_schedule(schedule, reason), "pause_schedule")

    async def apause_schedule(self, schedule: Named, reason: str | None = None) -> ScheduleRecord:
        """Fire no more until it is resumed."""
        found = await self._id(schedule)
        return await self.client.call_patiently(lambda store: store.pause_schedule(found, by=self.name, reason=reason))

    def resume_schedule(self, schedule: Named) -> ScheduleRecord:
        """Go on from now; the ledger tells what was missed."""
        return self.block(self.aresume_schedule(schedule), "resume_schedule")

    async def aresume_schedule(self, schedule: Named) -> ScheduleRecord:
        """Go on from now; the ledger tells what was missed."""
        found = await self._id(schedule)
        return await self.client.call_patiently(lambda store: store.resume_schedule(found, by=self.name))

    def run_schedule(self, schedule: Named) -> Job[Any]:
        """One job of it at once, beside its timetable."""
        return self.block(self.arun_schedule(schedule), "run_schedule")

    async def arun_schedule(self, schedule: Named) -> Job[Any]:
        """One job of it at once, beside its timetable."""
        found, job_id = await self._id(schedule), uuid7()
        answer = await self.client.call_patiently(lambda store: run_schedule(store, found, job_id, by=self.name))
        return await self.aget(answer.job_id)

    def preview_schedule(
        self, schedule: Named | When | Schedule, count: int = 10, after: datetime | None = None
    ) -> list[Fire]:
        """The coming fires, with the jumps of the zone's clocks marked: of a schedule that is stored, or of one that is
        only thought of (`cron(…)`, `every(…)`, `Schedule(…)`)."""
        return self.block(self.apreview_schedule(schedule, count, after), "preview_schedule")

    async def apreview_schedule(
        self, schedule: Named | When | Schedule, count: int = 10, after: datetime | None = None
    ) -> list[Fire]:
        """The coming fires, with the jumps of the zone's clocks marked."""
        now = after or self._clock.now()
        if isinstance(schedule, When | Schedule):
            thought = new_schedule(schedule_of(schedule).body("thought of", {"kind": "call"}), now)
        else:
            thought = (await self.aget_schedule(schedule)).schedule
        return list(islice(thought.preview(now), count))

    def occurrences(self, schedule: Named, limit: int = 100) -> list[Line]:
        """What became of its nominal times, latest first."""
        return self.block(self.aoccurrences(schedule, limit), "occurrences")

    async def aoccurrences(self, schedule: Named, limit: int = 100) -> list[Line]:
        """What became of its nominal times, latest first."""
        found = await self._id(schedule)
        return await self.client.call(lambda store: store.occurrences(found, limit=limit))

    async def _id(self, schedule: Named) -> UUID:
        return schedule.id if isinstance(schedule, ScheduleRecord) else (await self.aget_schedule(schedule)).id

    def _job_body(self, job: JobSpec) -> dict[str, Any]:
        if isinstance(job, JobFunction):
            job = job.call()
        return self._call_body(job.submission) if isinstance(job, Call) else dict(job)

    def _call_body(self, call: Submission) -> dict[str, Any]:
        """A call of a function as the body of a job: what it says beyond what the function's decorator says."""
        for name in _NOT_HERE:
            if getattr(call, name):
                raise InvalidSchedule(f"job: leave {name} out, the schedule says when jobs run", field=f"job.{name}")
        body: dict[str, Any] = {"kind": call.kind, **msgspec.json.decode(call.payload)}
        function = self.functions[body["function"]].function
        usual = build(base_of_call(function.name, function.options, function.code_version), call.payload, {})
        for field, name in _OPTIONS.items():
            if getattr(call, field) != getattr(usual, field):
                body[name] = getattr(call, field)
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(body))
        return plain
