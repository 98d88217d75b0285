"""A request to another server, and its answer, as executors know them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

LONGEST_WAIT = 24 * 3600.0
OCTETS = "application/octet-stream"

_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(\s*;[^\x00-\x1f\x7f]*)?", re.ASCII)
_CHARSET = re.compile(r""";\s*charset\s*=\s*"?([\w.:+-]+)""", re.IGNORECASE | re.ASCII)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to ask for, and how much of an answer to take."""

    method: str = "GET"
    url: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    max_redirects: int = 0
    max_size: int
    """Bytes of content, unpacked."""
    cut: bool = False
    """Of larger content the beginning is kept; otherwise it is refused."""
    connect_timeout: float | None = None
    read_timeout: float | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a server said."""

    status: int
    reason: str
    headers: dict[str, str]
    """Names in lower case; of repeated ones the values are joined."""
    url: str
    """The one that answered, after redirects."""
    redirects: int
    content: bytes = b""
    cut: bool = False
    packed: str | None = None
    """A content encoding that is not known here: the content is as it came."""
    timings: dict[str, float | bool] = {}

    @property
    def content_type(self) -> str:
        given = self.headers.get("content-type", "").strip()
        return given if len(given) <= 200 and _TYPE.fullmatch(given) else OCTETS

    @property
    def charset(self) -> str | None:
        found = _CHARSET.search(self.content_type)
        return found[1].lower() if found else None

    def meta(self) -> dict[str, Any]:
        """All but the content."""
        told = {
            "status": self.status,
            "reason": self.reason,
            "url": self.url,
            "redirects": self.redirects,
            "headers": self.headers,
            "charset": self.charset,
            "encoding": self.packed,
            "timings": self.timings,
        }
        return {name: value for name, value in told.items() if value is not None}

    def retry_after(self, now: datetime) -> float:
        """Seconds for which the server wants to be left alone."""
        text = self.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdigit():
            return min(float(text), LONGEST_WAIT)
        try:
            at = parsedate_to_datetime(text)
            return min(max((at - now).total_seconds(), 0.0), LONGEST_WAIT)
        except (TypeError, ValueError, OverflowError):
            return 0.0
