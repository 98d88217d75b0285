"""What a worker is made of, and how it is to work."""

from __future__ import annotations

import random as chance
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from headway.bus.contract import Bus
from headway.clock import Clock, SystemClock
from headway.executors.contract import Executor
from headway.model.errors import ConfigurationError
from headway.model.job import Ended
from headway.model.limits import Retention
from headway.model.retry import Random
from headway.output.contract import Outputs
from headway.store.contract import Store
from headway.store.lending import Stores
from headway.store.scripts.tend import Rescued
from headway.worker.attempt import Attempt
from headway.worker.judge import Move

POLL = 1.0
"""Seconds between looks at the store when no wake-up comes."""


Accepted = tuple[Attempt, Move, Ended]
"""A move that the store has recorded, and what it made of it."""


class Hooks:
    """Called after the store has recorded a change, in the process that recorded it, at most once. Subclass to use."""

    def ended(self, ends: Sequence[Accepted]) -> None:
        """Jobs of this worker moved on; the state of an end is where its job is now."""

    def rescued(self, jobs: list[Rescued]) -> None:
        """Jobs of another worker were taken back."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker works."""

    queues: Mapping[str, int | None] = msgspec.field(default_factory=lambda: {"default": None})
    """With their slots: a number is how many jobs of any kind run at once; None leaves it to the worker."""
    lease: float = 30.0
    grace: float = 30.0
    poll: float = POLL
    name: str | None = None
    code_version: str | None = None
    retention: Retention = Retention()
    fires: bool = False
    """Whether schedules are fired beside it."""

    def __post_init__(self) -> None:
        if not self.queues:
            raise ConfigurationError("a worker needs at least one queue, e.g. queues={'default': 100}")
        for queue, slots in self.queues.items():
            if slots is not None and slots < 1:
                raise ConfigurationError(f"queue {queue!r} needs at least one slot, not {slots}")
        if self.lease <= 0:
            raise ConfigurationError(f"the lease must be a positive number of seconds, not {self.lease}")


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is made of. `stores` lends the keeper a store for its thread; without, it stays on this loop."""

    store: Store
    executors: Mapping[str, Executor]
    stores: Stores | None
    clock: Clock = SystemClock()
    random: Random = chance.random
    new_id: Callable[[], UUID] = uuid7
    hooks: Hooks = Hooks()
    bus: Bus | None = None
    """What rings for due jobs and hears of them; without one the store does."""
    outputs: Outputs | None = None
    """Where output is kept; without one the store does."""
