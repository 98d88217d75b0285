"""Who listens in this process, and which queues it can't serve just now: the same for every bus."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headway.bus.contract import Counters, Doorbell, OnCall, OnDoorbell, OnEvent, check_pattern, fits
from headway.model.errors import ConfigurationError
from headway.model.events import Event
from headway.observe.logs import get_logger

T = TypeVar("T")

log = get_logger("headway.bus")


class Ears:
    """Tells listeners what came in. One that raises is logged and counted, and harms nobody else."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._queues: dict[str, OnDoorbell] = {}
        self._deaf: set[str] = set()
        self._calls: dict[object, tuple[str, OnCall]] = {}
        self._events: dict[object, tuple[str, OnEvent, OnCall]] = {}

    @property
    def queues(self) -> list[str]:
        return list(self._queues)

    @property
    def wants_calls(self) -> bool:
        return bool(self._calls)

    @property
    def wants_events(self) -> bool:
        return bool(self._events)

    def listen(self, queue: str, heard: OnDoorbell) -> None:
        if queue in self._queues:
            raise ConfigurationError(f"this bus listens to the queue {queue!r} already: give each worker its own bus")
        self._queues[queue] = heard

    def unlisten(self, queue: str) -> None:
        self._queues.pop(queue, None)
        self._deaf.discard(queue)

    def open_to(self, queue: str) -> bool:
        """Whether doorbells of this queue are wanted now."""
        return queue in self._queues and queue not in self._deaf

    def ready(self, queue: str) -> None:
        self._deaf.discard(queue)

    def on_call(self, channel: str, heard: OnCall) -> Callable[[], None]:
        return _enter(self._calls, (channel, heard))

    def subscribe(self, pattern: str, heard: OnEvent, missed: OnCall) -> Callable[[], None]:
        check_pattern(pattern)
        return _enter(self._events, (pattern, heard, missed))

    # What came in

    def hear(self, doorbell: Doorbell) -> bool:
        """Whether somebody here acts on it."""
        if not self.open_to(doorbell.queue):
            return False
        if self._ask(self._queues[doorbell.queue], doorbell):
            self._counters.heard += 1
            return True
        self._counters.refused += 1
        self._deaf.add(doorbell.queue)
        return False

    def hear_call(self, channel: str) -> None:
        for heard in [heard for wanted, heard in self._calls.values() if wanted == channel]:
            self.tell(heard)

    def hear_event(self, event: Event) -> None:
        for heard in [heard for pattern, heard, _ in self._events.values() if fits(pattern, event)]:
            self._counters.received += 1
            self.tell(heard, event)

    def look_everywhere(self) -> None:
        """Rings and events may have been lost."""
        for queue in self.queues:
            self.hear(Doorbell(queue))
        for channel in {channel for channel, _ in self._calls.values()}:
            self.hear_call(channel)
        for missed in [missed for _, _, missed in self._events.values()]:
            self.tell(missed)

    def _ask(self, heard: OnDoorbell, doorbell: Doorbell) -> bool:
        try:
            return heard(doorbell)
        except Exception:
            self._counters.failed += 1
            log.exception("bus.listener_failed", queue=doorbell.queue)
            # Taken: handed on, it might fail everywhere.
            return True

    def tell(self, heard: Callable[..., object], *news: object) -> None:
        """Call a listener and survive it."""
        try:
            heard(*news)
        except Exception:
            self._counters.failed += 1
            log.exception("bus.listener_failed")


def _enter(book: dict[object, T], entry: T) -> Callable[[], None]:
    place = object()
    book[place] = entry

    def leave() -> None:
        book.pop(place, None)

    return leave
