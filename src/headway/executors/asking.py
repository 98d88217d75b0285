"""What the kinds that send requests have in common: secrets in headers, the time limit, and what a failure means."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from headway.executors.contract import Completed, Context, Ending, Failed, Setup, Snoozed, TimedOut
from headway.executors.limit import Limit
from headway.model.errors import ConfigurationError, HeadwayError, SecretNotFound
from headway.model.job import Claim, ErrorInfo, error_info, failure_of
from headway.model.retry import Failure, Retry
from headway.observe import series, traces
from headway.outgoing.errors import RequestFailed, UnexpectedStatus
from headway.outgoing.fields import SecretRef
from headway.outgoing.guard import Allowed, Guard
from headway.outgoing.hosts import Crowded, Turnstile, parse_limits
from headway.outgoing.messages import Answer, Request
from headway.outgoing.room import Room, Share
from headway.settings import load
from headway.vault.redaction import Redactor

if TYPE_CHECKING:
    from headway.outgoing.client import Outgoing

SHOWN = 4096
"""Bytes of a response that are kept with a failure."""
LONGEST = 24 * 3600.0
"""Seconds that a request gets where nobody says."""
TOO_MANY_REQUESTS = 429
SERVER_ERRORS = 500

_decode_retry = msgspec.json.Decoder(Retry).decode


class Refused(UnexpectedStatus):
    """An answer that does not count as success."""

    def __init__(self, answer: Answer, wanted: str) -> None:
        where = f" to {answer.headers['location']}" if "location" in answer.headers else ""
        super().__init__(
            f"{answer.url} answered {answer.status} {answer.reason}{where}, not {wanted}".rstrip(), answer.status
        )
        self.answer = answer


class Desk:
    """Sends the requests of one executor."""

    def __init__(self, setup: Setup, kind: str) -> None:
        self._kind = kind
        self.clock = setup.clock
        self._secrets = setup.secrets
        held = load()
        self._guard = Guard(Allowed.parse(held.allow_private), setup.own, setup.near)
        # A host and the memory don't care of which kind a job is: one of each per worker.
        self._turnstile: Turnstile = setup.shared.setdefault(
            "turnstile", Turnstile(setup.clock, parse_limits(held.host_limits))
        )
        self._room: Room = setup.shared.setdefault("room", Room(held.fetch_memory, setup.clock))

    @cached_property
    def _outgoing(self) -> Outgoing:
        from headway.outgoing.client import Outgoing

        return Outgoing(self.clock, self._guard)

    async def close(self) -> None:
        if "_outgoing" in vars(self):
            await self._outgoing.close()

    def share(self, context: Context) -> Share:
        """Room for the content of a job, until its end is recorded: for that long it is in memory."""
        share = Share(self._room)
        context.keep(share.let_go)
        return share

    async def ask(self, request: Request, share: Share | None = None) -> Answer:
        """The answer, whatever its status. Raises RequestFailed, and Crowded where there is no room for it."""
        if not traces.loaded():
            return await self._counted(request, share)
        host = urlsplit(request.url).hostname or ""
        with traces.request(request.method, host) as carried:
            if carried:
                request = msgspec.structs.replace(request, headers={**carried, **request.headers})
            return await self._counted(request, share)

    async def _counted(self, request: Request, share: Share | None) -> Answer:
        status, began = "error", self.clock.monotonic()
        try:
            answer = await self._outgoing.ask(request, share)
            status = str(answer.status)
        finally:
            series.http_requests.add((self._kind, status))
            series.http_request.observe((self.clock.monotonic() - began,), (self._kind,))
        return answer

    async def headers(self, given: Mapping[str, str | SecretRef], revealed: Revealed) -> dict[str, str]:
        """With secrets in their places. Raises SecretNotFound."""
        return {
            name: value if isinstance(value, str) else value.prefix + (await self.reveal(value, revealed)).decode()
            for name, value in given.items()
        }

    async def reveal(self, named: SecretRef, revealed: Revealed) -> bytes:
        """A secret's value, noted among those that must not be kept with the answer. Raises SecretNotFound."""
        if self._secrets is None:
            raise ConfigurationError(f"this worker has no vault, so it can't use the secret {named.secret!r}")
        value = await self._secrets.reveal(named.secret)
        revealed.append(value)
        return value

    async def attempt(
        self, claim: Claim, context: Context, url: str, act: Callable[[], Awaitable[Completed]]
    ) -> Ending:
        """Do it when it is the host's turn, and within the job's time; what goes wrong is told as an ending."""
        try:
            if self._turnstile.open:
                return await self._in_time(claim, context, act)
            async with self._turnstile.turn(urlsplit(url).hostname or ""):
                return await self._in_time(claim, context, act)
        except Crowded as crowd:
            return Snoozed(crowd.delay)

    async def _in_time(self, claim: Claim, context: Context, act: Callable[[], Awaitable[Completed]]) -> Ending:
        allowed = LONGEST if context.timeout is None else context.timeout
        limit = Limit(self.clock, allowed)
        try:
            with limit:
                return await act()
        except asyncio.CancelledError:
            if not limit.expired:
                raise
            return TimedOut(ErrorInfo("TimeoutError", f"the request was not done within {allowed:g} s"))
        except RequestFailed as error:
            return self._failed(claim, error)
        except (SecretNotFound, ConfigurationError) as error:
            return Failed(error=error_info(error), failure=failure_of(error), permanent=True)

    def _failed(self, claim: Claim, error: RequestFailed) -> Failed:
        answer = error.answer if isinstance(error, Refused) else None
        failure = failure_of(error)
        return Failed(
            error=ErrorInfo(type(error).__name__, str(error), details=_details(answer) if answer else None),
            failure=failure,
            permanent=_permanent(error) and not _wanted_again(claim, failure),
            not_before=answer.retry_after(self.clock.now()) if answer else 0.0,
        )


Revealed = list[bytes]
"""Secrets that went into a request."""


def check(answer: Answer, expected: Callable[[int], bool], wanted: str) -> None:
    """Raises Refused."""
    if not expected(answer.status):
        raise Refused(answer, wanted)


def without_secrets(answer: Answer, revealed: Revealed) -> Answer:
    """A server may say again what it was told: that must not be kept."""
    if not revealed:
        return answer
    redactor = Redactor(revealed)

    def clean(text: str) -> str:
        return redactor.clean(text.encode()).decode(errors="replace")

    headers = {name: clean(value) for name, value in answer.headers.items()}
    content = redactor.clean(answer.content)
    return msgspec.structs.replace(answer, content=content, headers=headers, url=clean(answer.url))


def _details(answer: Answer) -> dict[str, object]:
    return {**answer.meta(), "body": answer.content[:SHOWN].decode(errors="replace")}


def _permanent(error: HeadwayError) -> bool:
    if isinstance(error, UnexpectedStatus):
        return error.status != TOO_MANY_REQUESTS and error.status < SERVER_ERRORS
    return isinstance(error, RequestFailed) and error.permanent


def _wanted_again(claim: Claim, failure: Failure) -> bool:
    """Somebody's own rule speaks of this failure: then it decides."""
    policy = _decode_retry(claim.retry) if claim.retry else Retry()
    return any(rule.matches(failure) for rule in policy.rules)
