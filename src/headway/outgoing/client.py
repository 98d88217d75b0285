"""Sends requests: hop by hop, over connections that the guard lets pass, and takes no more of an answer than wanted."""

from __future__ import annotations

import socket
from functools import lru_cache
from importlib.metadata import version

import aiohttp
import msgspec
import yarl

from headway.clock import Clock
from headway.outgoing.connector import Errand, GuardedConnector, errand
from headway.outgoing.decoding import ACCEPTED, Chain
from headway.outgoing.errors import (
    BrokenResponse,
    ConnectionFailed,
    InvalidTarget,
    RequestTimedOut,
    ResponseTooLarge,
    TooManyRedirects,
)
from headway.outgoing.guard import Guard
from headway.outgoing.messages import Answer, Request
from headway.outgoing.redirects import follow, followed
from headway.outgoing.resolver import GuardedResolver, LookUp
from headway.outgoing.room import SMALL, Share
from headway.outgoing.timings import Timings

USER_AGENT = f"Headway/{version('headway')}"
NAMES_KEPT = 10
"""Seconds for which the addresses of a host are remembered. They are checked with every connection all the same."""
HEADER_LIMIT = 32 * 1024


class Outgoing:
    """One session for all requests of an executor: connections are kept and used again."""

    def __init__(
        self, clock: Clock, guard: Guard, *, look_up: LookUp = socket.getaddrinfo, names_kept: int = NAMES_KEPT
    ) -> None:
        self._clock = clock
        self._names_kept = names_kept
        self._guard = guard
        self._resolver = GuardedResolver(guard, look_up)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        await self._resolver.close()
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def ask(self, request: Request, share: Share | None = None) -> Answer:
        """The answer, whatever its status; a large one takes its `share` of the room there is. Raises RequestFailed."""
        timings, hops = Timings(self._clock), 0
        while True:
            answer = await self._hop(request, timings, hops, share)
            if not followed(request, answer):
                return answer
            if hops == request.max_redirects:
                raise TooManyRedirects(f"{request.url} redirects again after {hops} redirects, which is the limit")
            request, hops = follow(request, answer), hops + 1

    async def _hop(self, request: Request, timings: Timings, hops: int, share: Share | None) -> Answer:
        url = _parsed(request.url)
        host = url.raw_host or ""
        errand.set(Errand(host, timings))
        try:
            return await self._exchange(request, url, timings, hops, share)
        except (aiohttp.InvalidURL, ValueError) as error:
            raise InvalidTarget(f"{request.url!r} can't be asked: {error}") from error
        except TimeoutError as error:
            raise RequestTimedOut(f"{host} took too long: {_words(error)}") from error
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
            raise ConnectionFailed(f"the connection to {host} failed: {_words(error)}") from error
        except aiohttp.ClientError as error:
            raise BrokenResponse(f"the response of {host} can't be read: {_words(error)}") from error
        finally:
            errand.set(None)

    async def _exchange(
        self, request: Request, url: yarl.URL, timings: Timings, hops: int, share: Share | None
    ) -> Answer:
        began = timings.begin()
        async with self._open().request(
            request.method,
            url,
            headers={"Accept-Encoding": ACCEPTED, **request.headers},
            data=request.body,
            allow_redirects=False,
            timeout=_limits(request.connect_timeout, request.read_timeout),
        ) as response:
            timings.end("wait", began)
            began = timings.begin()
            headers = _headers(response)
            answer = Answer(
                status=response.status,
                reason=response.reason or "",
                headers=headers,
                url=str(response.url),
                redirects=hops,
            )
            if followed(request, answer):
                return answer
            chain = Chain(headers.get("content-encoding", ""))
            content, cut = await _read(response, request, chain, share)
            timings.end("read", began)
            return msgspec.structs.replace(
                answer, content=content, cut=cut, packed=chain.unknown, timings=timings.shape()
            )

    def _open(self) -> aiohttp.ClientSession:
        """Made where it is used: a session belongs to its event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=GuardedConnector(self._guard, self._resolver, self._names_kept),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                headers={"User-Agent": USER_AGENT},
                max_field_size=HEADER_LIMIT,
                max_line_size=HEADER_LIMIT,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session


def _parsed(text: str) -> yarl.URL:
    """Raises InvalidTarget."""
    try:
        url = yarl.URL(text)
    except ValueError as error:
        raise InvalidTarget(f"{text!r} is no URL: {error}") from error
    if url.scheme not in {"http", "https"} or not url.raw_host:
        raise InvalidTarget(f"{text!r} is no URL of a web server: only http:// and https:// are asked")
    if url.raw_user is not None or url.raw_password is not None:
        raise InvalidTarget("a URL must not carry a user name or password: use a header with a secret")
    return url


@lru_cache(maxsize=64)
def _limits(connect: float | None, read: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=read)


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Names in lower case; values of repeated ones joined."""
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        known = name.lower()
        headers[known] = f"{headers[known]}, {value}" if known in headers else value
    return headers


async def _read(
    response: aiohttp.ClientResponse, request: Request, chain: Chain, share: Share | None
) -> tuple[bytes, bool]:
    """The content, and whether it was cut."""
    taken, size = [], 0
    async for data in response.content.iter_any():
        for piece in chain.feed(data):
            taken.append(piece)
            size += len(piece)
            if share is not None and size > SMALL:
                await share.hold(_most(response, request))
            if size > request.max_size:
                if not request.cut:
                    raise ResponseTooLarge(request.max_size)
                return b"".join(taken)[: request.max_size], True
    if request.method != "HEAD":
        chain.finish()
    return b"".join(taken), False


def _most(response: aiohttp.ClientResponse, request: Request) -> int:
    """How large the content can be."""
    told = None if "content-encoding" in response.headers else response.content_length
    return request.max_size if told is None else min(told, request.max_size)


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
