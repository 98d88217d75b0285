"""Kind `http`: a request to a server, on time."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import msgspec
from msgspec import UNSET

from headway.executors.http.fields import METHODS, HttpFields
from headway.kinds.contract import Functions, Prepared
from headway.model.errors import InvalidJob
from headway.model.retry import Retry
from headway.outgoing.fields import called, check_headers, check_url, secrets_of

TIMEOUT = 30.0
ATTEMPTS = 5

_STATUS = re.compile(r"[1-5]xx|[1-5]\d\d(-[1-5]\d\d)?")


class HttpKind:
    """Requests."""

    name = "http"
    fields: type[msgspec.Struct] | None = HttpFields
    private: frozenset[str] = frozenset()

    async def prepare(self, fields: HttpFields, functions: Functions) -> Prepared:
        check_url(fields.callback_url, "callback_url")
        check_headers(fields.headers)
        asked = msgspec.structs.replace(fields, http_method=_method(fields.http_method))
        _check_payload(asked)
        for number, pattern in enumerate(asked.expected_status):
            _check_status(pattern, f"expected_status[{number}]")
        return Prepared(
            payload=msgspec.json.encode(asked).decode(),
            name=called(asked.callback_url),
            fields={"timeout": TIMEOUT, "retry": Retry(max_attempts=ATTEMPTS)},
            secrets=(*secrets_of(asked.headers), *(each.secret for each in asked.signing())),
        )


def _method(given: str) -> str:
    method = given.upper()
    if method not in METHODS:
        raise InvalidJob(f"http_method must be one of {', '.join(METHODS)}, not {given!r}", field="http_method")
    return method


def _check_payload(asked: HttpFields) -> None:
    if asked.payload is UNSET or asked.payload is None:
        return
    form, payload = asked.payload_format, asked.payload
    if form == "form" and not _is_form(payload):
        _refuse("an object of texts and numbers, or lists of them", payload)
    if form in {"raw", "base64"} and not isinstance(payload, str):
        _refuse("a text", payload)
    if form == "base64":
        try:
            base64.b64decode(payload, validate=True)
        except binascii.Error as error:
            raise InvalidJob(f"payload is not base64: {error}", field="payload") from None


def _is_form(payload: Any) -> bool:
    return isinstance(payload, dict) and all(
        isinstance(each, str | int | float)
        for value in payload.values()
        for each in (value if isinstance(value, list) else [value])
    )


def _refuse(wanted: str, payload: object) -> None:
    raise InvalidJob(f"payload must be {wanted} for this payload_format, not {type(payload).__name__}", field="payload")


def _check_status(pattern: int | str, field: str) -> None:
    if not _STATUS.fullmatch(str(pattern)):
        raise InvalidJob(f'{field} must be a status such as 204, "2xx" or "300-304", not {pattern!r}', field=field)
