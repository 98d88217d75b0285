"""A route of the table at work: identify, permit, read, handle, answer. Exceptions stop here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from headway.api.auditing import audited
from headway.api.call import Call, Service
from headway.api.problems import refusal
from headway.api.reading import read_body, read_query
from headway.api.squeezing import squeeze
from headway.api.table import Public, Route
from headway.model.errors import Forbidden, HeadwayError, InsecureTransport, InternalError
from headway.observe.logs import get_logger

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

log = get_logger("headway.api")


class Endpoint:
    """An ASGI application for one route."""

    def __init__(self, route: Route, service: Service) -> None:
        self._route = route
        self._service = service
        self._handler = audited(route)
        self._sensitive = route.sensitive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(Request(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        try:
            return squeeze(request, await self._handler(await self._read(request)))
        except HeadwayError as error:
            return refusal(error)
        except Exception as error:
            log.exception("api.failed", method=request.method, path=request.url.path, error=str(error))
            return refusal(InternalError())

    async def _read(self, request: Request) -> Call:
        """The call, with all that can be told about it before its handler."""
        route, service = self._route, self._service
        call = Call(request, service, None)
        if self._sensitive and not call.origin.secure:
            raise InsecureTransport
        if not isinstance(route.permission, Public):
            call.principal = await service.gate.identify(call)
            assert route.permission is not None  # held by `table.check`
            if not call.principal.may(route.permission):
                raise Forbidden(
                    f"{call.principal.name} has the role {call.principal.role}, which may not do this: it needs the "
                    f"permission {route.permission.value!r}; ask an administrator"
                )
        if route.query is not None:
            call.query = read_query(route.query, request)
        if route.body is not None and not route.body.raw:
            call.body = await read_body(route.body, call)
        return call
