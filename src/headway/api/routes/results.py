"""What a job left: its result, its output, its files; and the way there: attempts, history, why."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headway.api.call import Call, tagged
from headway.api.chunks import RESULT, Saved, chunks_of
from headway.api.content import Described, Whole, send
from headway.api.examples import JOB_ID
from headway.api.following import follow
from headway.api.routes.jobs import IF_NONE_MATCH
from headway.api.table import API, Answer, Route
from headway.api.tags import etag_of
from headway.components.status import get_job
from headway.model.access import Permission
from headway.model.errors import JobNotFound, NotFound
from headway.model.job import Artifact as StoredArtifact
from headway.model.job import Attempt, Change, JobRecord
from headway.model.result import Stored
from headway.model.why import Why
from headway.results import describe_result

TAG = "What a job left"
RANGE = {"Range": "A part of it: bytes=0-1023.", "If-Range": "The ETag that the part is to belong to.", **IF_NONE_MATCH}
_BYTES = {"type": "string", "format": "binary"}


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a job has left."""

    name: str
    attempt: int
    size: int
    sha256: str | None = None
    note: str | None = None
    """Why it was not kept."""
    url: str | None = None


class Artifacts(msgspec.Struct, frozen=True):
    """The files of a job's last attempt, or of another."""

    items: list[Artifact]
    cursor: None = None


class Attempts(msgspec.Struct, frozen=True):
    """All attempts, the current or last one last."""

    items: list[Attempt]
    cursor: None = None


class History(msgspec.Struct, frozen=True):
    """The job's life with time stamps, in order."""

    items: list[Change]
    cursor: None = None


class Which(msgspec.Struct, kw_only=True):
    """Which attempt is meant."""

    attempt: Annotated[
        Annotated[int, Meta(ge=1, le=2**31 - 1)] | None, Meta(description="its number; without one, the last")
    ] = None


class Reading(Which, kw_only=True):
    """Which output is meant, and how to get it."""

    stream: Annotated[str | None, Meta(description="log, stdout or stderr; without one, all as they came")] = None
    follow: Annotated[
        bool | None, Meta(description="true for an event stream of what is written from now on, and before")
    ] = None


async def result(call: Call) -> Response:
    """The content itself; its description if JSON is asked for and it is none."""
    job, stored = await _result(call)
    tag = _result_tag(job, stored)
    if "application/json" in call.headers.get("accept", "") and "json" not in stored.content_type:
        return tagged(call, _meta(job, stored))
    described = Described(content_type=stored.content_type, filename=f"{job.id}-result", tag=tag)
    if stored.data is not None:
        return send(call, described, Whole(stored.data))
    return send(call, described, await chunks_of(call, job.id, 0, RESULT))


async def result_meta(call: Call) -> Response:
    return tagged(call, _meta(*await _result(call)))


async def output(call: Call) -> Response:
    """Text as it was written; with `follow` an event stream."""
    job, asked = await _job(call), call.query
    if asked.follow:
        return follow(call, job, asked.attempt, asked.stream)
    attempt = asked.attempt or max(job.attempt, 1)
    chunks = await chunks_of(call, job.id, attempt, asked.stream)
    # What has ended doesn't grow any more; its size tells it from what another attempt wrote.
    tag = etag_of(f"{job.id} {attempt} {asked.stream} {chunks.sizes}".encode())
    described = Described(
        content_type="text/plain; charset=utf-8", filename=f"{job.id}-output.txt", tag=tag, live=not job.state.terminal
    )
    return send(call, described, chunks)


async def artifacts(call: Call) -> Response:
    job = await _job(call)
    attempt = call.query.attempt or max(job.attempt, 1)
    found = await call.store(lambda store: store.artifacts(job.id))
    return tagged(call, Artifacts([_artifact(job, each) for each in found if each.attempt == attempt]))


async def artifact(call: Call) -> Response:
    """The file itself."""
    job, name = await _job(call), call.path("name")
    attempt = call.query.attempt or max(job.attempt, 1)
    found = await call.store(lambda store: store.artifacts(job.id))
    for each in found:
        if (each.attempt, each.name) == (attempt, name) and each.sha256 is not None:
            described = Described(
                content_type="application/octet-stream",
                filename=name.rpartition("/")[2],
                tag=etag_of(each.sha256.encode()),
            )
            return send(call, described, Saved(call, job.id, each))
    raise NotFound(f"attempt {attempt} of job {job.id} has left no file {name[:200]!r}")


def _artifact(job: JobRecord, found: StoredArtifact) -> Artifact:
    url = f"{API}/jobs/{job.id}/artifacts/{quote(found.name, safe='/')}?attempt={found.attempt}"
    return Artifact(
        name=found.name,
        attempt=found.attempt,
        size=found.size,
        sha256=found.sha256,
        note=found.note,
        url=url if found.sha256 else None,
    )


async def attempts(call: Call) -> Response:
    job = await _job(call)
    return tagged(call, Attempts(await call.store(lambda store: store.attempts(job.id))))


async def history(call: Call) -> Response:
    job = await _job(call)
    return tagged(call, History(await call.store(lambda store: store.history(job.id))))


async def why(call: Call) -> Response:
    found = await call.store(lambda store: store.why(call.job_id))
    if found is None:
        raise JobNotFound(call.job_id)
    return tagged(call, found)


async def _job(call: Call) -> JobRecord:
    return await call.store(lambda store: get_job(store, call.job_id))


