"""A result: its content, and what is known of it besides."""

from __future__ import annotations

from typing import Any

import msgspec

JSON = "application/json"


class ResultMeta(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a result besides its content."""

    content_type: str
    size: int
    meta: dict[str, Any] = {}
    """What its executor says of it, such as status, headers and timings of a response."""


class Stored(ResultMeta, frozen=True, kw_only=True):
    """A result as stored: small ones in `data`, large ones in chunks to be read one after another."""

    data: bytes | None


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a result is, where that is more than JSON."""

    content_type: str = JSON
    meta: dict[str, Any] = {}
    source: str | None = None
    """What the result is the content of, by which it can be found again."""

    def fields(self) -> dict[str, Any]:
        meta = msgspec.json.encode(self.meta).decode() if self.meta else None
        return {"content_type": self.content_type, "meta": meta, "source": self.source}
