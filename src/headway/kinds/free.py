"""The kind of a plug-in that brings an executor only: whatever fields are given are its payload."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.kinds.contract import Functions, Prepared
from headway.model.errors import InvalidJob


class FreeKind:
    """Checks nothing: the executor does, when it runs the job."""

    fields: type[msgspec.Struct] | None = None
    private: frozenset[str] = frozenset()

    def __init__(self, name: str) -> None:
        self.name = name

    async def prepare(self, fields: Any, functions: Functions) -> Prepared:
        try:
            payload = msgspec.json.encode(fields).decode()
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidJob(f"the payload of a job of kind {self.name!r} must be plain data: {error}") from error
        return Prepared(payload=payload, name=None)
