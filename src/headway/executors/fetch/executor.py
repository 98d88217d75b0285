"""Runs jobs of kind `fetch`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from headway.executors.asking import Desk, Revealed, check, without_secrets
from headway.executors.contract import Answer as Ended
from headway.executors.contract import Completed, Context, Defaults, Setup
from headway.executors.fetch.fields import FetchPayload
from headway.model.job import Claim
from headway.model.result import About, ResultMeta
from headway.model.retry import Retry
from headway.outgoing.messages import Answer, Request
from headway.outgoing.room import Share
from headway.store.contents import read_content
from headway.store.contract import Store

NOT_MODIFIED = 304
_CONDITIONS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}

_decode = msgspec.json.Decoder(FetchPayload).decode


class FetchExecutor:
    """Fetches a URL, and keeps its content as the job's result."""

    kind = "fetch"
    defaults = Defaults(timeout=60.0, retry=Retry(max_attempts=3), light=True)

    def __init__(self, setup: Setup) -> None:
        self._desk = Desk(setup, self.kind)
        self._store: Store | None = setup.store

    async def start(self) -> None:
        """Connections are made when they are needed."""

    async def close(self) -> None:
        await self._desk.close()

    async def submit(self, claim: Claim, context: Context) -> Ended:
        asked = _decode(claim.payload)
        share = self._desk.share(context)
        return await self._desk.attempt(claim, context, asked.url, lambda: self._fetch(asked, share))

    async def poll(self, claim: Claim, context: Context) -> Ended:
        """Never asked: `submit` answers with the end."""
        return await self.submit(claim, context)

    async def cancel(self, claim: Claim, context: Context) -> None:
        """Never asked: cancelling `submit` breaks off the request."""

    async def _fetch(self, asked: FetchPayload, share: Share) -> Completed:
        revealed = Revealed()
        headers = await self._desk.headers(asked.headers, revealed)
        earlier = await self._earlier(asked, headers)
        answer = await self._desk.ask(_request(asked, headers | (_conditions(earlier[1]) if earlier else {})), share)
        if earlier is not None and answer.status == NOT_MODIFIED:
            job_id, known = earlier
            await share.hold(known.size)
            if (content := await self._content(job_id)) is not None:
                return _unchanged(asked, without_secrets(answer, revealed), known, content)
            # It would still be good, but has been deleted since we asked.
            answer = await self._desk.ask(_request(asked, headers), share)
        answer = without_secrets(answer, revealed)
        check(answer, lambda status: 200 <= status < 300, "2xx")
        return _completed(asked, answer)

    async def _earlier(self, asked: FetchPayload, headers: dict[str, str]) -> tuple[UUID, ResultMeta] | None:
        """The last content of this source, if its server said how to ask whether it is still good."""
        said = {name.lower() for name in headers}
        if self._store is None or said.intersection(name.lower() for name in _CONDITIONS.values()):
            return None
        found = await self._store.latest_result_of(asked.source)
        # What is too large now was kept under another limit.
        return found if found and _conditions(found[1]) and found[1].size <= _limit(asked) else None

    async def _content(self, job_id: UUID) -> bytes | None:
        assert self._store is not None
        return await read_content(self._store, job_id)


def _limit(asked: FetchPayload) -> int:
    assert asked.max_size is not None, "completed when it was submitted"
    return asked.max_size


def _request(asked: FetchPayload, headers: dict[str, str]) -> Request:
    return Request(
        url=asked.url.partition("#")[0],
        headers={"Accept": "*/*"} | headers,
        max_redirects=asked.max_redirects,
        max_size=_limit(asked),
        connect_timeout=asked.connect_timeout,
        read_timeout=asked.read_timeout,
    )


def _conditions(known: ResultMeta) -> dict[str, str]:
    """The headers that ask for news only."""
    told: dict[str, Any] = known.meta.get("headers", {})
    return {header: told[name] for name, header in _CONDITIONS.items() if told.get(name)}


def _completed(asked: FetchPayload, answer: Answer) -> Completed:
    about = About(content_type=answer.content_type, meta=answer.meta(), source=asked.source)
    return Completed(answer.content, about)


def _unchanged(asked: FetchPayload, answer: Answer, known: ResultMeta, content: bytes) -> Completed:
    """The earlier content is the result; what the server said anew counts."""
    headers = {**known.meta.get("headers", {}), **answer.headers}
    meta = {**known.meta, **answer.meta(), "headers": headers, "not_modified": True}
    if "charset" in known.meta:
        meta["charset"] = known.meta["charset"]
    return Completed(content, About(content_type=known.content_type, meta=meta, source=asked.source))
