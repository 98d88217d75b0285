"""Kind `fetch`: the content of a URL. One that was submitted within the last hour is not fetched again."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from headway.executors.fetch.fields import FetchFields, FetchPayload
from headway.kinds.contract import Functions, Prepared
from headway.kinds.urls import normalised
from headway.model.retry import Retry
from headway.outgoing.fields import called, check_headers, check_url, secrets_of
from headway.settings import Settings, load

TIMEOUT = 60.0
ATTEMPTS = 3


class FetchKind:
    """Fetching of URLs."""

    name = "fetch"
    fields: type[msgspec.Struct] | None = FetchFields
    private: frozenset[str] = frozenset()

    def __init__(self, held: Settings | None = None) -> None:
        self._held = held

    async def prepare(self, fields: FetchFields, functions: Functions) -> Prepared:
        check_url(fields.url, "url")
        check_headers(fields.headers)
        held = self._settings()
        source = source_of(fields)
        asked: dict[str, Any] = msgspec.structs.asdict(fields)
        asked["max_size"] = fields.max_size or held.fetch_max_size
        return Prepared(
            payload=msgspec.json.encode(FetchPayload(**asked, source=source)).decode(),
            name=called(fields.url),
            fields={"timeout": TIMEOUT, "retry": Retry(max_attempts=ATTEMPTS)},
            dedupe=held.fetch_window or None,
            dedupe_key=source,
            secrets=secrets_of(fields.headers),
        )

    def _settings(self) -> Settings:
        """Read once: files and variables don't change under a process."""
        if self._held is None:
            self._held = load()
        return self._held


def source_of(fields: FetchFields) -> str:
    """The same for bodies that fetch the same: normalised URL, and headers in any order and case."""
    headers = sorted((name.lower(), value) for name, value in fields.headers.items())
    told = msgspec.json.encode([normalised(fields.url), [[name, value] for name, value in headers]])
    return f"fetch:{hashlib.blake2b(told, digest_size=16).hexdigest()}"
