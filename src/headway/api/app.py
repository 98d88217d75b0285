"""The service as an ASGI application: the table of routes, and what holds for every answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route as StarletteRoute
from starlette.routing import Router

from headway import settings
from headway.access.allowance import Allowance, parse_rate
from headway.access.doorkeeper import Doorkeeper
from headway.access.origin import Proxies
from headway.access.trail import Trail
from headway.api.call import Service
from headway.api.endpoint import Endpoint
from headway.api.gate import AccessGate, Gatekeeper
from headway.api.news import News
from headway.api.problems import refusal
from headway.api.readiness import Readiness
from headway.api.routes import all_routes
from headway.app import Headway
from headway.clock import Clock, SystemClock
from headway.duties.census import Census
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies
from headway.model.errors import MethodNotAllowed, NotFound

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
"""Of every answer that doesn't say otherwise itself."""
_SECURED = frozenset(name for name, _ in SECURITY)


def make_service(
    app: Headway, gate: Gatekeeper | None = None, clock: Clock | None = None, *, proxies: Proxies | None = None
) -> Service:
    """What the routes need, for an app (its store, its functions). Without a gate the store knows who may."""
    kinds, clock, proxies, held = load_kinds(), clock or SystemClock(), proxies or Proxies(), settings.load()
    doorkeeper = Doorkeeper(app.client.call_patiently, clock)
    return Service(
        app=app,
        gate=gate or AccessGate(doorkeeper),
        doorkeeper=doorkeeper,
        proxies=proxies,
        trail=Trail(app.client.call_patiently, clock),
        clock=clock,
        kinds=kinds,
        functions=app.announced,
        bodies=Bodies(kinds, app.announced, app.vault),
        news=News(app, clock),
        readiness=Readiness(app, clock),
        census=Census(app.client.call, clock),
        allowance=Allowance(parse_rate(held.submit_rate), clock),
        output=held.output,
        routes=all_routes(),
    )


def make_asgi(service: Service, cors_origins: Sequence[str] = ()) -> ASGIApp:
    """The application that a server runs. Pages of these origins may call it with a token; never with a cookie."""
    guarded = _guarded(_routed(service))
    if not cors_origins:
        return guarded
    return CORSMiddleware(
        guarded, allow_origins=cors_origins, allow_methods=["*"], allow_headers=["*"], expose_headers=["*"]
    )


def _routed(service: Service) -> ASGIApp:
    """A path that is written out in the table is found at once, one with parameters by Starlette, in the table's
    order."""
    paths: dict[str, dict[str, Endpoint]] = {}
    for route in service.routes:
        paths.setdefault(route.full_path, {})[route.method] = Endpoint(route, service)
    known = {path: _ByMethod(methods) for path, methods in paths.items()}
    written_out = {path: answers for path, answers in known.items() if "{" not in path}
    router = Router([StarletteRoute(path, answers) for path, answers in known.items()], default=_unknown)

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        found = written_out.get(scope["path"]) if scope["type"] == "http" else None
        await (found or router)(scope, receive, send)

    return routed


class _ByMethod:
    """The routes of one path. HEAD is answered like GET, what the path can't do with 405."""

    def __init__(self, methods: dict[str, Endpoint]) -> None:
        self._methods = methods
        self._allowed = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method in self._methods:
            await self._methods[method](scope, receive, send)
            return
        response = refusal(
            MethodNotAllowed(f"{scope['method']} can't be done with {scope['path']}: use {self._allowed}")
        )
        response.headers["Allow"] = self._allowed
        await response(scope, receive, send)


async def _unknown(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
        return
    await refusal(NotFound(f"there is nothing at {scope['path']}: see /api/docs"))(scope, receive, send)


def _lacking(present: set[bytes]) -> Sequence[tuple[bytes, bytes]]:
    """The security headers that an answer with these headers doesn't have."""
    if _SECURED.isdisjoint(present):
        return SECURITY
    return [header for header in SECURITY if header[0] not in present]


def _guarded(inner: ASGIApp) -> ASGIApp:
    """Security headers on every answer."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await inner(scope, receive, send)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += _lacking({name for name, _ in message["headers"]})
            await send(message)

        return await inner(scope, receive, with_headers)

    return guarded
