"""The web page: its files, and the policy under which a browser runs them.

The page is one document, whatever part of it an address names; `web/src/app/router.tsx` tells them apart. Scripts come
from /assets/ only, and nothing in the document is a script. Style sheets that the page makes carry a nonce that is
new with every answer.
"""

from __future__ import annotations

import gzip
import mimetypes
import re
import secrets
from functools import cache
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headway.api.call import Call
from headway.api.table import PUBLIC, Answer, Route
from headway.model.errors import NotFound

PAGE = Path(__file__).parent.parent / "page"
"""Built from web/ by hatch_build.py."""
NONCE = b"__NONCE__"
_HOST = re.compile(r"^[A-Za-z0-9._-]+(?::\d{1,5})?$")
_COMPRESSIBLE = ("text/", "application/javascript", "image/svg")
_HASHED = re.compile(r"-[\w-]{8}\.\w+$")

PLACES = (
    "/",
    "/jobs",
    "/jobs/{id}",
    "/submit",
    "/schedules",
    "/schedules/{id}",
    "/queues",
    "/workers",
    "/targets",
    "/secrets",
    "/alerts",
    "/access",
    "/audit",
    "/login",
)
"""Addresses within the page. A test compares them with those that the page knows."""


class Asset(msgspec.Struct, frozen=True):
    """A file of the page."""

    content: bytes
    compressed: bytes | None
    media_type: str
    caching: str


async def show_page(call: Call) -> Response:
    """The document, with a nonce of its own."""
    nonce = secrets.token_urlsafe(18)
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": policy(nonce, call.request)}
    return Response(document().replace(NONCE, nonce.encode()), headers=headers, media_type="text/html")


async def show_asset(call: Call) -> Response:
    """A file that the document names."""
    name = call.path("name")
    found = asset(name)
    headers = {"Cache-Control": found.caching, "Vary": "Accept-Encoding"}
    if found.compressed is not None and "gzip" in call.headers.get("accept-encoding", ""):
        return Response(found.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.media_type)
    return Response(found.content, headers=headers, media_type=found.media_type)


def policy(nonce: str, request: Request) -> str:
    """What the page may load and do."""
    host = request.headers.get("host", "")
    # A source with a path must name its host. Policies know no IPv6 addresses, and only /assets/ here serves scripts.
    scripts = f"{host}/assets/" if _HOST.match(host) else "'self'"
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {scripts}",
            f"style-src 'self' 'nonce-{nonce}'",
            "style-src-attr 'unsafe-inline'",
            "img-src 'self' blob: data:",
            "font-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )


@cache
def document() -> bytes:
    """The page's document, with a mark where the nonce goes."""
    try:
        return (PAGE / "index.html").read_bytes()
    except FileNotFoundError:
        raise NotFound(
            "the web page is not built in this installation: run `python hatch_build.py` in a clone, or install a wheel"
        ) from None


@cache
def assets() -> dict[str, Path]:
    """The files that may be asked for; what is not among them is nowhere."""
    return {path.name: path for path in (PAGE / "assets").glob("*") if path.is_file()}


@cache
def asset(name: str) -> Asset:
    """A file of the page, ready to be sent."""
    path = assets().get(name)
    if path is None:
        raise NotFound(f"the page has no file {name}: load the page again")
    content = path.read_bytes()
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    squeezed = gzip.compress(content, 9, mtime=0) if media_type.startswith(_COMPRESSIBLE) else None
    # The name of a hashed file changes with its content.
    caching = "public, max-age=31536000, immutable" if _HASHED.search(name) else "no-cache"
    return Asset(content, squeezed, media_type, caching)


def _place(path: str) -> Route:
    return Route(
        method="GET",
        path=path,
        root=True,
        hidden=True,
        handler=show_page,
        permission=PUBLIC,
        summary="The web page",
        tag="Page",
        answers=[Answer(words="The page.", content_type="text/html")],
    )


ROUTES = [
    *(_place(path) for path in PLACES),
    Route(
        method="GET",
        path="/assets/{name}",
        root=True,
        hidden=True,
        handler=show_asset,
        permission=PUBLIC,
        summary="A file of the web page",
        tag="Page",
        answers=[Answer(words="The file.", content_type="application/octet-stream")],
    ),
]
