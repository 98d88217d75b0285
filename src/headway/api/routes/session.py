"""Logging in and out, and who one is."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headway.access.doorkeeper import SESSION_TTL, Opened
from headway.access.passwords import LONGEST
from headway.api.call import Call, answer, nothing
from headway.api.gate import cookie_name, refuse_cross_site, session_secret
from headway.api.table import PUBLIC, Answer, Audit, Body, Route
from headway.model.access import Permission, Principal, Role
from headway.model.errors import InvalidRequest

Text = Annotated[str, Meta(min_length=1, max_length=LONGEST)]


class Login(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Name and password, or the code of a login link, or a token."""

    name: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    password: Text | None = None
    code: Text | None = None
    token: Text | None = None


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Who is logged in, and what they may do."""

    name: str
    role: Role
    permissions: list[Permission]
    kinds: list[str] | None = None
    queues: list[str] | None = None
    expires_at: datetime | None = None


EXAMPLE = {"name": "user:ann", "role": "viewer", "permissions": ["read"], "kinds": None, "queues": None}


def shape(principal: Principal, expires_at: datetime | None = None) -> Me:
    return Me(
        name=principal.name,
        role=principal.role,
        permissions=sorted(principal.role.permissions),
        kinds=None if principal.kinds is None else sorted(principal.kinds),
        queues=None if principal.queues is None else sorted(principal.queues),
        expires_at=expires_at,
    )


async def log_in(call: Call) -> Response:
    """201 and a cookie. A secret that the browser had before is not taken over: the new session has one of its own."""
    refuse_cross_site(call)
    opened = await _opened(call, call.body)
    response = answer(shape(opened.session.principal, opened.session.expires_at), 201, {"Cache-Control": "no-store"})
    _set_cookie(call, response, opened.secret, int(SESSION_TTL))
    return response


async def show(call: Call) -> Response:
    assert call.principal is not None
    return answer(shape(call.principal), headers={"Cache-Control": "no-store"})


async def log_out(call: Call) -> Response:
    """The session ends, and the browser forgets it."""
    secret = session_secret(call)
    if secret is not None:
        await call.service.doorkeeper.log_out(secret, call.caller)
    response = nothing()
    _set_cookie(call, response, "", 0)
    return response


async def _opened(call: Call, login: Login) -> Opened:
    doorkeeper, address = call.service.doorkeeper, call.origin.address
    match login:
        case Login(name=str(name), password=str(password), code=None, token=None):
            return await doorkeeper.log_in(name, password, address)
        case Login(name=None, password=None, code=str(code), token=None):
            return await doorkeeper.redeem(code, address)
        case Login(name=None, password=None, code=None, token=str(token)):
            return await doorkeeper.exchange_token(token, address)
        case _:
            raise InvalidRequest("give name and password, or the code of a login link, or a token", field="name")


def _set_cookie(call: Call, response: Response, secret: str, age: int) -> None:
    origin = call.origin
    response.set_cookie(
        cookie_name(origin), secret, max_age=age, path="/", secure=origin.encrypted, httponly=True, samesite="strict"
    )


ROUTES = [
    Route(
        method="POST",
        path="/session",
        handler=log_in,
        permission=PUBLIC,
        secret=True,
        audit=Audit.OWN,
        summary="Log in",
        description="By name and password, by the code of a login link (once), or by a token. Sets a session cookie.",
        tag="Access",
        body=Body(
            form=Login,
            examples={
                "password": {"name": "ann", "password": "correct horse battery"},
                "link": {"code": "from the fragment of the link"},
                "token": {"token": "hw_…"},
            },
        ),
        answers=[Answer(status=201, form=Me, words="Who you are.", example=EXAMPLE)],
        problems=[401, 403, 429],
    ),
    Route(
        method="GET",
        path="/session",
        handler=show,
        permission=Permission.READ,
        summary="Who you are, and what you may do",
        tag="Access",
        answers=[Answer(form=Me, words="You.", example=EXAMPLE)],
    ),
    Route(
        method="DELETE",
        path="/session",
        handler=log_out,
        permission=Permission.READ,
        audit=Audit.OWN,
        summary="Log out",
        tag="Access",
        answers=[Answer(status=204, words="Your session has ended.")],
    ),
]
