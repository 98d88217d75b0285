"""Many jobs at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from headway.api.call import Call, answer
from headway.api.examples import JOB, JOB_BODIES
from headway.api.idempotency import KEY, named_all
from headway.api.problems import Problem, problem_of, status_of
from headway.api.reading import decode, decode_as
from headway.api.table import BATCH_LIMIT, Answer, Audit, Body, Route
from headway.components.create import late
from headway.components.shapes import JobShape, job_shape, record_of
from headway.kinds.bodies import Asked, Origin
from headway.model.access import Permission
from headway.model.errors import Conflict, HeadwayError, InvalidJob, InvalidRequest
from headway.model.job import JobRecord
from headway.model.states import State
from headway.model.submission import Accepted

MOST = 1000

Read = Asked | HeadwayError
"""The job that a body asks for, or what is wrong with it."""


class _Given(msgspec.Struct, forbid_unknown_fields=True):
    """Bodies are left as they came, and read one by one: an error then names its job."""

    jobs: list[msgspec.Raw] | UnsetType = UNSET
    urls: list[str] | UnsetType = UNSET
    partial: bool = False


class BatchItem(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one job of the batch."""

    status: int
    deduplicated: bool
    job: JobShape | UnsetType = UNSET
    error: Problem | UnsetType = UNSET


class BatchAnswer(msgspec.Struct, frozen=True):
    """One item for each job, in order."""

    items: list[BatchItem]


async def submit_batch(call: Call) -> Response:
    """All of them or none; with `partial`, those that can be."""
    given = decode_as(call.body, _Given)
    bodies = _bodies(given)
    call.service.allowance.take(call.by, len(bodies))
    ids = await named_all(call, len(bodies))
    origin = call.body_origin()
    read = [
        await _read(call, body, origin if own is None else msgspec.structs.replace(origin, id=own))
        for body, own in zip(bodies, ids, strict=True)
    ]
    read = _placed(await _reached(call, bodies, read), plain=given.urls is not UNSET)
    if not given.partial:
        _raise_first(read)
    asked = [each for each in read if isinstance(each, Asked)]
    submissions = [each.submission for each in asked]
    answers = iter(await call.service.app.client.submit_many(submissions, partial=given.partial))
    pairs = [(each, next(answers) if isinstance(each, Asked) else each) for each in read]
    earlier = await _earlier(call, [verdict for _, verdict in pairs])
    return answer(BatchAnswer([_item(each, verdict, earlier) for each, verdict in pairs]), 201)


def _bodies(given: _Given) -> list[Any]:
    """The bodies of the jobs, raw or made of URLs."""
    if (given.jobs is UNSET) == (given.urls is UNSET):
        raise InvalidRequest('give either {"jobs": [{…}, …]} or {"urls": ["https://…", …]}', field="jobs")
    bodies: list[Any] = (
        [{"kind": "fetch", "url": url} for url in given.urls] if given.urls is not UNSET else list(given.jobs or ())
    )
    if not 1 <= len(bodies) <= MOST:
        field = "jobs" if given.urls is UNSET else "urls"
        raise InvalidRequest(f"a batch has 1 to {MOST:,} jobs, not {len(bodies):,}", field=field)
    return bodies


async def _read(call: Call, body: Any, origin: Origin) -> Read:
    """The job that a body asks for, or what is wrong with it."""
    try:
        plain = _plain(body)
        if not isinstance(plain, dict):
            raise InvalidJob("a job must be a JSON object")
        if origin.id is not None and "id" in plain:
            origin = msgspec.structs.replace(origin, id=None)
        asked = await call.service.bodies.read(plain, origin)
        call.permit(asked.submission)
    except HeadwayError as error:
        return error
    return asked


def _placed(read: list[Read], *, plain: bool) -> list[Read]:
    """With the place of what is wrong in the batch; where a job is no more than its URL, that is the place."""
    for index, each in enumerate(read):
        if isinstance(each, InvalidJob):
            inner = f".{each.field}" if each.field else ""
            each.field = f"urls[{index}]" if plain else f"jobs[{index}]{inner}"
    return read


async def _reached(call: Call, bodies: Sequence[Any], read: Sequence[Read]) -> list[Read]:
    """Those whose target no worker reaches become what is wrong with them."""
    probes = call.probes()

    async def reached(body: Any, asked: Asked) -> Read:
        try:
            await probes.require(_plain(body), asked.submission)
        except (InvalidJob, Conflict) as error:
            return error
        return asked

    scripts = {
        index: reached(bodies[index], each)
        for index, each in enumerate(read)
        if isinstance(each, Asked) and each.submission.kind == "script"
    }
    found = dict(zip(scripts, await asyncio.gather(*scripts.values()), strict=True))
    return [found.get(index, each) for index, each in enumerate(read)]


def _plain(body: Any) -> Any:
    return decode(bytes(body)) if isinstance(body, msgspec.Raw) else body


def _raise_first(read: Sequence[Read]) -> None:
    for index, each in enumerate(read):
        if isinstance(each, InvalidJob):
            raise type(each)(f"job {index} of the batch, nothing is stored: {each}", field=each.field)
        if isinstance(each, HeadwayError):
            raise each


async def _earlier(call: Call, verdicts: Sequence[Any]) -> dict[UUID, JobRecord]:
    """Jobs that the store alone knows: earlier ones, and those that wait for others."""
    ids = [
        verdict.job_id
        for verdict in verdicts
        if isinstance(verdict, Accepted) and (verdict.earlier or verdict.state is State.BLOCKED)
    ]
    found = await call.store(lambda store: store.get(ids)) if ids else []
    return {job.id: job for job in found if job is not None}


def _item(asked: Asked | HeadwayError, verdict: Any, earlier: dict[UUID, JobRecord]) -> BatchItem:
    if isinstance(verdict, HeadwayError) or isinstance(asked, HeadwayError):
        return BatchItem(status=status_of(verdict), error=problem_of(verdict), deduplicated=False)
    job = job_shape(
        earlier.get(verdict.job_id) or record_of(asked.submission, verdict),
        warnings=(*asked.warnings, *verdict.warnings, *late(asked.submission, verdict)),
        deduplicated=verdict.deduplicated,
    )
    return BatchItem(status=200 if verdict.earlier else 201, job=job, deduplicated=verdict.deduplicated)


_SCHEMA = {
    "type": "object",
    "properties": {
        "jobs": {
            "type": "array",
            "items": {"$ref": "#/components/schemas/JobBody"},
            "minItems": 1,
            "maxItems": MOST,
        },
        "urls": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST},
        "partial": {"type": "boolean", "default": False},
    },
    "oneOf": [{"required": ["jobs"]}, {"required": ["urls"]}],
    "additionalProperties": False,
}

ROUTES = [
    Route(
        method="POST",
        path="/jobs/batch",
        handler=submit_batch,
        permission=Permission.SUBMIT,
        audit=Audit.SOON,
        summary="Submit up to 1,000 jobs at once",
        description="All of them or none; with `partial: true` those that can be, each with a status of its own.",
        body=Body(
            schema=_SCHEMA,
            limit=BATCH_LIMIT,
            bytes=True,
            examples={"jobs": {"jobs": [JOB_BODIES["call"]]}, "urls": {"urls": ["https://example.com/"]}},
        ),
        answers=[
            Answer(
                status=201,
                form=BatchAnswer,
                words="One item for each job, in order.",
                example={"items": [{"status": 201, "job": JOB, "deduplicated": False}]},
            )
        ],
        problems=[404, 409, 429],
        headers=KEY,
    )
]
