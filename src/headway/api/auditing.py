"""Who changed what over HTTP: a line in the audit log for every request that changes something."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET
from starlette.responses import Response

from headway.access.trail import entry
from headway.api.call import Call
from headway.api.table import API, Audit, Route
from headway.model.access import Entry, Permission
from headway.model.errors import HeadwayError

SAFE = ("GET", "HEAD", "OPTIONS")
_VERBS = {"GET": "read", "POST": "create", "PATCH": "change", "PUT": "replace", "DELETE": "delete"}
_PARAMETER = re.compile(r"{[^}]*}")


async def carry_out(route: Route, call: Call) -> Response:
    """Let the route's handler act, and write down that it did."""
    match when(route):
        case Audit.NEVER | Audit.OWN:
            return await route.handler(call)
        case Audit.SOON:
            response = await route.handler(call)
            call.service.trail.note(_line(route, call, response))
            return response
        case Audit.AFTER:
            response = await route.handler(call)
            await call.service.trail.write(_line(route, call, response))
            return response
        case Audit.FIRST:
            return await _first(route, call)


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


async def _first(route: Route, call: Call) -> Response:
    await call.service.trail.write(_line(route, call, **_asked(route, call.body)))
    try:
        response = await route.handler(call)
    except HeadwayError as error:
        await call.service.trail.write(_line(route, call, refused=error.code))
        raise
    if call.done:
        await call.service.trail.write(_line(route, call, **call.done))
    return response


def _asked(route: Route, body: Any) -> dict[str, Any]:
    """What the line repeats of the body."""
    if not route.told:
        return {}
    said = body if isinstance(body, dict) else msgspec.structs.asdict(body)
    return {name: said[name] for name in route.told if said.get(name, UNSET) is not UNSET}


def _line(route: Route, call: Call, response: Response | None = None, /, **detail: Any) -> Entry:
    made = response.headers.get("location") if response is not None else None
    path = made or call.request.url.path
    return entry(call.caller, action(route), path.removeprefix(API).strip("/"), **detail)
