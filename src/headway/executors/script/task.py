"""What an attempt at a script goes by: the job as it is carried out, what came before, and who helps with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from headway.clock import Clock
from headway.executors.script.hosts import Access, Hosts, Station
from headway.executors.script.orders import Work
from headway.executors.script.run import Run
from headway.model.job import Claim

PATIENCE = 300.0
"""Seconds for which a host that can't be reached any more is tried again before the script's fate counts as unknown."""
KILL_AFTER = 5.0
"""Seconds that a script is given to end by itself after it was asked to."""
KEEP_PATIENCE = 60.0
"""Seconds for which files that can't be stored are tried again before they are given up."""


class Redactor(Protocol):
    """Takes secrets out of a stream, also where they lie across two pieces."""

    def feed(self, piece: bytes) -> bytes: ...
    def close(self) -> bytes: ...


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is carried out."""

    access: Access
    work: Work
    redactor: Callable[[], Redactor]
    """Makes one for each stream."""
    replaced: Sequence[str] = ()
    """Secrets that have another value than the script was given, so that nobody can take that out any more."""

    def __repr__(self) -> str:
        return f"Task({self.access.target.name})"


class Load(Protocol):
    """Where a claim's task comes from: its payload, the vault, the targets."""

    async def __call__(self, claim: Claim, begun_at: datetime | None) -> Task:
        """`begun_at`: it may have begun then, with what there was. Raises HeadwayError."""


class Before(msgspec.Struct, frozen=True):
    """What came before this attempt."""

    open: tuple[int, ...] = ()
    """Earlier attempts of which nobody has seen the end, so that their runs may still be there."""
    again: bool = False
    """Another worker has held this very attempt, and may have begun the script."""
    cancelling: bool = False
    """The job is to be cancelled, and nobody has seen it stopped."""
    places: tuple[str, ...] = ()
    """Where those may have begun it."""
    since: datetime | None = None
    """And when, at the earliest."""

    @property
    def begun(self) -> bool:
        """The script may run already."""
        return self.again or bool(self.open)


class Past(Protocol):
    """Where that is known."""

    async def __call__(self, claim: Claim) -> Before: ...
    async def note(self, claim: Claim, place: str) -> bool:
        """Keep in mind where the script is about to be begun; False when the job is no longer held."""

    async def served(self, machine: str, queue: str) -> bool:
        """Whether a worker on this machine takes jobs of this queue."""


Keep = Callable[[Claim, Run, Station, Task], Awaitable[int]]
"""Collects files of a run that has ended; how many."""


Alarm = Callable[[Claim, str, str, str], Awaitable[None]]
"""Writes down what may be an attack: what happened, to what, and the words that the job's error has."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What the executor is made of."""

    clock: Clock
    load: Load
    past: Past
    hosts: Hosts
    keep: Keep
    alarm: Alarm
    patience: float = PATIENCE
    kill_after: float = KILL_AFTER
    keep_patience: float = KEEP_PATIENCE
