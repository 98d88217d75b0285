"""What a request says: its query and its body, within limits, as data or as structs."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, TypeVar, get_type_hints

import msgspec
from starlette.requests import Request

from headway.api.call import Call
from headway.api.table import JSON, MIB, Body
from headway.kinds.reading import names, read, refused
from headway.model.errors import InvalidRequest, Malformed, TooLarge, UnsupportedMediaType

T = TypeVar("T", bound=msgspec.Struct)

DRAINED = 8 * MIB
"""Of a body that is too large, so much is read and thrown away: who still sends can't hear the refusal."""
NUL = "\0"
DEPTH_LIMIT = 64
"""Levels of lists and objects within each other."""
_LENGTH = re.compile("[0-9]{1,18}")


def read_query(form: type[T], request: Request) -> T:
    """The struct that the query stands for. Several values may be repeated or separated by commas."""
    lists = _lists(form)
    given: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if NUL in value:
            raise InvalidRequest(f"{name} must not contain the character U+0000", field=name)
        if name in lists:
            given.setdefault(name, []).extend(part.strip() for part in value.split(",") if part.strip())
        elif name in given:
            raise InvalidRequest(f"{name} is given twice: give it once", field=name)
        else:
            given[name] = value
    return read(form, given, InvalidRequest, strict=False)


async def read_body(body: Body, call: Call) -> Any:
    """The body as the route wants it."""
    content = await read_bytes(call, body.limit)
    if not content and not body.required:
        return body.form() if body.form is not None else {}
    _require_type(call, body.content_type)
    if body.bytes:
        return content
    plain = decode(content)
    if not isinstance(plain, dict):
        raise InvalidRequest("the body must be a JSON object")
    if body.form is None:
        return plain
    if b"\\u0000" in content and _has_nul(plain):
        raise InvalidRequest("the body must not contain the character U+0000")
    return read(body.form, plain, InvalidRequest)


async def read_bytes(call: Call, limit: int) -> bytes:
    """The whole body. Raises TooLarge; no more than the limit is ever kept."""
    declared = call.headers.get("content-length", "")
    if _LENGTH.fullmatch(declared) and int(declared) > limit + DRAINED:
        raise _too_large(limit)
    parts, size, more = list[bytes](), 0, True
    while more and size <= limit + DRAINED:
        message = await call.request.receive()
        if message["type"] == "http.disconnect":
            raise Malformed("the connection ended before the body did")
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size <= limit:
            parts.append(part)
    if size > limit:
        raise _too_large(limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decode(content: bytes) -> Any:
    """JSON as plain data, not too deep. Raises Malformed."""
    try:
        plain = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    # Few brackets can't be deep, and nearly all bodies have few.
    if content.count(b"{") + content.count(b"[") > DEPTH_LIMIT and _deeper(plain, DEPTH_LIMIT):
        raise _too_deep()
    return plain


def decode_as(content: bytes, form: type[T]) -> T:
    """JSON as a struct. Raises Malformed, InvalidRequest."""
    try:
        return msgspec.json.decode(content, type=form)
    except msgspec.ValidationError as error:
        raise refused(form, error, InvalidRequest) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None


def _deeper(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [each for outer in level if isinstance(outer, dict | list) for each in _parts(outer)]
        if not level:
            return False
    return True


def _has_nul(value: Any) -> bool:
    """Whether a text in it has the one character that not every store takes."""
    if isinstance(value, str):
        return NUL in value
    if isinstance(value, dict):
        return any(NUL in name or _has_nul(each) for name, each in value.items())
    return isinstance(value, list) and any(map(_has_nul, value))


def _parts(outer: dict[str, Any] | list[Any]) -> Any:
    return outer.values() if isinstance(outer, dict) else outer


def _require_type(call: Call, wanted: str) -> None:
    given = call.headers.get("content-type", wanted).partition(";")[0].strip().lower()
    if given != wanted and not (wanted == JSON and given.endswith("+json")):
        hint = " (with curl: --json instead of -d)" if wanted == JSON else ""
        raise UnsupportedMediaType(f"the body must be {wanted}, not {given}: say so in Content-Type{hint}")


@cache
def _lists(form: type[msgspec.Struct]) -> frozenset[str]:
    hints = get_type_hints(form)
    written = zip(form.__struct_fields__, names(form), strict=True)
    return frozenset(name for field, name in written if "list" in str(hints[field]))


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body takes more than {limit:,} bytes: send less at once")


def _too_deep() -> Malformed:
    return Malformed(f"the body has more than {DEPTH_LIMIT} levels of lists and objects within each other")
