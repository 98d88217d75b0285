"""EDIT: a job that nobody has begun is changed: its time, its place in the line, its queue, what it does."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headway.kinds.bodies import Bodies
from headway.kinds.body import A_TIME, Time
from headway.model.errors import InvalidRequest
from headway.model.submission import Edit, check_name
from headway.store.contract import Store


class Changes(msgspec.Struct, kw_only=True):
    """What may be changed; what isn't given stays as it is."""

    run_at: Annotated[Time | UnsetType, Meta(description=A_TIME)] = UNSET
    priority: Annotated[
        Annotated[int, Meta(ge=-100, le=100)] | UnsetType,
        Meta(description="a whole number from -100 (last) to 100 (first)"),
    ] = UNSET
    queue: Annotated[str | UnsetType, Meta(description="the name of a queue")] = UNSET
    payload: Annotated[
        dict[str, Any] | UnsetType, Meta(description="the fields of the job's kind, as in its body, all of them")
    ] = UNSET


async def edit_of(store: Store, bodies: Bodies, job_id: UUID, asked: Changes) -> Edit:
    """What the store is to change, checked. Raises InvalidJob, InvalidRequest."""
    said = {name: value for name in asked.__struct_fields__ if (value := getattr(asked, name)) is not UNSET}
    if not said:
        raise InvalidRequest(f"nothing to change is named: give some of {', '.join(asked.__struct_fields__)}")
    if "queue" in said:
        check_name("queue", said["queue"])
    if "payload" in said:
        said["payload"] = await _payload(store, bodies, job_id, said["payload"])
    return Edit(**said)


async def _payload(store: Store, bodies: Bodies, job_id: UUID, fields: dict[str, Any]) -> str | None:
    """What the job's kind makes of its fields; None if there is no such job, which the store will say."""
    [job] = await store.get([job_id])
    if job is None:
        return None
    asked = await bodies.of_kind(bodies.kind(job.kind), fields, {"name": job.name})
    if asked.submission.attachments or (await store.attachments([job_id])).get(job_id):
        raise InvalidRequest(
            "payload: what a job with a script, files or credentials does stays as it is: cancel it and submit another",
            field="payload",
        )
    return asked.submission.payload
