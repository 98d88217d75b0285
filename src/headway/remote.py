"""A client of a Headway server over HTTP, for programs that don't hold its store.

    with RemoteClient("https://jobs.example.com", token) as jobs:
        job = jobs.submit({"kind": "fetch", "url": "https://example.com/"})
        print(jobs.wait(job.id, timeout=60).state, jobs.result(job.id).content)

Every call has an async form with the prefix `a`. Whatever may be sent twice is sent again when the connection breaks:
jobs get their ids here, so a repeated submit is the same job. It needs nothing but the standard library.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from headway.clock import SystemClock
from headway.components.shapes import API, JobShape
from headway.model.errors import ConfigurationError, HeadwayError, WaitTimeout
from headway.model.states import State

URL = "HEADWAY_URL"
TOKEN = "HEADWAY_TOKEN"  # noqa: S105 - the name of a variable
BATCH = 1000
"""Jobs that a server takes at once."""
LONG_POLL = 30.0
TRIES = 3
ENDED = {State.COMPLETED, State.FAILED, State.CANCELLED}

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
JobId = UUID | str


class RemoteError(HeadwayError):
    """The server refused, or could not be reached. `status` is that of HTTP, None when there was no answer."""

    code = "remote"

    def __init__(self, message: str, *, status: int | None = None, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem = problem or {}
        self.field: str | None = self.problem.get("field")


class Content(msgspec.Struct, frozen=True):
    """A result as it was kept."""

    content: bytes
    content_type: str


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one job of a batch: the job, or the error."""

    status: int
    job: JobShape | None = None
    error: dict[str, Any] | None = None
    deduplicated: bool = False


class _Batch(msgspec.Struct):
    items: list[Item]


class _Page(msgspec.Struct):
    items: list[JobShape]
    cursor: str | None = None


