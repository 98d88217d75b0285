"""Digests of many jobs in a few bytes: how the last jobs of schedules ended, and what fails most."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headway.api.call import Call, tagged
from headway.api.examples import JOB, SCHEDULE
from headway.api.table import Answer, reading
from headway.components.status import find_jobs
from headway.kinds.body import A_TIME, Time
from headway.model.filters import JobFilter
from headway.model.job import JobRecord
from headway.model.states import State
from headway.store.contract import Store

LOOKED_AT = 200
"""Failures that are grouped: the latest."""


class Strips(msgspec.Struct, kw_only=True):
    """Of which schedules."""

    schedule: Annotated[
        Annotated[list[UUID], Meta(max_length=100)], Meta(description="ids of schedules, at most 100; one by one")
    ]
    limit: Annotated[Annotated[int, Meta(ge=1, le=100)], Meta(description="how many jobs of each, from 1 to 100")] = 30


class Mark(msgspec.Struct, frozen=True):
    """A job, and how it stands."""

    id: UUID
    state: State
    at: datetime
    """The time that it was made for."""


class Strip(msgspec.Struct, frozen=True):
    """The latest jobs of a schedule, newest first."""

    schedule: UUID
    jobs: list[Mark]


class StripPage(msgspec.Struct, frozen=True):
    """In the order in which they were asked for."""

    items: list[Strip]
    cursor: None = None


class Since(msgspec.Struct, kw_only=True):
    """How far to look back."""

    since: Annotated[Time | None, Meta(description=A_TIME)] = msgspec.field(default=None, name="from")


class Failures(msgspec.Struct, frozen=True):
    """Failed jobs of one name."""

    name: str
    count: int
    last: datetime | None
    message: str
    """What the latest of them failed with."""


class FailurePage(msgspec.Struct, frozen=True):
    """The most frequent first; `more` if older failures were not looked at."""

    items: list[Failures]
    more: bool
    cursor: None = None


async def strips(call: Call) -> Response:
    asked: Strips = call.query
    return tagged(call, StripPage(await call.store(lambda store: _strips(store, asked))))


async def _strips(store: Store, asked: Strips) -> list[Strip]:
    found = [await store.find(JobFilter(schedule_id=each, limit=asked.limit)) for each in asked.schedule]
    return [Strip(each, [_mark(job) for job in jobs]) for each, jobs in zip(asked.schedule, found, strict=True)]


def _mark(job: JobRecord) -> Mark:
    return Mark(job.id, job.state, job.nominal_at or job.run_at)


async def failures(call: Call) -> Response:
    wanted = JobFilter(states=(State.FAILED,), time="finished", since=call.query.since, limit=LOOKED_AT)
    page = await call.store(lambda store: find_jobs(store, wanted))
    return tagged(call, FailurePage(_grouped(page.jobs), more=page.cursor is not None))


def _grouped(jobs: list[JobRecord]) -> list[Failures]:
    """Of each name the latest failure speaks for all."""
    latest: dict[str, JobRecord] = {}
    for job in sorted(jobs, key=_ended):
        latest[job.name] = job
    counts = Counter(job.name for job in jobs)
    return [
        Failures(name, count, latest[name].finished_at, _message(latest[name]))
        for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]


def _ended(job: JobRecord) -> datetime:
    return job.finished_at or job.created_at


def _message(job: JobRecord) -> str:
    return (job.error.message or job.error.type)[:300] if job.error else ""


_MARK = {"id": JOB["id"], "state": "completed", "at": "2030-01-31T06:00:00Z"}
_FAILED = {"name": "mail.welcome", "count": 3, "last": "2030-01-31T06:00:00Z", "message": "the issuer declined"}

ROUTES = [
    reading(
        "/stats/strips",
        strips,
        "How the latest jobs of schedules ended",
        query=Strips,
        answers=[
            Answer(
                form=StripPage,
                words="The jobs of each, newest first.",
                example={"items": [{"schedule": SCHEDULE["id"], "jobs": [_MARK]}], "cursor": None},
            )
        ],
    ),
    reading(
        "/stats/failures",
        failures,
        f"What fails most, of the latest {LOOKED_AT} failures",
        query=Since,
        answers=[
            Answer(
                form=FailurePage,
                words="Failures by name.",
                example={"items": [_FAILED], "more": False, "cursor": None},
            )
        ],
    ),
]
