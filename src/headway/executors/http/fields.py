"""What a body of kind `http` says, and what the executor reads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headway.outgoing.fields import HEADERS, Headers, Redirects, Seconds, SecretRef

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
KEPT = 64 * 1024
MOST_KEPT = 1024 * 1024

Query = dict[str, str | int | float | bool | list[str | int | float | bool]]


class HttpFields(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A request, as it is asked for."""

    callback_url: Annotated[str, Meta(description='a URL, such as "https://example.com/hook"')]
    http_method: Annotated[str, Meta(description=f"one of {', '.join(METHODS)}")] = "POST"
    headers: Annotated[Headers, Meta(description=HEADERS)] = {}
    query: Annotated[Query, Meta(description='an object such as {"page": 2, "tag": ["a", "b"]}')] = {}
    payload: Annotated[Any | UnsetType, Meta(description="what is sent as the body, by its payload_format")] = UNSET
    payload_format: Annotated[
        Literal["json", "form", "raw", "base64"],
        Meta(description="json, form (an object of texts), raw (a text) or base64 (bytes, written in base64)"),
    ] = "json"
    expected_status: Annotated[
        tuple[int | str, ...],
        Meta(min_length=1, description='a list such as [200, "2xx", "300-304"]; by default ["2xx"]'),
    ] = ("2xx",)
    max_redirects: Annotated[Redirects, Meta(description="how many redirects to follow, from 0 to 20")] = 0
    connect_timeout: Annotated[
        Seconds | None, Meta(description="seconds in which a connection must be made; null for no limit of its own")
    ] = 10.0
    read_timeout: Annotated[
        Seconds | None, Meta(description="seconds in which the server must say something; null for no limit of its own")
    ] = None
    max_size: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_KEPT)],
        Meta(description="how many bytes of the response to keep, at most 1,048,576"),
    ] = KEPT
    sign: Annotated[
        SecretRef | list[SecretRef] | None,
        Meta(description='the secret to sign with, {"secret": "name"}, or two while one replaces the other'),
    ] = None

    def signing(self) -> list[SecretRef]:
        """The secrets to sign with."""
        if self.sign is None:
            return []
        return self.sign if isinstance(self.sign, list) else [self.sign]
