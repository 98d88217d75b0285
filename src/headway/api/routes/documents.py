"""The API's own description, for programs and for people."""

from __future__ import annotations

from importlib.resources import files

from starlette.responses import Response

from headway.api.call import Call, tagged
from headway.api.docs import page
from headway.api.openapi import document
from headway.api.table import PUBLIC, Answer, Route

_CSP = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_HTML = {"type": "string"}


async def openapi(call: Call) -> Response:
    return tagged(call, document(call.service.routes, call.service.kinds))


async def docs(call: Call) -> Response:
    """Made here, of the same document: it needs no script at all."""
    content = page(document(call.service.routes, call.service.kinds))
    return Response(content, headers={"Content-Security-Policy": _CSP}, media_type="text/html")


async def style(_call: Call) -> Response:
    content = files("headway.api").joinpath("static/docs.css").read_bytes()
    return Response(content, headers={"Cache-Control": "no-cache"}, media_type="text/css")


ROUTES = [
    Route(
        method="GET",
        path="/api/openapi.json",
        root=True,
        handler=openapi,
        permission=PUBLIC,
        summary="This description (OpenAPI 3.1)",
        tag="Documentation",
        answers=[
            Answer(words="The document.", schema={"type": "object"}, example={"openapi": "3.1.0"}),
            Answer(status=304, words="It is as you have it."),
        ],
    ),
    Route(
        method="GET",
        path="/api/docs",
        root=True,
        handler=docs,
        permission=PUBLIC,
        summary="This description, for people",
        tag="Documentation",
        answers=[Answer(words="A page.", content_type="text/html", schema=_HTML)],
    ),
    Route(
        method="GET",
        path="/api/docs.css",
        root=True,
        handler=style,
        permission=PUBLIC,
        summary="How it looks",
        hidden=True,
    ),
]
