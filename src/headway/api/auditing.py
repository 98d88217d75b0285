"""Who changed what over HTTP: a line in the audit log for every request that changes something."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from starlette.responses import Response

from headway.access.trail import entry
from headway.api.call import Call
from headway.api.table import API, Audit, Handler, Route
from headway.model.access import Permission
from headway.model.errors import HeadwayError

SAFE = ("GET", "HEAD", "OPTIONS")
_VERBS = {"GET": "read", "POST": "create", "PATCH": "change", "PUT": "replace", "DELETE": "delete"}
_PARAMETER = re.compile(r"{[^}]*}")


def audited(route: Route) -> Handler:
    """The route's handler, which also writes down that it has acted."""
    handler = route.handler
    match when(route):
        case Audit.NEVER | Audit.OWN:
            return handler
        case Audit.SOON:
            return _soon(handler, action(route))
        case Audit.AFTER:
            return _after(handler, action(route))
        case Audit.FIRST:
            return _first(handler, action(route), route.told)


def when(route: Route) -> Audit:
    """When the route's line is written."""
    if route.audit is not None:
        return route.audit
    if route.permission is Permission.READ_SCRIPTS:
        # To have read a script is told too: it may say how to get in somewhere.
        return Audit.FIRST
    if route.method in SAFE:
        return Audit.NEVER
    return Audit.FIRST if route.method != "POST" or _PARAMETER.search(route.path) else Audit.AFTER


def action(route: Route) -> str:
    """`POST /jobs` is `jobs.create`, `POST /jobs/{job_id}/cancel` is `jobs.cancel`, `DELETE /jobs/{job_id}` …"""
    collection, *rest = [part for part in route.path.split("/") if part]
    verbs = [part for part in rest if not _PARAMETER.fullmatch(part)]
    return f"{collection}.{verbs[-1] if verbs else _VERBS[route.method]}"


def _soon(handler: Handler, does: str) -> Handler:
    async def act(call: Call) -> Response:
        response = await handler(call)
        call.service.trail.note(call.caller, does, _made(call, response))
        return response

    return act


def _after(handler: Handler, does: str) -> Handler:
    async def act(call: Call) -> Response:
        response = await handler(call)
        await call.service.trail.write(entry(call.caller, does, _made(call, response)))
        return response

    return act


def _first(handler: Handler, does: str, told: Sequence[str]) -> Handler:
    async def act(call: Call) -> Response:
        async def write(**detail: Any) -> None:
            await call.service.trail.write(entry(call.caller, does, _thing(call.request.url.path), **detail))

        await write(**_asked(told, call.body))
        try:
            response = await handler(call)
        except HeadwayError as error:
            await write(refused=error.code)
            raise
        if call.done:
            await write(**call.done)
        return response

    return act


def _asked(told: Sequence[str], body: Any) -> dict[str, Any]:
    """What the line repeats of the body."""
    if not told:
        return {}
    said = body if isinstance(body, dict) else msgspec.structs.asdict(body)
    return {name: said[name] for name in told if said.get(name, UNSET) is not UNSET}


def _made(call: Call, response: Response) -> str:
    """What was made, or where that was asked for."""
    location = next((value for name, value in response.raw_headers if name == b"location"), None)
    return _thing(location.decode("latin-1") if location else call.request.url.path)


def _thing(path: str) -> str:
    return path.removeprefix(API).strip("/")
