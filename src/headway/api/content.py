"""Content that isn't ours: results, output, files. Whatever it claims to be, a browser must not run it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Protocol
from urllib.parse import quote

import msgspec
from starlette.responses import Response, StreamingResponse

from headway.api.call import NO_CACHE, Call
from headway.api.tags import names_tag
from headway.model.errors import HeadwayError

GUARD = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Accept-Ranges": "bytes",
    "Cache-Control": NO_CACHE,
}
_SCRIPTS = re.compile(r"(java|ecma|j|live|type|x-java|x-ecma)script|wasm", re.IGNORECASE)
_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(\s*;\s*[\w-]+=(\"[^\"]*\"|[\w.+-]+))*")
_RANGE = re.compile("bytes=([0-9]{0,18})-([0-9]{0,18})")


class RangeNotSatisfiable(HeadwayError):
    """A part was asked for that isn't there."""

    code = "range_not_satisfiable"


class Pieces(Protocol):
    """Content in pieces that can be read one by one."""

    @property
    def sizes(self) -> Sequence[int]: ...

    def read(self, first: int, last: int) -> AsyncIterator[bytes]:
        """The pieces from the first to the last, in order."""


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of some content."""

    content_type: str
    filename: str
    tag: str | None = None
    """A strong ETag; None for what still grows."""
    live: bool = False
    """Pieces of it may be taken out while it is sent, so nobody can say how long it will have been."""


def safe_type(content_type: str) -> str:
    """The type under which content is handed out: its own, unless a browser might run it or nobody could read it."""
    if not _TYPE.fullmatch(content_type):
        return "application/octet-stream"
    return "text/plain; charset=utf-8" if _SCRIPTS.search(content_type.partition(";")[0]) else content_type


def send(call: Call, described: Described, pieces: Pieces) -> Response:
    """The content, or the part of it that was asked for."""
    size = sum(pieces.sizes)
    headers = {**GUARD, "Content-Disposition": f"attachment; filename*=UTF-8''{quote(described.filename)}"}
    if described.tag is not None:
        headers["ETag"] = described.tag
        if names_tag(call.header("if-none-match"), described.tag):
            return Response(status_code=304, headers=headers)
    part = _part(call, described, size)
    start, stop = part or (0, size)
    if not described.live:
        headers["Content-Length"] = str(stop - start)
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return StreamingResponse(
        _between(pieces, start, stop),
        206 if part else 200,
        headers=headers,
        media_type=safe_type(described.content_type),
    )


def _part(call: Call, described: Described, size: int) -> tuple[int, int] | None:
    """The one range that was asked for, if it holds for this very content; several at once are answered with all."""
    asked = _RANGE.fullmatch(call.header("range") or "")
    if asked is None or asked.group(0) == "bytes=-":
        return None
    condition = call.header("if-range")
    if condition is not None and condition != described.tag:
        return None
    first, last = asked[1], asked[2]
    start = int(first) if first else max(size - int(last), 0)
    stop = min(int(last) + 1, size) if first and last else size
    if first and last and int(last) < int(first):
        return None
    if start >= size or (not first and int(last) == 0):
        raise RangeNotSatisfiable(f"there are {size:,} bytes, none of them from {start:,} on")
    return start, stop


async def _between(pieces: Pieces, start: int, stop: int) -> AsyncIterator[bytes]:
    """The bytes from `start` up to `stop`, reading only the pieces that hold them."""
    ends, total = [], 0
    for size in pieces.sizes:
        total += size
        ends.append(total)
    wanted = [index for index, end in enumerate(ends) if end > start and end - pieces.sizes[index] < stop]
    if not wanted:
        return
    at = ends[wanted[0]] - pieces.sizes[wanted[0]]
    async for piece in pieces.read(wanted[0], wanted[-1]):
        yield piece[max(start - at, 0) : stop - at]
        at += len(piece)


class Whole:
    """Content in one piece."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.sizes = (len(content),)

    async def read(self, first: int, last: int) -> AsyncIterator[bytes]:
        yield self._content