def _async(call: Callable[Concatenate[RemoteClient, P], R]) -> Callable[Concatenate[RemoteClient, P], Awaitable[R]]:
    """The same call from a coroutine: it waits in a thread."""

    async def in_thread(self: RemoteClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(call, self, *args, **kwargs)

    return in_thread


class RemoteClient:
    """Submits jobs to a server and looks after them. May be used from several threads at once."""

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout: float = 60.0) -> None:
        self._wire = _Wire(url or os.environ.get(URL) or "", token or os.environ.get(TOKEN), timeout)

    def submit(self, body: Mapping[str, Any]) -> JobShape:
        """Submit a job body; the job, or the earlier one that stands for it (`deduplicated`)."""
        return self._job("POST", "/jobs", _with_id(body))

    def submit_many(
        self,
        bodies: Sequence[Mapping[str, Any]],
        *,
        partial: bool = False,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> list[Item]:
        """Submit many, a thousand at a time; one answer each, in order. Unless `partial`, one that is refused refuses
        its whole thousand. `on_progress` is told how many are done."""
        items: list[Item] = []
        for start in range(0, len(bodies), BATCH):
            jobs = [_with_id(body) for body in bodies[start : start + BATCH]]
            answer = self._wire.ask("POST", "/jobs/batch", {"jobs": jobs, "partial": partial})
            items += self._wire.read(answer, _Batch).items
            on_progress(len(items))
        return items

    def get(self, job_id: JobId, *, wait: float | None = None) -> JobShape:
        """The job as it is now; with `wait`, as soon as it has ended or so many seconds have passed."""
        return self._job("GET", f"/jobs/{_part(job_id)}", query={"wait": wait})

    def wait(self, job_id: JobId, timeout: float | None = None) -> JobShape:
        """The job once it has ended. Raises WaitTimeout."""
        clock = SystemClock()
        deadline = None if timeout is None else clock.monotonic() + timeout
        job = self.get(job_id)
        while job.state not in ENDED:
            left = LONG_POLL if deadline is None else min(LONG_POLL, deadline - clock.monotonic())
            if left <= 0:
                raise WaitTimeout(f"job {job.id} has not ended after {timeout:g} s: it is {job.state}")
            job = self.get(job_id, wait=left)
        return job

    def jobs(self, **filters: Any) -> Iterator[JobShape]:
        """All jobs that match, newest first, page after page: `jobs(state="failed", queue="mail")`."""
        for page in self._pages(filters):
            yield from page

    async def ajobs(self, **filters: Any) -> AsyncIterator[JobShape]:
        """The same from a coroutine."""
        pages = self._pages(filters)
        while page := await asyncio.to_thread(next, pages, None):
            for job in page:
                yield job

    def _pages(self, filters: Mapping[str, Any]) -> Iterator[list[JobShape]]:
        """None of them is empty."""
        cursor: str | None = None
        while True:
            answer = self._wire.ask("GET", "/jobs", query={**filters, "cursor": cursor})
            page = self._wire.read(answer, _Page)
            if page.items:
                yield page.items
            cursor = page.cursor
            if cursor is None:
                return

    def cancel(self, job_id: JobId) -> JobShape:
        """A waiting job ends at once, a running one is told to."""
        return self._job("POST", f"/jobs/{_part(job_id)}/cancel", {})

    def retry(self, job_id: JobId) -> JobShape:
        """Run an ended job again, under the same id."""
        return self._job("POST", f"/jobs/{_part(job_id)}/retry", {})

    def release(self, job_id: JobId, run_at: datetime | None = None) -> JobShape:
        """Let a job on hold go on."""
        return self._job("POST", f"/jobs/{_part(job_id)}/schedule", {"run_at": run_at} if run_at else {})

    def delete(self, job_id: JobId) -> None:
        """The job is gone, with its result and output; a running one once it is seen stopped."""
        self._wire.ask("DELETE", f"/jobs/{_part(job_id)}")

    def result(self, job_id: JobId) -> Content:
        """What a completed job has left."""
        return self._wire.ask("GET", f"/jobs/{_part(job_id)}/result")

    def output(self, job_id: JobId) -> bytes:
        """What a job wrote and logged so far."""
        return self._wire.ask("GET", f"/jobs/{_part(job_id)}/output").content

    def close(self) -> None:
        """Let go of the connections."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    asubmit = _async(submit)
    asubmit_many = _async(submit_many)
    aget = _async(get)
    await_ended = _async(wait)
    acancel = _async(cancel)
    aretry = _async(retry)
    arelease = _async(release)
    adelete = _async(delete)
    aresult = _async(result)
    aoutput = _async(output)

    def _job(self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None) -> JobShape:
        return self._wire.read(self._wire.ask(method, path, body, query=query), JobShape)


class _Wire:
    """Connections, kept open between requests; each serves one request at a time."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigurationError(
                f"{url!r} is no server: give RemoteClient the URL of one, or set {URL}, e.g. https://jobs.example.com"
            )
        self._https, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._base = parts.path.rstrip("/") + API
        self._url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._headers = {"Accept": "*/*", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []

    def ask(self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None) -> Content:
        """The answer to a request. Raises RemoteError."""
        target = self._base + path + _query(query or {})
        data = None if body is None else msgspec.json.encode(body)
        headers = self._headers | ({"Content-Type": "application/json"} if data is not None else {})
        for left in reversed(range(TRIES)):
            connection = self._take()
            try:
                answer = self._once(connection, method, target, data, headers)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if not left or isinstance(error, ssl.SSLCertVerificationError):
                    raise RemoteError(f"{self._url} does not answer: {str(error) or type(error).__name__}") from error
            else:
                return answer
        raise AssertionError("unreachable")

    def read(self, answer: Content, form: type[T]) -> T:
        """What an answer says. Raises RemoteError where something else than Headway has answered."""
        try:
            return msgspec.json.decode(answer.content, type=form)
        except msgspec.MsgspecError as error:
            raise RemoteError(f"{self._url} answers, but not as Headway does ({error}): is the URL right?") from error

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _once(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        data: bytes | None,
        headers: Mapping[str, str],
    ) -> Content:
        connection.request(method, target, data, dict(headers))
        response = connection.getresponse()
        content = response.read()
        with self._lock:
            self._idle.append(connection)
        if 300 <= response.status < 400:
            where = response.headers.get("location", "elsewhere")
            raise RemoteError(f"{self._url} sends us on to {where}: set {URL} to where the server is")
        if response.status >= 400:
            raise _refused(self._url, response.status, response.reason, content)
        return Content(content, response.headers.get_content_type())

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        kind = http.client.HTTPSConnection if self._https else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout)


def _refused(url: str, status: int, reason: str, content: bytes) -> RemoteError:
    """The server's own words, if it has any."""
    try:
        problem = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.MsgspecError:
        problem = {}
    if status == 401:
        return RemoteError(f"{url} does not know this token: set {TOKEN}", status=status, problem=problem)
    return RemoteError(problem.get("detail") or f"{url} answered {status} {reason}", status=status, problem=problem)


def _with_id(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": str(uuid7()), **body}


def _part(job_id: JobId) -> str:
    return quote(str(job_id), safe="")


def _query(given: Mapping[str, Any]) -> str:
    said = {name: value for name, value in given.items() if value is not None}
    return f"?{urlencode(said, doseq=True)}" if said else ""
