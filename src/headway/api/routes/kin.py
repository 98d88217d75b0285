"""Around a job: what it was asked to do, who waits for it, where it stands in its queue."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from headway.api.call import Call, answer, tagged
from headway.api.examples import JOB
from headway.api.masking import shown
from headway.api.routes.jobs import JobPage
from headway.api.table import Answer, Route
from headway.components.shapes import job_shape
from headway.components.status import get_job
from headway.model.access import Permission
from headway.model.sealed import FILE


class Place(msgspec.Struct, frozen=True):
    """Where a job stands."""

    ahead: int | None
    """Due jobs of its queue before it; null: many, or it isn't in line."""


async def payload(call: Call) -> Response:
    """What the job was asked to do: the fields of its kind. Scripts and credentials are not among them; files
    are named, by reference, so that another job can have them too."""
    job = await call.store(lambda store: get_job(store, call.job_id))
    fields = shown(msgspec.json.decode(job.payload))
    attached = await call.service.app.vault.attachments(job.id)
    files = {each.name: {"attachment": each.id} for each in attached if each.role == FILE}
    return tagged(call, {**fields, "files": files} if files else fields)


async def children(call: Call) -> Response:
    job = await call.store(lambda store: get_job(store, call.job_id))
    ids = await call.store(lambda store: store.children(job.id))
    found = await call.store(lambda store: store.get(ids))
    return answer(JobPage([job_shape(child) for child in found if child is not None], None))


async def place(call: Call) -> Response:
    job = await call.store(lambda store: get_job(store, call.job_id))
    return answer(Place(await call.store(lambda store: store.ahead(job))))


ROUTES = [
    Route(
        method="GET",
        path="/jobs/{job_id}/payload",
        handler=payload,
        permission=Permission.READ,
        summary="What a job was asked to do",
        description="The fields of its kind, without its script and without credentials; its files by reference, as a "
        "job takes them.",
        answers=[
            Answer(
                words="The fields.",
                schema={"type": "object", "additionalProperties": True},
                example={"function": "mail.welcome", "kwargs": {"user_id": 42}},
            )
        ],
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/children",
        handler=children,
        permission=Permission.READ,
        summary="The jobs that wait for a job, or did",
        answers=[Answer(form=JobPage, words="Up to a hundred.", example={"items": [JOB], "cursor": None})],
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/place",
        handler=place,
        permission=Permission.READ,
        summary="Where a job stands in its queue",
        answers=[Answer(form=Place, words="How many come before it.", example={"ahead": 3})],
    ),
]
