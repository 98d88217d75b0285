"""Named secrets: set, list, delete. There is no way to read one."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headway.api.call import Call, answer, nothing
from headway.api.examples import SECRET
from headway.api.table import Answer, Body, Route
from headway.model.access import Permission
from headway.model.errors import NotFound, SecretNotFound
from headway.model.sealed import SecretInfo

TAG = "Secrets and targets"


class SecretBody(msgspec.Struct, kw_only=True):
    """A secret's value; it is never shown again."""

    value: Annotated[str, Meta(description="the secret itself, a text of at most 64 KiB")]
    note: Annotated[str | None, Meta(description="what it is for, or null")] = None

    def __repr__(self) -> str:
        return "SecretBody(***)"


class ListQuery(msgspec.Struct, kw_only=True):
    """Which part of a list."""

    cursor: Annotated[str, Meta(description="the name after which to go on")] = ""
    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="at most so many, 1 to 1000")] = 100


class SecretPage(msgspec.Struct, frozen=True):
    """Secrets by name, without their values."""

    items: list[SecretInfo]
    cursor: str | None


async def list_secrets(call: Call) -> Response:
    asked: ListQuery = call.query
    found = await call.store(lambda store: store.list_secrets(asked.cursor, asked.limit))
    return answer(SecretPage(found, found[-1].name if len(found) == asked.limit else None))


async def put(call: Call) -> Response:
    said: SecretBody = call.body
    vault = call.service.app.vault
    return answer(await vault.set_secret(call.path("secret"), said.value.encode(), note=said.note, by=call.by))


async def delete(call: Call) -> Response:
    name = call.path("secret")
    try:
        await call.store(lambda store: store.delete_secret(name))
    except SecretNotFound:
        raise NotFound(f"there is no secret {name!r}") from None
    return nothing()


ROUTES = [
    Route(
        method="GET",
        path="/secrets",
        handler=list_secrets,
        permission=Permission.MANAGE_TARGETS,
        summary="List secrets by name",
        tag=TAG,
        query=ListQuery,
        answers=[Answer(form=SecretPage, words="Their names.", example={"items": [SECRET], "cursor": None})],
    ),
    Route(
        method="PUT",
        path="/secrets/{secret}",
        handler=put,
        permission=Permission.MANAGE_TARGETS,
        summary="Make or replace a secret",
        secret=True,
        description='Jobs refer to it as {"secret": "name"}. Nobody can read it again.',
        tag=TAG,
        body=Body(form=SecretBody, examples={"secret": {"value": "s3cr3t", "note": "the key of the shop's API"}}),
        answers=[Answer(form=SecretInfo, words="What may be told of it.", example=SECRET)],
        problems=[422, 503],
    ),
    Route(
        method="DELETE",
        path="/secrets/{secret}",
        handler=delete,
        permission=Permission.MANAGE_TARGETS,
        summary="Delete a secret",
        description="Jobs that refer to it fail from now on.",
        tag=TAG,
        answers=[Answer(status=204, words="It is gone.")],
        problems=[404],
    ),
]
