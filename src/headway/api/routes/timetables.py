"""What came of a schedule and what will: its jobs, the ledger of its nominal times, its coming fires."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headway.api.call import Call, answer, tagged
from headway.api.examples import ANSWERED_JOB, JOB
from headway.api.responses import AnsweredJob, answered
from headway.api.routes.jobs import IF_NONE_MATCH
from headway.api.routes.schedules import SAME, any_schedule, route, schedule_of
from headway.api.table import Answer, Audit, Body
from headway.components.status import Query, find_jobs
from headway.kinds.body import A_TIME, Time
from headway.model.access import Permission
from headway.model.errors import InvalidSchedule
from headway.model.when import Fire
from headway.schedules import new_schedule
from headway.store.scripts.ledger import Line


class AnsweredPage(msgspec.Struct, frozen=True):
    """Some of a schedule's jobs, newest first, those of kind http with what was answered; `cursor` asks for the next
    ones."""

    items: list[AnsweredJob]
    cursor: str | None


class Past(msgspec.Struct, kw_only=True):
    """Which part of the ledger."""

    before: Annotated[Time | None, Meta(description=A_TIME)] = None
    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="how many at most, from 1 to 1000")] = 100
    daily: Annotated[
        bool, Meta(description="true: all of a day (UTC) that became the same is one line, and there is one page")
    ] = False


class Occurrences(msgspec.Struct, frozen=True):
    """What became of nominal times, latest first; `cursor` is the next `before`."""

    items: list[Line]
    cursor: datetime | None


class Future(msgspec.Struct, kw_only=True):
    """How far to look."""

    count: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="how many fires, from 1 to 1000")] = 10


class Preview(msgspec.Struct, frozen=True):
    """Coming fires, with the jumps of the zone's clocks marked."""

    items: list[Fire]
    cursor: None = None


async def jobs(call: Call) -> Response:
    found = await any_schedule(call)
    wanted = msgspec.structs.replace(call.query.filter(), schedule_id=found.id)
    page = await call.store(lambda store: find_jobs(store, wanted))
    cursor = str(page.cursor) if page.cursor else None
    return tagged(call, AnsweredPage(await call.store(lambda store: answered(store, page.jobs)), cursor))


async def occurrences(call: Call) -> Response:
    found, asked = await any_schedule(call), call.query
    if asked.daily:
        return tagged(call, Occurrences(await call.store(lambda store: store.calendar(found.id)), None))
    lines = await call.store(lambda store: store.occurrences(found.id, before=asked.before, limit=asked.limit + 1))
    page = lines[: asked.limit]
    return tagged(call, Occurrences(page, page[-1].nominal_at if len(lines) > asked.limit else None))


async def preview(call: Call) -> Response:
    found = await schedule_of(call)
    now = await call.store(lambda store: store.now())
    return answer(Preview(list(islice(found.schedule.preview(now), call.query.count))))


async def preview_body(call: Call) -> Response:
    """Of a schedule that isn't there yet: to see whether it means what it should."""
    now = await call.store(lambda store: store.now())
    count = call.body.pop("count", 10)
    if not isinstance(count, int) or not 1 <= count <= 1000:
        raise InvalidSchedule("count must be a whole number from 1 to 1,000", field="count")
    schedule = new_schedule({"name": "preview", "job": {"kind": "call"}, **call.body}, now)
    return answer(Preview(list(islice(schedule.preview(now), count))))


_LINE = {
    "nominal_at": "2030-01-31T06:00:00Z",
    "until_at": "2030-01-31T06:00:00Z",
    "count": 1,
    "job_id": JOB["id"],
    "reason": None,
    "detail": None,
}
_FIRES = {"items": [{"at": "2030-01-31T06:00:00Z", "local": "2030-01-31T07:00:00+01:00", "note": None}], "cursor": None}


ROUTES = [
    route(
        "POST",
        "/preview",
        preview_body,
        "When a schedule would fire",
        audit=Audit.NEVER,
        permission=Permission.READ,
        body=Body(schema="PreviewBody", examples={"nightly": {"schedule": "0 3 * * *", "timezone": "Europe/Berlin"}}),
        answers=[Answer(form=Preview, words="Coming fires.", example=_FIRES)],
    ),
    route(
        "GET",
        "/{schedule}/jobs",
        jobs,
        "The jobs that it made, newest first",
        query=Query,
        description="Those of kind http with `response`: status, headers, timings by phase, and the first 4,096 "
        "characters of the body; their attempts are at `/jobs/{id}/attempts`.",
        answers=[
            Answer(form=AnsweredPage, words="A page of jobs.", example={"items": [ANSWERED_JOB], "cursor": None}),
            SAME,
        ],
        headers=IF_NONE_MATCH,
    ),
    route(
        "GET",
        "/{schedule}/occurrences",
        occurrences,
        "What became of its nominal times, latest first",
        query=Past,
        answers=[Answer(form=Occurrences, words="The ledger.", example={"items": [_LINE], "cursor": None}), SAME],
        headers=IF_NONE_MATCH,
    ),
    route(
        "GET",
        "/{schedule}/preview",
        preview,
        "When it fires next",
        query=Future,
        answers=[Answer(form=Preview, words="Coming fires.", example=_FIRES)],
    ),
]
