"""The audit log: who did what, when and from where."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field
from starlette.responses import Response

from headway.api.call import Call, answer
from headway.api.table import Answer, Route
from headway.model.access import AuditFilter, AuditLine, Permission

EXAMPLE = {
    "seq": 42,
    "at": "2030-01-31T06:00:00Z",
    "actor": "user:ann",
    "action": "jobs.cancel",
    "object": "jobs/0198c5e2-7a1b-7c3d-9e4f-0123456789ab/cancel",
    "address": "192.0.2.7",
    "detail": {},
    "count": 1,
    "digest": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
}


class LineShape(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log. `count`: how often, where lines of one second were written as one."""

    seq: int
    at: datetime
    actor: str
    action: str
    object: str
    address: str | None
    detail: dict[str, Any]
    count: int
    digest: str


class Lines(msgspec.Struct, frozen=True):
    """Some lines, the latest first; `cursor` asks for the next ones."""

    items: list[LineShape]
    cursor: str | None


Moment = Annotated[datetime, Meta(tz=True)]


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lines."""

    actor: Annotated[str | None, Meta(description="who: user:ann, token:ci, cli:ann, bus")] = None
    action: Annotated[str | None, Meta(description="what: jobs.cancel; or a beginning with a dot: jobs.")] = None
    object: Annotated[str | None, Meta(description="to what: users/ann")] = None
    from_: Annotated[Moment | None, Meta(description="from this moment on")] = field(default=None, name="from")
    to: Annotated[Moment | None, Meta(description="before this moment")] = None
    cursor: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50


def shape(line: AuditLine) -> LineShape:
    return LineShape(
        seq=line.seq,
        at=line.made_at,
        actor=line.actor,
        action=line.action,
        object=line.object,
        address=line.address,
        detail=msgspec.json.decode(line.detail),
        count=line.count,
        digest=line.digest,
    )


async def find(call: Call) -> Response:
    asked: Query = call.query
    wanted = AuditFilter(
        actor=asked.actor,
        action=asked.action,
        object=asked.object,
        since=asked.from_,
        until=asked.to,
        before=asked.cursor,
        limit=asked.limit,
    )
    lines = await call.store(lambda store: store.audit(wanted))
    cursor = str(lines[-1].seq) if len(lines) == asked.limit else None
    return answer(Lines([shape(line) for line in lines], cursor))


ROUTES = [
    Route(
        method="GET",
        path="/audit",
        handler=find,
        permission=Permission.ADMINISTER,
        summary="Who did what, the latest first",
        tag="Access",
        query=Query,
        answers=[Answer(form=Lines, words="A page of the log.", example={"items": [EXAMPLE], "cursor": None})],
    )
]
