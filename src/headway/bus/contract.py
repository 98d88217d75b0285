"""WAKE: what every bus promises. It carries wake-ups, and news for whoever wants them; never the truth.

Everything sent over a bus may be lost, repeated or late. Whoever listens looks into the store when woken and, as a
net, every now and then without: with a bus that drops everything only latency suffers.

What is heard is told on the loop on which the bus was opened. `ring`, `call` and `emit` may come from any thread, never
wait and never raise: what can't be sent is kept for a while, within bounds, then dropped and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, ClassVar, Protocol
from uuid import UUID

import msgspec

from headway.model.errors import ConfigurationError, HeadwayError
from headway.model.events import DELETED, Event
from headway.model.states import State
from headway.observe import series
from headway.observe.metrics import Counter

MOST_IDS = 500
"""Ids in one doorbell."""


class BusUnavailable(HeadwayError):
    """The bus can't be reached."""

    code = "unavailable"


class Doorbell(msgspec.Struct, frozen=True):
    """Jobs of this queue are due; the ids are a hint. Without ids: look at everything."""

    queue: str
    ids: Annotated[tuple[UUID, ...], msgspec.Meta(max_length=MOST_IDS)] = ()


class Tally(msgspec.Struct):
    """What was done over a connection since it was made; shown in a series under the names of the fields."""

    shown: ClassVar[Counter]
    reconnects: int = 0


class Counters(Tally):
    """What a bus has done."""

    shown = series.bus_messages
    rung: int = 0
    """Doorbells handed to the broker."""
    heard: int = 0
    """Doorbells that a listener here took."""
    refused: int = 0
    """Doorbells that a listener here could not act on."""
    emitted: int = 0
    """Events handed to the broker."""
    received: int = 0
    """Events told to subscribers here."""
    dropped_rings: int = 0
    """Doorbells and calls that were not sent."""
    dropped_events: int = 0
    malformed: int = 0
    """Messages that nobody could read."""
    failed: int = 0
    """Listeners that raised."""


OnDoorbell = Callable[[Doorbell], bool]
"""Whether this process can act on it."""
OnCall = Callable[[], object]
OnEvent = Callable[[Event], object]
Stop = Callable[[], None]


class Bus(Protocol):
    """Wake-ups for queues and for single processes, and events."""

    @property
    def counters(self) -> Counters: ...

    @property
    def connected(self) -> bool:
        """Whether the broker is there, as far as anybody knows."""

    async def open(self) -> None:
        """Connect. A bus that can't be reached now raises `BusUnavailable`; one lost later is reached for until it is
        there again."""

    async def join(self) -> None:
        """Connect without waiting for the broker: it may be away, for as long as it likes, and is reached for until it
        is there."""

    async def close(self) -> None:
        """Send what is still to be sent, if that takes no more than a moment, and end."""

    def ring(self, doorbells: Sequence[Doorbell]) -> None:
        """Wake whoever listens to these queues: all of them, or one, as the bus can."""

    async def listen(self, queue: str, heard: OnDoorbell) -> None:
        """Tell `heard` of the queue's doorbells. When it answers False, another process is told instead, where the bus
        can choose, and this one hears no more of the queue until it says `ready`. After each reconnect, or whenever
        rings may have been lost, it is told to look at everything."""

    async def unlisten(self, queue: str) -> None: ...

    def ready(self, queue: str) -> None:
        """Doorbells of this queue can be acted on again. Look once yourself: what was rung meanwhile is not repeated.
        Not from other threads."""

    def call(self, channel: str) -> None:
        """Wake whoever answers to this channel."""

    async def on_call(self, channel: str, heard: OnCall) -> Stop:
        """Tell `heard` of calls to this channel, and after each reconnect. Returns what ends it."""

    def emit(self, events: Sequence[Event]) -> None:
        """Tell subscribers, at most once."""

    async def subscribe(self, pattern: str, heard: OnEvent, missed: OnCall = lambda: None) -> Stop:
        """Tell `heard` of events: `job.completed` and the like, or `job.*`; and `missed` that some may have been lost,
        after each reconnect. Returns what ends it."""


def doorbells(queue: str, ids: Sequence[UUID], size: int = MOST_IDS) -> Iterator[Doorbell]:
    """The doorbells for these due jobs, no more than `size` ids in each."""
    for start in range(0, len(ids), size):
        yield Doorbell(queue, tuple(ids[start : start + size]))


PATTERNS = ("job.*", *(f"job.{state.value}" for state in State), f"job.{DELETED}")


def check_pattern(pattern: str) -> None:
    """A pattern that no event fits would wait for ever."""
    if pattern not in PATTERNS:
        raise ConfigurationError(f"no event is called {pattern!r}: subscribe to one of {', '.join(PATTERNS)}")


def fits(pattern: str, event: Event) -> bool:
    return pattern in {"job.*", event.key}
