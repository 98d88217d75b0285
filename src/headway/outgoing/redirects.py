"""What a redirect makes of a request. Pure."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import msgspec

from headway.outgoing.errors import InvalidTarget
from headway.outgoing.messages import Answer, Request

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GO_ANYWHERE = {"accept", "accept-encoding", "accept-language", "user-agent", "content-type"}
"""Headers that tell nothing about who asks; all others were meant for the server that they were addressed to."""
_OF_BODY = {"content-type", "content-length"}
_PORTS = {"http": 80, "https": 443}


def followed(request: Request, answer: Answer) -> bool:
    """Whether the answer sends the request elsewhere, and it is to go there."""
    return request.max_redirects > 0 and answer.status in REDIRECTS and "location" in answer.headers


def follow(request: Request, answer: Answer) -> Request:
    """The request that a redirect asks for. Raises InvalidTarget."""
    status, url = answer.status, _target(request.url, answer.headers["location"])
    headers = dict(request.headers)
    if origin(url) != origin(request.url):
        headers = {name: value for name, value in headers.items() if name.lower() in _GO_ANYWHERE}
    method, body = request.method, request.body
    if (status == 303 and method != "HEAD") or (status in {301, 302} and method == "POST"):
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if name.lower() not in _OF_BODY}
    return msgspec.structs.replace(request, method=method, url=url, headers=headers, body=body)


def _target(url: str, location: str) -> str:
    try:
        target = urljoin(url, location)
        origin(target)
        return target
    except ValueError as error:
        raise InvalidTarget(f"{url} redirects to {location!r}, which is no URL: {error}") from error


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme)
