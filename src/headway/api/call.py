"""What a handler gets, and the service behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headway.access.allowance import Allowance
from headway.access.doorkeeper import Doorkeeper
from headway.access.origin import Proxies
from headway.access.trail import Trail
from headway.api.tags import etag_of, names_tag
from headway.app import Headway
from headway.clock import Clock
from headway.components.announced import Announced
from headway.components.targets import Asking, Probes
from headway.duties.census import Census
from headway.kinds.bodies import Bodies
from headway.kinds.bodies import Origin as BodyOrigin
from headway.kinds.contract import Kind
from headway.model.access import Caller, Principal
from headway.model.errors import Forbidden, JobNotFound, NotFound
from headway.model.job import JobRecord
from headway.model.submission import Submission
from headway.observe import traces
from headway.output import open_outputs
from headway.output.contract import Outputs
from headway.store.contract import Store

if TYPE_CHECKING:
    from headway.api.gate import Gatekeeper
    from headway.api.news import News
    from headway.api.readiness import Readiness
    from headway.api.table import Route

T = TypeVar("T")

NO_CACHE = "private, no-cache"
JSON = "application/json"


class Service(msgspec.Struct, kw_only=True):
    """What all routes share in one process."""

    app: Headway
    gate: Gatekeeper
    clock: Clock
    kinds: dict[str, Kind]
    functions: Announced
    bodies: Bodies
    news: News
    readiness: Readiness
    census: Census
    doorkeeper: Doorkeeper
    proxies: Proxies
    trail: Trail
    allowance: Allowance
    output: str | None = None
    """Where output is kept, if not in the store."""
    routes: tuple[Route, ...] = ()
    seed: Callable[[], Awaitable[None]] | None = None
    """Fills the store with a demo, where this process can run it."""
    waiting: int = 0
    """Streams and long polls that are open."""
    closing: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Set when the process is to end: whoever waits or streams ends at once."""


class Call:
    """One request, identified and read."""

    __slots__ = ("body", "done", "headers", "origin", "principal", "query", "request", "service")

    def __init__(self, request: Request, service: Service, principal: Principal | None) -> None:
        self.request = request
        self.service = service
        self.principal = principal
        """None on public routes only."""
        self.headers = first_of_each(request.scope["headers"])
        """By their names in lower case."""
        peer = request.scope.get("client")
        self.origin = service.proxies.origin(peer[0] if peer else "", request.scope["scheme"], self.headers)
        """Where the request comes from, as far as it can be believed."""
        self.query: Any = None
        """The struct that the route names."""
        self.done: dict[str, Any] = {}
        """What came of it, where a line of the audit log is to tell more than that it was asked."""
        self.body: Any = None
        """The struct that the route names; without one, plain data."""

    @property
    def by(self) -> str | None:
        """In whose name it is done."""
        return self.principal.name if self.principal else None

    @property
    def caller(self) -> Caller:
        """Who it is and from where, for the audit log."""
        return Caller(self.by or "anybody", self.origin.address)

    def body_origin(self, job_id: UUID | None = None) -> BodyOrigin:
        """Where the job bodies in this request come from: what may be in them hangs on it."""
        return BodyOrigin(
            by=self.by,
            id=job_id,
            correlation_id=self.correlation_id,
            traceparent=traces.readable(self.headers.get(traces.TRACEPARENT)),
            exposed=not self.origin.secure,
        )

    @property
    def correlation_id(self) -> str | None:
        return self.headers.get("x-correlation-id")

    def header(self, name: str) -> str | None:
        return self.headers.get(name.lower())

    def path(self, name: str) -> str:
        """A part of the path. Raises NotFound: nothing has a name that not every store takes."""
        given = str(self.request.path_params[name])
        if "\0" in given:
            raise NotFound(f"there is no {name} with the character U+0000 in its name")
        return given

    @property
    def job_id(self) -> UUID:
        """The `{job_id}` of the path. Raises JobNotFound: what is no id is no job's."""
        text = self.path("job_id")
        try:
            return UUID(text)
        except ValueError:
            raise JobNotFound(text) from None

    async def store(self, act: Callable[[Store], Awaitable[T]]) -> T:
        """`act` on the store; what is in other hands is waited for, for a while."""
        return await self.service.app.client.call_patiently(act)

    @property
    def limited(self) -> bool:
        """Whether the caller may submit some jobs only."""
        return self.principal is not None and (self.principal.kinds is not None or self.principal.queues is not None)

    def permit(self, job: Submission | JobRecord) -> None:
        """Raise Forbidden if the caller may submit, but not such a job."""
        if (refusal := self.forbids(job)) is not None:
            raise refusal

    def forbids(self, job: Submission | JobRecord) -> Forbidden | None:
        """Why the caller may not submit such a job; None: there is no reason."""
        if (refusal := self._forbids_queue(job.queue)) is not None:
            return refusal
        kinds = self.principal.kinds if self.principal else None
        if kinds is None or job.kind in kinds:
            return None
        return Forbidden(f"{self.by} may submit jobs of kind {', '.join(sorted(kinds))} only, not {job.kind}")

    def permit_queue(self, queue: str) -> None:
        """Raise Forbidden if the caller may not submit to this queue."""
        if (refusal := self._forbids_queue(queue)) is not None:
            raise refusal

    def _forbids_queue(self, queue: str) -> Forbidden | None:
        queues = self.principal.queues if self.principal else None
        if queues is None or queue in queues:
            return None
        return Forbidden(f"{self.by} may submit to {', '.join(sorted(queues))} only, not to the queue {queue!r}")

    def asking(self) -> Asking:
        """What it takes to have a worker look at a target."""
        return Asking(reach=self.service.app.client, bodies=self.service.bodies, clock=self.service.clock)

    def probes(self) -> Probes:
        """For the bodies of this request."""
        return Probes(self.asking(), by=self.by)

    async def outputs(self, act: Callable[[Outputs], Awaitable[T]]) -> T:
        """`act` on the place where output is kept."""

        async def opened(store: Store) -> T:
            async with open_outputs(self.service.output, store) as outputs:
                return await act(outputs)

        return await self.store(opened)


def first_of_each(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers as text, looked at a dozen times for each request. Of one that is there twice the first counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}


class Json(Response):
    """JSON, encoded already. What is known of its headers is not looked for, as Starlette would."""

    media_type = JSON

    def __init__(self, body: bytes, status: int, headers: Mapping[str, str]) -> None:
        self.body = body
        self.status_code = status
        self.background = None
        self.raw_headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        self.raw_headers += ((b"content-length", b"%d" % len(body)), (b"content-type", b"application/json"))


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Data, as JSON."""
    return Json(msgspec.json.encode(value), status, {"Cache-Control": NO_CACHE, **(headers or {})})


def tagged(call: Call, value: Any, tag: str | None = None) -> Response:
    """Data with a strong ETag; 304 if that is what the caller has."""
    content = msgspec.json.encode(value)
    tag = tag or etag_of(content)
    headers = {"Cache-Control": NO_CACHE, "ETag": tag}
    if names_tag(call.header("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=JSON)


def nothing(status: int = 204) -> Response:
    return Response(status_code=status)
