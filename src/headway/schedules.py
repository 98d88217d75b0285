"""A schedule as somebody asks for it, in code or as a body, and the draft it becomes: checked as a whole, before
anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from headway.kinds.bodies import Asked, Bodies, replaced
from headway.kinds.bodies import Origin as JobOrigin
from headway.kinds.contract import Functions
from headway.model.errors import InvalidJob, InvalidSchedule, ScheduleNotFound
from headway.model.retry import seconds
from headway.model.schedule import Misfire, Origin, Overlap, from_body, to_body
from headway.model.schedule import Schedule as StoredSchedule
from headway.model.submission import Submission
from headway.model.when import When
from headway.store.contract import Schedules
from headway.store.scripts.schedules import Draft, Found, ScheduleFilter, ScheduleRecord, Unreadable
from headway.store.scripts.walk import NO_ID

_CREATED = datetime.fromisoformat("2000-01-01T00:00:00+00:00")
_ELSEWHERE = {
    "on_conflict": "leave it out: what a fire does beside an unfinished job is said by the schedule's overlap",
    "after": "leave it out: jobs of a schedule come again and again, those to wait for don't",
}
"""What a job body may say, but not that of a schedule."""


class ScheduleOptions(TypedDict, total=False):
    """What may be said of a schedule besides when it fires and which job it makes."""

    timezone: str
    description: str
    misfire: str | Misfire
    misfire_limit: int
    overlap: str | Overlap
    jitter: float | timedelta
    start: datetime
    end: datetime
    paused: bool
    tags: Sequence[str]


class _Timed(msgspec.Struct, frozen=True):
    when: When | str


class Schedule(_Timed, frozen=True, kw_only=True):
    """When a function runs by itself, and what happens when that is late or takes too long.

        @app.job(schedule=Schedule(cron("0 6 * * *", tz="Europe/Berlin"), overlap="wait", args=("all",)))

    Where there is nothing else to say, `schedule="0 6 * * *"` or `schedule=every(300)` will do.
    """

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}
    timezone: str | None = None
    """For a plain expression; `cron(…, tz=)` has its own."""
    description: str | None = None
    misfire: str | Misfire = Misfire.RUN_ONCE
    misfire_limit: int = 100
    overlap: str | Overlap = Overlap.SKIP
    jitter: float | timedelta = 0.0
    start: datetime | None = None
    end: datetime | None = None
    paused: bool = False
    tags: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.timezone is not None and not isinstance(self.when, str):
            raise InvalidSchedule(
                "timezone goes with a plain expression: otherwise say it there, cron('0 6 * * *', tz='Europe/Berlin')",
                field="timezone",
            )
        from_body(self.body("a name", {"kind": "call"}), id=NO_ID, created_at=_CREATED)

    def body(self, name: str, job: Mapping[str, Any]) -> dict[str, Any]:
        """The same as REST and files write it."""
        said: dict[str, Any] = {
            field: getattr(self, field) for field in self.__struct_fields__ if field not in {"when", "args", "kwargs"}
        }
        tags = [self.tags] if isinstance(self.tags, str) else list(self.tags)
        return {
            **said,
            "name": name,
            "schedule": self.when,
            "jitter": seconds(self.jitter, "jitter") if isinstance(self.jitter, timedelta) else self.jitter,
            "tags": tags,
            "job": dict(job),
        }


def schedule_of(given: When | str | Schedule, **options: Any) -> Schedule:
    """The record of what was given. Raises InvalidSchedule."""
    if isinstance(given, Schedule):
        return msgspec.structs.replace(given, **options) if options else given
    if not isinstance(given, When | str):
        raise InvalidSchedule(
            f"schedule must be a cron expression like '0 6 * * *', cron(…), every(…), at(…) or Schedule(…), "
            f"not {type(given).__name__}",
            field="schedule",
        )
    unknown = sorted(options.keys() - ScheduleOptions.__annotations__.keys())
    if unknown:
        known = ", ".join(ScheduleOptions.__annotations__)
        raise InvalidSchedule(f"there is no option {unknown[0]!r}: use one of {known}", field=unknown[0])
    return Schedule(given, **options)


class Drafting:
    """Makes drafts of bodies."""

    def __init__(self, bodies: Bodies, functions: Functions) -> None:
        self._bodies = bodies
        self._functions = functions

    async def draft(self, schedule: StoredSchedule, *, exposed: bool = False) -> tuple[Draft, tuple[str, ...]]:
        """The schedule with the job it is to make, and what its author should know. `exposed`: it has come over a line
        that others can read. Raises InvalidSchedule, which names the field to mend."""
        template, asked = await self._template(schedule.job, exposed=exposed)
        job = schedule.job
        for at, attachment_id in asked.kept:
            # Whoever sees the schedule sees where its script is, and can leave it there in another form of the body.
            job = replaced(job, at, {"attachment": str(attachment_id)})
        return Draft(schedule=msgspec.structs.replace(schedule, job=job), template=template), asked.warnings

    async def _template(self, job: Mapping[str, Any], *, exposed: bool) -> tuple[Submission, Asked]:
        _refuse_elsewhere(job)
        await self._refuse_unknown(job)
        try:
            asked = await self._bodies.read(job, JobOrigin(exposed=exposed))
        except InvalidJob as error:
            raise InvalidSchedule(f"job: {error}", field=f"job.{error.field}" if error.field else "job") from error
        made = asked.submission
        if made.expires_at is not None:
            raise InvalidSchedule(
                "job.expires must be seconds from each fire, e.g. 3600: a time comes but once", field="job.expires"
            )
        # Windows hold for fired jobs only if the schedule itself says so, not by a default of the function.
        dedupe = made.dedupe if "dedupe" in job else None
        return msgspec.structs.replace(made, dedupe=dedupe, correlation_id=None, traceparent=None), asked

    async def _refuse_unknown(self, job: Mapping[str, Any]) -> None:
        """A job may wait for its function; a schedule that makes such jobs for ever is a mistake."""
        name = job.get("function")
        if job.get("kind") == "call" and isinstance(name, str) and await self._functions.function(name) is None:
            raise InvalidSchedule(
                f"job.function: no worker has announced a function {name!r}, such as 'mail.welcome': "
                "see `headway functions`; start the worker that has it first",
                field="job.function",
            )


def new_schedule(body: Mapping[str, Any], now: datetime) -> StoredSchedule:
    """The schedule that a person asks for. Raises InvalidSchedule."""
    return from_body(body, id=uuid7(), created_at=now)


def declared_schedule(body: Mapping[str, Any], now: datetime, code_version: str | None) -> StoredSchedule:
    """The schedule that code declares. Raises InvalidSchedule."""
    return from_body(body, id=uuid7(), created_at=now, origin=Origin.CODE, code_version=code_version)


def changed_schedule(before: StoredSchedule, body: Mapping[str, Any]) -> StoredSchedule:
    """Another form of a schedule. Raises InvalidSchedule."""
    changed = from_body(
        body, id=before.id, created_at=before.created_at, origin=before.origin, code_version=before.code_version
    )
    return msgspec.structs.replace(changed, fingerprint=before.fingerprint)


async def find_schedule(store: Schedules, named: UUID | str) -> ScheduleRecord:
    """The schedule of that name, or of that id. Raises ScheduleNotFound."""
    found: Sequence[Found | None] = []
    if isinstance(named, str):
        found = await store.find_schedules(ScheduleFilter(name=named, limit=1))
    if not found and (schedule_id := _id(named)) is not None:
        found = await store.schedules([schedule_id])
    if not found or found[0] is None:
        raise ScheduleNotFound(named)
    if isinstance(found[0], Unreadable):
        raise InvalidSchedule(
            f"schedule {found[0].name!r} can't be read by this version of headway: {found[0].problem}; "
            "use a newer one, or delete the schedule and make it anew",
            field="name",
        )
    return found[0]


def _id(named: UUID | str) -> UUID | None:
    try:
        return named if isinstance(named, UUID) else UUID(named)
    except ValueError:
        return None


def _refuse_elsewhere(job: Mapping[str, Any]) -> None:
    for name, words in _ELSEWHERE.items():
        if name in job:
            raise InvalidSchedule(f"job.{name}: {words}", field=f"job.{name}")


def schedule_shape(found: Found) -> dict[str, Any]:
    """A schedule as it is shown everywhere: its body, and where it stands."""
    if isinstance(found, Unreadable):
        return {"id": found.id, "name": found.name, "problem": found.problem}
    standing = {name: getattr(found, name) for name in ("next_at", "last_at", "ended", "version", "source")}
    known = {name: getattr(found.schedule, name) for name in ("id", "origin", "code_version", "created_at")}
    return {
        **to_body(found.schedule),
        **standing,
        **known,
        "updated_at": found.updated_at,
        "updated_by": found.updated_by,
    }
