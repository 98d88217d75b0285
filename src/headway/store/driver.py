"""What a dialect brings to a store over SQL: connections, transactions, wake-ups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol, TypeVar

from headway.model.events import Transition
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

    async def watch(self, heard: Callable[[Sequence[Transition]], None]) -> Callable[[], None]:
        """Tell `heard`, on the loop that runs now, what scripts of all processes have changed, behind their commits.
        None at all: some may have been missed. Returns what ends it."""

    async def tell(self, changes: Sequence[Transition]) -> None:
        """Tell those who watch of changes that no script has told of."""

    @property
    def deaf(self) -> bool:
        """Whether nothing that others ring or tell comes through, because of what lies between."""

    async def vacuum(self) -> None: ...
    async def examine(self) -> list[Finding]: ...
