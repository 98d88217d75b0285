"""A town: the buses of several processes on one broker, and listeners that remember."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import UTC, datetime
from uuid import UUID, uuid4

from headway.bus import make_bus
from headway.bus.contract import Bus, Doorbell
from headway.contracts.waiting import until
from headway.model.events import Event
from headway.model.states import Outcome, State


class Town:
    """Every bus it opens stands for another process; all end with the test."""

    def __init__(self, url: str, stack: AsyncExitStack) -> None:
        self.url = url
        self._stack = stack

    async def bus(self, url: str | None = None) -> Bus:
        bus = make_bus(url or self.url)
        self._stack.push_async_callback(bus.close)
        await bus.open()
        return bus


class Ear:
    """Hears doorbells, and answers as it is told."""

    def __init__(self, *, answer: bool = True) -> None:
        self.answer = answer
        self.doorbells: list[Doorbell] = []

    def __call__(self, doorbell: Doorbell) -> bool:
        self.doorbells.append(doorbell)
        return self.answer

    @property
    def count(self) -> int:
        return len(self.doorbells)

    @property
    def ids(self) -> list[UUID]:
        return [job_id for doorbell in self.doorbells for job_id in doorbell.ids]

    async def hears(self, count: int = 1, patience: float = 45.0) -> None:
        await until(lambda: self.count >= count, f"{count} doorbells", patience)


class Caller:
    """Counts calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1

    async def hears(self, count: int = 1, patience: float = 45.0) -> None:
        await until(lambda: self.count >= count, f"{count} calls", patience)


class Reader:
    """Remembers events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    async def reads(self, count: int = 1, patience: float = 45.0) -> None:
        await until(lambda: len(self.events) >= count, f"{count} events", patience)


async def fence(sender: Bus, hearer: Bus) -> None:
    """Everything that `sender` sent before has reached `hearer`, if it was to reach it at all."""
    channel, called = f"fence {uuid4()}", Caller()
    stop = await hearer.on_call(channel, called)
    sender.call(channel)
    await called.hears()
    stop()


def event(state: State = State.COMPLETED, **fields: object) -> Event:
    plain: dict[str, object] = {
        "event": f"job.{state.value}",
        "job_id": uuid4(),
        "kind": "call",
        "name": "report",
        "queue": "default",
        "state": state,
        "outcome": Outcome.SUCCEEDED if state is State.COMPLETED else None,
        "attempt": 1,
        "at": datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    }
    return Event(**{**plain, **fields})  # type: ignore[arg-type]
