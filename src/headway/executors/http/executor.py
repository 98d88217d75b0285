"""Runs jobs of kind `http`."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec
from msgspec import UNSET

from headway.executors.asking import Desk, Revealed, check, without_secrets
from headway.executors.contract import Answer as Ended
from headway.executors.contract import Completed, Context, Defaults, Setup
from headway.executors.http.fields import HttpFields
from headway.executors.http.signature import sign
from headway.model.job import Claim
from headway.model.result import About
from headway.model.retry import Retry
from headway.outgoing.messages import Answer, Request

_decode = msgspec.json.Decoder(HttpFields).decode

_TYPES = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "raw": "text/plain; charset=utf-8",
    "base64": "application/octet-stream",
}


_CHARSET = re.compile(
    r"utf-?8|utf-?16(-?[bl]e)?|utf-?32(-?[bl]e)?|(us-)?ascii|latin-?1|iso-?8859-[0-9]{1,2}|windows-[0-9]{3,4}"
    r"|cp[0-9]{3,4}|koi8-[ru]|shift[_-]jis|euc-(jp|kr)|iso-2022-jp|gb2312|gbk|gb18030|big5|tis-620|macintosh"
)
"""Those in which text is told as text."""


class HttpExecutor:
    """Sends a request, and keeps the answer as the job's result."""

    kind = "http"
    defaults = Defaults(timeout=30.0, retry=Retry(max_attempts=5), light=True)

    def __init__(self, setup: Setup) -> None:
        self._desk = Desk(setup, self.kind)

    async def start(self) -> None:
        """Connections are made when they are needed."""

    async def close(self) -> None:
        await self._desk.close()

    async def submit(self, claim: Claim, context: Context) -> Ended:
        asked = _decode(claim.payload)
        return await self._desk.attempt(claim, context, asked.callback_url, lambda: self._send(claim, asked))

    async def poll(self, claim: Claim, context: Context) -> Ended:
        """Never asked: `submit` answers with the end."""
        return await self.submit(claim, context)

    async def cancel(self, claim: Claim, context: Context) -> None:
        """Never asked: cancelling `submit` breaks off the request."""

    async def _send(self, claim: Claim, asked: HttpFields) -> Completed:
        revealed = Revealed()
        request = await self._request(claim, asked, revealed)
        answer = without_secrets(await self._desk.ask(request), revealed)
        check(answer, *_expected(tuple(asked.expected_status)))
        meta = answer.meta()
        return Completed(_result(answer, meta), About(meta=meta))

    async def _request(self, claim: Claim, asked: HttpFields, revealed: Revealed) -> Request:
        body = _body(asked)
        given = await self._desk.headers(asked.headers, revealed)
        headers = _defaults(claim, asked, body, given) | given
        if asked.sign is not None:
            keys = [await self._desk.reveal(ref, revealed) for ref in asked.signing()]
            headers |= sign(str(claim.id), self._desk.clock.now(), body or b"", keys)
        return Request(
            method=asked.http_method,
            url=_url(asked),
            headers=headers,
            body=body,
            max_redirects=asked.max_redirects,
            max_size=asked.max_size,
            cut=True,
            connect_timeout=asked.connect_timeout,
            read_timeout=asked.read_timeout,
        )


@lru_cache(maxsize=256)
def _expected(patterns: tuple[int | str, ...]) -> tuple[Callable[[int], bool], str]:
    """The rule, and its words. Most jobs have the same."""
    return expects(patterns), " or ".join(map(str, patterns))


def expects(patterns: Sequence[int | str]) -> Callable[[int], bool]:
    """Whether a status is among the expected ones: `204`, `"2xx"`, `"300-304"`."""
    spans = [_span(str(pattern)) for pattern in patterns]
    return lambda status: any(status in span for span in spans)


def _span(pattern: str) -> range:
    if pattern.endswith("xx"):
        first = int(pattern[0]) * 100
        return range(first, first + 100)
    first_text, _, last = pattern.partition("-")
    return range(int(first_text), int(last or first_text) + 1)


def _defaults(claim: Claim, asked: HttpFields, body: bytes | None, given: dict[str, str]) -> dict[str, str]:
    """Headers that nobody has to ask for. The key is the same with every attempt, so that the server can tell a
    repeat."""
    wanted = {"Idempotency-Key": str(claim.id)}
    if body is not None:
        wanted["Content-Type"] = _TYPES[asked.payload_format]
    said = {name.lower() for name in given}
    return {name: value for name, value in wanted.items() if name.lower() not in said}


def _body(asked: HttpFields) -> bytes | None:
    if asked.payload is UNSET or asked.payload is None:
        return None
    match asked.payload_format:
        case "json":
            return msgspec.json.encode(asked.payload)
        case "form":
            return urlencode(_texts(asked.payload), doseq=True).encode()
        case "raw":
            return str(asked.payload).encode()
        case "base64":
            return base64.b64decode(asked.payload)


def _url(asked: HttpFields) -> str:
    if not asked.query:
        return asked.callback_url
    parts = urlsplit(asked.callback_url)
    added = urlencode(_texts(asked.query), doseq=True)
    return urlunsplit(parts._replace(query=f"{parts.query}&{added}" if parts.query else added))


def _texts(pairs: dict[str, Any]) -> dict[str, Any]:
    """As JSON writes them: `true`, not `True`."""
    return {
        name: [_text(each) for each in value] if isinstance(value, list) else _text(value)
        for name, value in pairs.items()
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _result(answer: Answer, meta: dict[str, Any]) -> bytes:
    """The answer as a document; content that is no text is written in base64."""
    told = meta | {"content_type": answer.content_type, "truncated": answer.cut}
    try:
        told["body"] = _decoded(answer.content, meta.get("charset") or "utf-8")
    except (UnicodeError, LookupError):
        told["body_base64"] = base64.b64encode(answer.content).decode()
    return msgspec.json.encode(told)


def _decoded(content: bytes, charset: str) -> str:
    """Raises UnicodeError, LookupError."""
    # Python knows more encodings than servers speak: some take the square of the time, some raise what they like.
    if not _CHARSET.fullmatch(charset):
        raise LookupError(charset)
    return content.decode(charset)
