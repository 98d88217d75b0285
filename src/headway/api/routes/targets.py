"""Targets: servers that scripts run on. Their credentials go in and never come out."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headway.api.call import Call, answer, nothing
from headway.api.examples import PROBED, TARGET
from headway.api.routes.secrets import TAG, ListQuery
from headway.api.table import Answer, Body, Route
from headway.components import targets
from headway.components.targets import TargetBody, TargetChange, TargetShape, target_shape
from headway.model.access import Permission
from headway.model.errors import Forbidden
from headway.model.target import Probed, TargetKind, TargetRecord


class TargetPage(msgspec.Struct, frozen=True):
    """Targets by name."""

    items: list[TargetShape]
    cursor: str | None


class TrustBody(msgspec.Struct, kw_only=True):
    """The key that the server must show from now on."""

    host_key: Annotated[str, Meta(description='a public key in one line, "ssh-ed25519 AAAA…", as a probe returns it')]


class ProbeBody(msgspec.Struct, kw_only=True):
    """Who is to try."""

    queue: Annotated[str, Meta(description="the name of a queue, of which a worker tries")] = "default"


class DeleteQuery(msgspec.Struct, kw_only=True):
    """How to delete it."""

    force: Annotated[bool, Meta(description="true to delete it although open jobs name it: its server is gone")] = False


async def list_targets(call: Call) -> Response:
    asked: ListQuery = call.query
    found = await call.store(lambda store: store.find_targets(asked.cursor, asked.limit))
    cursor = found[-1].name if len(found) == asked.limit else None
    return answer(TargetPage([target_shape(record) for record in found], cursor))


async def create(call: Call) -> Response:
    body: TargetBody = call.body
    if body.kind is TargetKind.LOCAL:
        _require_admin(call)
    made = await targets.create_target(call.service.app.vault, body, by=call.by)
    return answer(target_shape(made), 201, {"Location": f"/api/v1/targets/{made.id}"})


async def show(call: Call) -> Response:
    return answer(target_shape(await _named(call)))


async def change(call: Call) -> Response:
    body: TargetChange = call.body
    record = await _named(call)
    if TargetKind.LOCAL in {record.target.kind, body.kind}:
        _require_admin(call)
    return answer(target_shape(await targets.change_target(call.service.app.vault, record, body, by=call.by)))


async def delete(call: Call) -> Response:
    record = await _named(call)
    _protect_local(call, record)
    asked: DeleteQuery = call.query
    await call.store(lambda store: store.delete_target(record.id, force=asked.force))
    return nothing()


async def trust(call: Call) -> Response:
    body: TrustBody = call.body
    record = await _named(call)
    _protect_local(call, record)
    return answer(target_shape(await targets.trust(call.service.app.vault, record, body.host_key, by=call.by)))


async def probe(call: Call) -> Response:
    body: ProbeBody = call.body
    call.permit_queue(body.queue)
    record = await _named(call)
    return answer(await targets.probe(call.asking(), record.name, queue=body.queue, by=call.by))


async def _named(call: Call) -> TargetRecord:
    text = call.path("target")
    try:
        named: UUID | str = UUID(text)
    except ValueError:
        named = text
    return await call.store(lambda store: store.target(named))


def _protect_local(call: Call, record: TargetRecord) -> None:
    if record.target.kind is TargetKind.LOCAL:
        _require_admin(call)


def _require_admin(call: Call) -> None:
    assert call.principal is not None
    if not call.principal.may(Permission.ADMINISTER):
        raise Forbidden(f"{call.principal.name} may not make, change or remove local targets: ask an administrator")


_SHOWN = Answer(form=TargetShape, words="The target as it is now.", example=TARGET)
_NEW = {
    "with a password": {"name": "db-1", "host": "db-1.example.org", "user": "deploy", "credential": {"password": "…"}},
    "with a key": {
        "name": "db-1",
        "host": "db-1.example.org",
        "port": 2222,
        "user": "deploy",
        "credential": {"private_key": "-----BEGIN OPENSSH PRIVATE KEY-----\n…", "passphrase": "…"},
        "labels": {"zone": "a"},
    },
}

ROUTES = [
    Route(
        method="GET",
        path="/targets",
        handler=list_targets,
        permission=Permission.MANAGE_TARGETS,
        summary="List targets by name",
        tag=TAG,
        query=ListQuery,
        answers=[Answer(form=TargetPage, words="A page of them.", example={"items": [TARGET], "cursor": None})],
    ),
    Route(
        method="POST",
        path="/targets",
        handler=create,
        permission=Permission.MANAGE_TARGETS,
        summary="Make a target",
        secret=True,
        description="The kind `local`, a worker's own machine, is for administrators, and for workers that allow it.",
        tag=TAG,
        body=Body(form=TargetBody, examples=_NEW),
        answers=[Answer(status=201, form=TargetShape, words="The new target.", example=TARGET)],
        problems=[409, 422, 503],
    ),
    Route(
        method="GET",
        path="/targets/{target}",
        handler=show,
        permission=Permission.MANAGE_TARGETS,
        summary="Look at a target, by id or name",
        tag=TAG,
        answers=[_SHOWN],
        problems=[404],
    ),
    Route(
        method="PATCH",
        path="/targets/{target}",
        handler=change,
        permission=Permission.MANAGE_TARGETS,
        summary="Change a target",
        secret=True,
        description="With another host or port its credential and host key are gone, unless a credential comes along.",
        tag=TAG,
        body=Body(form=TargetChange, examples={"user": {"user": "root"}, "no credential": {"credential": None}}),
        answers=[_SHOWN],
        problems=[404, 409, 422, 503],
    ),
    Route(
        method="DELETE",
        path="/targets/{target}",
        handler=delete,
        permission=Permission.MANAGE_TARGETS,
        summary="Delete a target, with its credential",
        description="Refused while open jobs name it. By force, which is for a server that is gone for good, those "
        "that wait fail, and what may still run there ends as `unknown` or, if it is being cancelled, as `cancelled`, "
        "with an error that says that nobody has seen it stopped.",
        tag=TAG,
        query=DeleteQuery,
        answers=[Answer(status=204, words="It is gone.")],
        problems=[404, 409, 422],
    ),
    Route(
        method="POST",
        path="/targets/{target}/trust",
        handler=trust,
        permission=Permission.MANAGE_TARGETS,
        summary="Save the key that the server must show",
        tag=TAG,
        body=Body(form=TrustBody, examples={"key": {"host_key": TARGET["host_key"]}}),
        answers=[_SHOWN],
        problems=[404, 409, 422],
    ),
    Route(
        method="POST",
        path="/targets/{target}/probe",
        handler=probe,
        permission=Permission.MANAGE_TARGETS,
        summary="Have a worker try to reach the target",
        description="Tells how far it came, and which key the server showed; nothing is saved.",
        tag=TAG,
        body=Body(form=ProbeBody, required=False, examples={"queue": {"queue": "scripts"}}),
        answers=[Answer(form=Probed, words="What the worker found.", example=PROBED)],
        problems=[404, 422],
    ),
]
