"""What bodies of all kinds that send requests have, and how it is checked. Submitting must do without aiohttp."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from headway.model.errors import InvalidJob

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Redirects = Annotated[int, Meta(ge=0, le=20)]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\U0010ffff]*")
_NOT_YOURS = {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"}
_BLANK = re.compile(r"[\x00-\x20\x7f]")
LONGEST_URL = 8000


class SecretRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The value of a named secret, read from the vault when the request is sent."""

    secret: Annotated[str, Meta(min_length=1, max_length=200)]
    prefix: str = ""


Headers = dict[str, str | SecretRef]

HEADERS = 'an object such as {"X-Team": "ops", "Authorization": {"secret": "api-token", "prefix": "Bearer "}}'


def check_url(url: str, field: str) -> None:
    """Raises InvalidJob."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise InvalidJob(f"{field}: {url[:200]!r} is no URL: {error}", field=field) from None
    if parts.scheme not in {"http", "https"} or not host:
        raise InvalidJob(
            f"{field} must be a URL that begins with http:// or https://, such as 'https://example.com/hook', "
            f"not {url[:200]!r}",
            field=field,
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidJob(
            f"{field} must not carry a user name or password, which everybody could read: "
            'use a header, {"Authorization": {"secret": "name", "prefix": "Basic "}}',
            field=field,
        )
    if port == 0 or _BLANK.search(url) or len(url) > LONGEST_URL or not _encodable(host):
        raise InvalidJob(
            f"{field}: {url[:200]!r} can't be asked: it must be at most {LONGEST_URL:,} characters, without blanks, "
            "with a valid host and port",
            field=field,
        )


def check_headers(headers: Mapping[str, str | SecretRef], field: str = "headers") -> None:
    """Raises InvalidJob."""
    seen: set[str] = set()
    for name, value in headers.items():
        where = f"{field}.{name}"
        if not _TOKEN.fullmatch(name):
            raise InvalidJob(f"{field}: {name!r} is no name of a header", field=field)
        if name.lower() in _NOT_YOURS:
            raise InvalidJob(f"{where} can't be set: it follows from the request itself", field=where)
        if name.lower() in seen:
            raise InvalidJob(f"{where} is given twice, in different letters", field=where)
        seen.add(name.lower())
        text = value.prefix if isinstance(value, SecretRef) else value
        if not _VALUE.fullmatch(text):
            raise InvalidJob(f"{where} must be one line of text", field=where)


def secrets_of(headers: Mapping[str, str | SecretRef]) -> tuple[str, ...]:
    """The names of the secrets that these need."""
    return tuple(value.secret for value in headers.values() if isinstance(value, SecretRef))


def called(url: str) -> str:
    """What a job is called after its URL: host and path."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path or '/'}"[:200]


def _encodable(host: str) -> bool:
    if host.isascii():
        return ".." not in host
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True