async def _result(call: Call) -> tuple[JobRecord, Stored]:
    job = await _job(call)
    stored = await call.store(lambda store: store.result(job.id))
    if stored is None:
        raise NotFound(f"job {job.id} ({job.name}) has no result: it is {job.state}")
    return job, stored


def _result_tag(job: JobRecord, stored: Stored) -> str:
    """A result belongs to one end of one job, and never changes."""
    return etag_of(f"{job.id} {job.token} {job.finished_at} {stored.size}".encode())


def _meta(job: JobRecord, stored: Stored) -> dict[str, Any]:
    return {
        **describe_result(stored),
        "job_id": job.id,
        "etag": _result_tag(job, stored),
        "result_url": f"{API}/jobs/{job.id}/result",
    }


_META = {
    "job_id": JOB_ID,
    "content_type": "text/html; charset=utf-8",
    "size": 1256,
    "etag": '"5d41402abc4b2a76b9719d91"',
    "result_url": f"{API}/jobs/{JOB_ID}/result",
    "status": 200,
}
_META_SCHEMA = {
    "title": "What is known of a result",
    "description": "Of the response to a request also its status, headers, timings and the like.",
    "type": "object",
    "properties": {
        "job_id": {"type": "string", "format": "uuid"},
        "content_type": {"type": "string"},
        "size": {"type": "integer"},
        "etag": {"type": "string"},
        "result_url": {"type": "string"},
    },
    "required": ["job_id", "content_type", "size", "etag", "result_url"],
    "additionalProperties": True,
}
_ATTEMPT = {
    "number": 1,
    "outcome": "failed",
    "error": {"type": "ConnectionError", "message": "the far side did not answer"},
    "claimed_at": "2030-01-31T06:00:00Z",
    "started_at": "2030-01-31T06:00:00Z",
    "finished_at": "2030-01-31T06:00:01Z",
    "worker": "0199c5e2-0000-7000-8000-000000000000",
}
_WHY = {
    "reason": "no_worker",
    "sentence": "No worker serves the queue mail.",
    "advice": "Start a worker that has the code: headway worker --app MODULE:APP --queue mail",
    "warnings": [],
}
_CHANGE = {"at": "2030-01-31T06:00:00Z", "what": "scheduled", "by": "token:ci", "detail": None}
_SAME = Answer(status=304, words="It is as you have it.")

ROUTES = [
    Route(
        method="GET",
        path="/jobs/{job_id}/result",
        handler=result,
        permission=Permission.READ,
        summary="The result of a completed job",
        description="With its own content type; scripts as plain text. `Accept: application/json` gives its "
        "description where it is no JSON itself.",
        tag=TAG,
        answers=[
            Answer(words="The content.", content_type="*/*", schema=_BYTES),
            Answer(status=206, words="The part that was asked for.", content_type="*/*", schema=_BYTES),
            _SAME,
        ],
        problems=[416],
        headers={**RANGE, "Accept": "application/json for its description."},
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/result/meta",
        handler=result_meta,
        permission=Permission.READ,
        summary="What is known of a result",
        tag=TAG,
        answers=[Answer(schema=_META_SCHEMA, words="Its description.", example=_META), _SAME],
        headers=IF_NONE_MATCH,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/output",
        handler=output,
        permission=Permission.READ,
        summary="What a job wrote and logged",
        description="Text; `follow=true` makes it an event stream (`text/event-stream`) until the job has ended.",
        tag=TAG,
        query=Reading,
        answers=[
            Answer(words="The output so far.", content_type="text/plain", schema={"type": "string"}),
            Answer(status=206, words="The part asked for.", content_type="text/plain", schema={"type": "string"}),
            _SAME,
        ],
        problems=[416],
        headers=RANGE,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/artifacts/{name:path}",
        handler=artifact,
        permission=Permission.READ,
        summary="A file that a job left",
        tag=TAG,
        query=Which,
        answers=[
            Answer(words="The file.", content_type="application/octet-stream", schema=_BYTES),
            Answer(status=206, words="The part asked for.", content_type="application/octet-stream", schema=_BYTES),
            _SAME,
        ],
        problems=[416],
        headers=RANGE,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/artifacts",
        handler=artifacts,
        permission=Permission.READ,
        summary="The files that a job left",
        tag=TAG,
        query=Which,
        answers=[
            Answer(
                form=Artifacts,
                words="Their names and sizes.",
                example={
                    "items": [
                        {
                            "name": "report.csv",
                            "attempt": 1,
                            "size": 1024,
                            "url": f"{API}/jobs/{JOB_ID}/artifacts/report.csv?attempt=1",
                        }
                    ],
                    "cursor": None,
                },
            ),
            _SAME,
        ],
        headers=IF_NONE_MATCH,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/attempts",
        handler=attempts,
        permission=Permission.READ,
        summary="All attempts at a job",
        tag=TAG,
        answers=[
            Answer(form=Attempts, words="The last one last.", example={"items": [_ATTEMPT], "cursor": None}),
            _SAME,
        ],
        headers=IF_NONE_MATCH,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/history",
        handler=history,
        permission=Permission.READ,
        summary="A job's life with time stamps",
        tag=TAG,
        answers=[Answer(form=History, words="In order.", example={"items": [_CHANGE], "cursor": None}), _SAME],
        headers=IF_NONE_MATCH,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/why",
        handler=why,
        permission=Permission.READ,
        summary="Why a job is not running now",
        tag=TAG,
        answers=[Answer(form=Why, words="In a sentence, and what to do.", example=_WHY), _SAME],
        headers=IF_NONE_MATCH,
    ),
]
