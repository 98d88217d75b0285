"""Jobs: submit, find, look at, change, delete. What else can be done with one: `acts.py`; its end: `results.py`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from headway.api.call import Call, answer, nothing, tagged
from headway.api.examples import JOB, JOB_BODIES
from headway.api.idempotency import KEY, REPLAYED, named
from headway.api.news import Reader
from headway.api.streaming import one_more, refuse_crowd
from headway.api.table import Answer, Audit, Body, Route
from headway.api.tags import etag_of, names_tag
from headway.components.cancel import delete_jobs
from headway.components.create import shaped
from headway.components.edit import Changes, edit_of
from headway.components.shapes import JobShape, job_shape
from headway.components.status import Query, describe, find_jobs, get_job
from headway.components.verdicts import sole
from headway.kinds.script import probe_wanted
from headway.model.access import Permission
from headway.model.job import ErrorInfo, JobRecord
from headway.model.states import State

LONGEST_WAIT = 60.0
BRIEF = 500
"""Characters of an error's message in a brief list."""
LOOK_EVERY = 1.0
"""Seconds between looks at a job that somebody waits for, if nothing is heard of it."""
IF_NONE_MATCH = {"If-None-Match": "The ETag of what you have: 304 if that is still so."}
IF_MATCH = {"If-Match": "The ETag of what you have seen: 412 if it has changed since."}


class JobPage(msgspec.Struct, frozen=True):
    """Some of the jobs that match, newest first; `cursor` asks for the next ones."""

    items: list[JobShape]
    cursor: str | None


class Listing(Query, kw_only=True):
    """Which jobs, and how much of each."""

    brief: Annotated[
        bool,
        Meta(description="true: without metadata, and of errors only the type and the beginning of the message"),
    ] = False

    def shaped(self, job: JobRecord) -> JobShape:
        """The job as this list shows it."""
        shape = job_shape(job)
        if not self.brief:
            return shape
        error = job.error and ErrorInfo(job.error.type, job.error.message[:BRIEF])
        return msgspec.structs.replace(shape, error=error, metadata=None)


class Looking(msgspec.Struct, kw_only=True):
    """How to look at a job."""

    wait: Annotated[
        Annotated[float, Meta(ge=0, le=LONGEST_WAIT)] | None,
        Meta(description="seconds to wait until the job has ended or, with If-None-Match, until it has changed"),
    ] = None
    position: Annotated[bool, Meta(description="true to be told how many due jobs of the queue come before")] = False


class JobDetail(JobShape, frozen=True, kw_only=True):
    """A job, and its place in the line if that was asked for."""

    queue_position: int | UnsetType | None = UNSET
    """0: it is the next. None: it is not in line, or more than 1,000 come before."""


async def submit(call: Call) -> Response:
    """201 with the new job, 200 with the earlier one that stands for it."""
    call.service.allowance.take(call.by, 1)
    client = call.service.app.client
    own_id = "id" in call.body
    origin = call.body_origin(None if own_id else await named(call))
    asked = await call.service.bodies.read(call.body, origin)
    call.permit(asked.submission)
    if probe_wanted(call.body):
        await call.probes().require(call.body, asked.submission)
    accepted = await client.submit(asked.submission)
    job = await shaped(client, asked, accepted)
    headers = {"Location": f"/api/v1/jobs/{job.id}"}
    if accepted.repeated:
        headers[REPLAYED] = "true"
    return answer(job, 200 if accepted.earlier else 201, headers)


async def find(call: Call) -> Response:
    page = await call.store(lambda store: find_jobs(store, call.query.filter()))
    cursor = str(page.cursor) if page.cursor else None
    return tagged(call, JobPage([call.query.shaped(job) for job in page.jobs], cursor))


async def show(call: Call) -> Response:
    job = await (_waited(call, call.query.wait) if call.query.wait else _job(call))
    shape = await call.store(lambda store: describe(store, job, call.service.output))
    if not call.query.position:
        return tagged(call, shape, _tag(job))
    ahead = await call.store(lambda store: store.ahead(job))
    return tagged(call, JobDetail(**msgspec.structs.asdict(shape), queue_position=ahead))


