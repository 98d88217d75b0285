"""What a body of kind `fetch` says, and what the executor reads."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from headway.outgoing.fields import HEADERS, Headers, Redirects, Seconds

LARGEST = 256 * 1024 * 1024


class FetchFields(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What to fetch."""

    url: Annotated[str, Meta(description='a URL, such as "https://example.com/data.json"')]
    headers: Annotated[Headers, Meta(description=HEADERS)] = {}
    max_redirects: Annotated[Redirects, Meta(description="how many redirects to follow, from 0 to 20")] = 5
    max_size: Annotated[
        Annotated[int, Meta(ge=1, le=LARGEST)] | None,
        Meta(description=f"how many bytes the content may have, at most {LARGEST:,}; more is an error"),
    ] = None
    connect_timeout: Annotated[
        Seconds | None, Meta(description="seconds in which a connection must be made; null for no limit of its own")
    ] = 10.0
    read_timeout: Annotated[
        Seconds | None, Meta(description="seconds in which the server must say something; null for no limit of its own")
    ] = None


class FetchPayload(FetchFields, kw_only=True):
    """The same, completed."""

    source: str
    """Equal for jobs that fetch the same: normalised URL and headers."""
