"""JSON that is long enough for it to pay goes compressed over the line."""

from __future__ import annotations

import gzip

from starlette.requests import Request
from starlette.responses import Response

from headway.api.table import JSON
from headway.api.tags import SQUEEZED

LEAST = 4 * 1024
"""Bytes from which on it pays."""
LEVEL = 4


def squeeze(request: Request, response: Response) -> Response:
    """The same answer, compressed if whoever asks can read that. Streams and contents of jobs stay as they are."""
    body = getattr(response, "body", b"")
    if len(body) < LEAST or response.media_type != JSON or "content-encoding" in response.headers:
        return response
    response.headers["Vary"] = "Accept-Encoding"
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return response
    response.body = gzip.compress(body, LEVEL, mtime=0)
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Length"] = str(len(response.body))
    if "etag" in response.headers:
        # A strong tag is one of these very bytes.
        response.headers["ETag"] = f'{response.headers["etag"][:-1]}{SQUEEZED}"'
    return response