async def change(call: Call) -> Response:
    """While nobody has begun it."""
    expected = call.header("if-match")
    if call.body.queue is not UNSET:
        call.permit_queue(call.body.queue)
    if call.limited:
        # To change what a job does is as good as to submit it.
        call.permit(await _job(call))

    def unchanged(job: JobRecord) -> bool:
        return expected is None or names_tag(expected, _tag(job), weak=False)

    job_id = call.job_id
    edit = await call.store(lambda store: edit_of(store, call.service.bodies, job_id, call.body))
    job = await call.store(lambda store: store.edit(job_id, edit, by=call.by, expected=unchanged))
    return tagged(call, job_shape(job))


async def delete(call: Call) -> Response:
    """204: it is gone. 202: it runs, is cancelled, and goes once it is seen stopped."""
    job_id = call.job_id
    if call.limited:
        call.permit(await _job(call))
    moved = sole(
        await call.store(lambda store: delete_jobs(store, [job_id], by=call.by, correlation_id=call.correlation_id))
    )
    if moved.state is not State.CANCELLING:
        return nothing()
    [job] = await call.store(lambda store: store.get([job_id]))
    return answer(job_shape(job), 202) if job else nothing()


async def _job(call: Call) -> JobRecord:
    return await call.store(lambda store: get_job(store, call.job_id))


def _tag(job: JobRecord) -> str:
    return etag_of(msgspec.json.encode(job_shape(job)))


async def _waited(call: Call, wait: float) -> JobRecord:
    """The job once it has ended, or is no longer what the caller has; in any case after `wait` seconds."""
    refuse_crowd(call)
    with one_more(call.service):
        return await _changed(call, wait)


async def _changed(call: Call, wait: float) -> JobRecord:
    job_id, had, service = call.job_id, call.header("if-none-match"), call.service
    reader = Reader(lambda event: event.job_id == job_id)
    started = service.clock.monotonic()
    await service.news.join(reader)
    try:
        while True:
            job = await _job(call)
            news = job.state.terminal if had is None else not names_tag(had, _tag(job))
            left = wait - (service.clock.monotonic() - started)
            if news or left <= 0 or service.closing.is_set():
                return job
            await reader.next(service.clock, min(left, LOOK_EVERY))
    finally:
        service.news.leave(reader)


_SHOWN: dict[str, Any] = {"form": JobShape, "words": "The job as it is now.", "example": JOB}

ROUTES = [
    Route(
        method="POST",
        path="/jobs",
        handler=submit,
        permission=Permission.SUBMIT,
        audit=Audit.SOON,
        summary="Submit a job",
        description="`kind` tells which further fields a body has. See the schema of each kind.",
        body=Body(schema="JobBody", examples=JOB_BODIES),
        answers=[
            Answer(status=201, form=JobShape, words="The new job.", example=JOB),
            Answer(form=JobShape, words="The earlier job that stands for it.", example={**JOB, "deduplicated": True}),
        ],
        problems=[404, 409, 429],
        headers=KEY,
    ),
    Route(
        method="GET",
        path="/jobs",
        handler=find,
        permission=Permission.READ,
        summary="Find jobs, newest first",
        description="All conditions must hold. Pages stay as they are while jobs arrive.",
        query=Listing,
        answers=[
            Answer(form=JobPage, words="A page of jobs.", example={"items": [JOB], "cursor": None}),
            Answer(status=304, words="It is as you have it."),
        ],
        headers=IF_NONE_MATCH,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}",
        handler=show,
        permission=Permission.READ,
        summary="Look at a job",
        query=Looking,
        answers=[
            Answer(form=JobDetail, words="The job as it is now.", example=JOB),
            Answer(status=304, words="It is as you have it."),
        ],
        headers=IF_NONE_MATCH,
    ),
    Route(
        method="PATCH",
        path="/jobs/{job_id}",
        handler=change,
        permission=Permission.SUBMIT,
        told=["run_at", "priority", "queue"],
        summary="Change a job that nobody has begun",
        body=Body(form=Changes, examples={"sooner": {"priority": 50, "run_at": "2030-01-31T06:00:00Z"}}),
        answers=[Answer(**_SHOWN)],
        problems=[409, 412],
        headers=IF_MATCH,
    ),
    Route(
        method="DELETE",
        path="/jobs/{job_id}",
        handler=delete,
        permission=Permission.SUBMIT,
        summary="Delete a job with all that belongs to it",
        answers=[
            Answer(status=204, words="It is gone."),
            Answer(
                status=202,
                form=JobShape,
                words="It runs: it is being cancelled, and goes once it is seen stopped.",
                example={**JOB, "state": "cancelling", "label": "cancelling"},
            ),
        ],
    ),
]
