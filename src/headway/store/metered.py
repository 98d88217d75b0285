"""What drivers have in common: their transactions are counted and timed, when anybody wants to know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from headway.clock import Clock
from headway.observe import metrics, series
from headway.store.driver import Lane
from headway.store.statements import Script

T = TypeVar("T")


class Metered:
    """A driver that says how much it has to do. Drivers inherit it and bring `transact` and `connections`."""

    def __init__(self, clock: Clock) -> None:
        self._meter_clock = clock
        self._calls: Counter[str] = Counter()
        self._ends: list[Callable[[], None]] = []

    def connections(self) -> int:
        """How many are open."""
        raise NotImplementedError

    async def transact(
        self, script: Callable[[], Script[T]], lane: Lane, again: Callable[[], Script[T]] | None, *, single: bool
    ) -> T:
        """`Driver.run` itself."""
        raise NotImplementedError

    async def run(
        self,
        script: Callable[[], Script[T]],
        lane: Lane,
        *,
        again: Callable[[], Script[T]] | None = None,
        single: bool = False,
    ) -> T:
        if not metrics.counting():
            return await self.transact(script, lane, again, single=single)
        name, began = lane.value, self._meter_clock.monotonic()
        self._calls[name] += 1
        try:
            result = await self.transact(script, lane, again, single=single)
        except Exception:
            series.store_failures.add((name,))
            raise
        finally:
            self._calls[name] -= 1
        series.store_transaction.observe((self._meter_clock.monotonic() - began,), (name,))
        return result

    def be_metered(self) -> None:
        """From now on, whoever asks for the numbers is told of this driver."""
        if not self._ends:
            self._ends = [
                series.store_connections.watch(lambda: [((), self.connections())]),
                series.store_calls.watch(lambda: [((lane.value,), self._calls[lane.value]) for lane in Lane]),
            ]

    def be_unmetered(self) -> None:
        for end in self._ends:
            end()
        self._ends = []
