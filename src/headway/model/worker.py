"""Workers and functions as other processes see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One worker process; its id is new with each start."""

    id: UUID
    name: str
    host: str
    pid: int
    queues: tuple[str, ...]
    slots: int
    fires: bool = False
    """Whether it fires schedules; a process that does nothing else serves no queues."""
    code_version: str | None = None
    started_at: datetime | None = None
    seen_at: datetime | None = None


class FunctionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A function that some worker has announced."""

    name: str
    queue: str
    defaults: dict[str, Any]
    """The options given to `@app.job`, as far as they differ from the defaults."""
    parameters: dict[str, Any]
    """JSON Schema of the arguments."""
    code_version: str | None = None
    announced_at: datetime | None = None
