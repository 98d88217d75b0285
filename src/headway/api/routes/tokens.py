"""Tokens: what programs show."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headway.access.managing import NAME, issue_token
from headway.access.trail import entry
from headway.api.call import Call, answer, nothing
from headway.api.table import Answer, Audit, Body, Route
from headway.model.access import Permission, Role, Token
from headway.model.errors import InvalidRequest

EXAMPLE = {
    "name": "ci",
    "role": "operator",
    "kinds": ["http"],
    "queues": None,
    "created_at": "2030-01-31T06:00:00Z",
    "created_by": "user:ann",
    "expires_at": "2031-01-31T06:00:00Z",
    "used_at": None,
}


class TokenShape(msgspec.Struct, frozen=True, kw_only=True):
    """A token. What it looks like is shown once, when it is made."""

    name: str
    role: Role
    kinds: list[str] | None
    queues: list[str] | None
    created_at: datetime | None
    created_by: str | None
    expires_at: datetime | None
    used_at: datetime | None


class NewTokenShape(TokenShape, frozen=True, kw_only=True):
    """A new token, and the text that programs are to show."""

    token: str


class Tokens(msgspec.Struct, frozen=True):
    """All tokens, by name."""

    items: list[TokenShape]
    cursor: str | None = None


Names = Annotated[list[Annotated[str, Meta(min_length=1, max_length=100)]], Meta(min_length=1, max_length=100)]


class NewToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to be made. With `kinds` or `queues` it may submit only such jobs; without `expires_at` it stays."""

    name: Annotated[str, Meta(pattern=NAME)]
    role: Role
    kinds: Names | None = None
    queues: Names | None = None
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None


def shape(token: Token) -> TokenShape:
    return TokenShape(**_fields(token))


async def find(call: Call) -> Response:
    return answer(Tokens([shape(token) for token in await call.store(lambda store: store.tokens())]))


async def create(call: Call) -> Response:
    body: NewToken = call.body
    if body.expires_at is not None and body.expires_at <= call.service.clock.now():
        raise InvalidRequest("expires_at lies in the past: such a token could not be used", field="expires_at")
    token = Token(
        name=body.name,
        role=body.role,
        kinds=None if body.kinds is None else frozenset(body.kinds),
        queues=None if body.queues is None else frozenset(body.queues),
        expires_at=body.expires_at,
    )
    issued = await issue_token(call.service.app.client.call_patiently, token, call.caller)
    made = NewTokenShape(**_fields(issued.token), token=issued.secret)
    headers = {"Location": f"/api/v1/tokens/{token.name}", "Cache-Control": "no-store"}
    return answer(made, 201, headers)


async def delete(call: Call) -> Response:
    """It is refused everywhere within five seconds, and so are sessions that were opened with it."""
    name = call.path("name")
    line = entry(call.caller, "tokens.delete", f"tokens/{name}")
    await call.store(lambda store: store.delete_token(name, line))
    call.service.doorkeeper.forget()
    return nothing()


def _fields(token: Token) -> dict[str, Any]:
    limits = {name: None if names is None else sorted(names) for name, names in _limits(token)}
    return {**msgspec.structs.asdict(token), **limits}


def _limits(token: Token) -> list[tuple[str, frozenset[str] | None]]:
    return [("kinds", token.kinds), ("queues", token.queues)]


ROUTES = [
    Route(
        method="GET",
        path="/tokens",
        handler=find,
        permission=Permission.ADMINISTER,
        summary="All tokens",
        tag="Access",
        answers=[Answer(form=Tokens, words="By name.", example={"items": [EXAMPLE], "cursor": None})],
    ),
    Route(
        method="POST",
        path="/tokens",
        handler=create,
        permission=Permission.ADMINISTER,
        secret=True,
        audit=Audit.OWN,
        summary="Make a token",
        description="The answer is the only place where it is ever shown.",
        tag="Access",
        body=Body(form=NewToken, examples={"ci": {"name": "ci", "role": "operator", "kinds": ["http"]}}),
        answers=[Answer(status=201, form=NewTokenShape, words="The new token.", example={**EXAMPLE, "token": "hw_…"})],
        problems=[409],
    ),
    Route(
        method="DELETE",
        path="/tokens/{name}",
        handler=delete,
        permission=Permission.ADMINISTER,
        audit=Audit.OWN,
        summary="Take a token back",
        tag="Access",
        answers=[Answer(status=204, words="It is of no use any more.")],
    ),
]
