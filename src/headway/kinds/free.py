"""The kind of a plug-in that brings an executor only: whatever fields are given are its payload."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.kinds.contract import Functions, Prepared


class FreeKind:
    """Checks nothing: the executor does, when it runs the job."""

    fields: type[msgspec.Struct] | None = None
    private: frozenset[str] = frozenset()

    def __init__(self, name: str) -> None:
        self.name = name

    async def prepare(self, fields: Any, functions: Functions) -> Prepared:
        return Prepared(payload=msgspec.json.encode(fields).decode(), name=None)
