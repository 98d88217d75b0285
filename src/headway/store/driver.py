"""What a dialect brings to a store over SQL: connections, transactions, wake-ups."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol, TypeVar

from headway.model.findings import Finding
from headway.store.statements import Script

T = TypeVar("T")


class Lane(Enum):
    """What a script must not be held up by: each lane has a connection of its own where the engine profits."""

    CLAIM = "claim"
    WRITE = "write"
    KEYED = "keyed"
    READ = "read"


class Driver(Protocol):
    """Runs scripts, and knows its engine."""

    def __init__(self) -> None: ...

    async def open(self, patience: float | None = None) -> None: ...
    async def migrate(self) -> list[str]: ...
    async def close(self) -> None: ...

    async def run(
        self,
        script: Callable[[], Script[T]],
        lane: Lane,
        *,
        again: Callable[[], Script[T]] | None = None,
        single: bool = False,
    ) -> T:
        """Run a script as one transaction (`single`: it is one statement and needs none around it). When the outcome
        of a commit is unknown, `again` (or the script itself) finds out and makes good."""

    async def listen(self, on_wake: Callable[[str], None]) -> Callable[[], None]: ...
    async def vacuum(self) -> None: ...
    async def examine(self) -> list[Finding]: ...
