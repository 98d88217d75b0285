"""A connection to a broker, made again whenever it is lost."""

from __future__ import annotations

import asyncio
import random as chance
from collections.abc import Awaitable, Callable, Coroutine
from typing import Generic, TypeVar

import msgspec

from headway.bus.contract import BusUnavailable, Tally
from headway.clock import Clock, SystemClock, sleep
from headway.model.retry import Random
from headway.observe import series
from headway.observe.logs import get_logger
from headway.plugins import redacted

C = TypeVar("C")

FIRST_WAIT = 0.05
LONGEST_WAIT = 1.0
SETTLED = 5.0
"""Seconds after which a connection counts as a good one: the next loss is answered at once again."""

log = get_logger("headway.bus")


class Away(Exception):
    """The broker can't be reached just now; it may be back soon."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Where the broker is, and how long to wait for it at the start."""

    url: str
    patience: float = 10.0
    clock: Clock = SystemClock()
    random: Random = chance.random

    @property
    def address(self) -> str:
        """The URL, fit to be shown."""
        return redacted(self.url)

    def __repr__(self) -> str:
        return f"Terms({self.address})"


class Line(Generic[C]):
    """`dial` makes a connection, or raises `Away`, or `BusUnavailable` where waiting doesn't help. `serve` works with
    it until it is lost, and leaves it closed."""

    def __init__(
        self,
        terms: Terms,
        counters: Tally,
        *,
        dial: Callable[[], Awaitable[C]],
        serve: Callable[[C], Awaitable[None]],
    ) -> None:
        self._terms = terms
        self._counters = counters
        self._dial = dial
        self._serve = serve
        self._task: asyncio.Task[None] | None = None
        self._wait = FIRST_WAIT
        self._connected = 0
        self._ends: list[Callable[[], None]] = []

    async def open(self) -> None:
        connection = await self._reach(self._terms.patience)
        self._watch()
        self._task = asyncio.create_task(self._keep(connection))

    def join(self) -> None:
        """The same without waiting: the broker may be away, for as long as it likes."""
        self._watch()
        self._task = asyncio.create_task(self._join())

    @property
    def _labels(self) -> tuple[str]:
        return (self._terms.url.partition(":")[0],)

    def _watch(self) -> None:
        self._ends = [
            series.bus_wanted.watch(lambda: [(self._labels, 1)]),
            series.bus_connected.watch(lambda: [(self._labels, self._connected)]),
            self._counters.shown.watch(self._counted),
        ]

    def _counted(self) -> list[tuple[tuple[str], float]]:
        fields: dict[str, float] = msgspec.structs.asdict(self._counters)
        # Those have a series of their own.
        return [((name,), number) for name, number in fields.items() if name != "reconnects"]

    async def _join(self) -> None:
        await self._keep(await self._reach(None))

    async def close(self) -> None:
        for end in self._ends:
            end()
        self._ends = []
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _keep(self, connection: C) -> None:
        clock = self._terms.clock
        while True:
            began = clock.monotonic()
            await self._use(connection)
            heed_cancellation()
            if clock.monotonic() - began > SETTLED:
                self._wait = FIRST_WAIT
            log.warning("bus.lost", bus=self._terms.address)
            await self._pause()
            connection = await self._reach(None)
            self._counters.reconnects += 1
            series.bus_reconnects.add(self._labels)
            log.info("bus.reconnected", bus=self._terms.address)

    async def _use(self, connection: C) -> None:
        self._connected = 1
        try:
            await self._serve(connection)
        except Exception:
            # Whatever it was, a new connection is a new start.
            log.exception("bus.failed", bus=self._terms.address)
        finally:
            self._connected = 0

    async def _reach(self, patience: float | None) -> C:
        """A connection; without `patience` however long it takes."""
        started, told = self._terms.clock.monotonic(), False
        while True:
            try:
                return await self._dial()
            except (Away, BusUnavailable) as error:
                heed_cancellation()
                waited = self._terms.clock.monotonic() - started
                if patience is not None and (isinstance(error, BusUnavailable) or waited >= patience):
                    raise BusUnavailable(f"can't use the bus {self._terms.address}: {error}") from error
                if not told:
                    log.warning("bus.away", bus=self._terms.address, error=str(error))
                told = True
            await self._pause()

    async def _pause(self) -> None:
        """Longer each time, and not at the same moment as everybody else."""
        await sleep(self._terms.clock, self._wait * (0.5 + self._terms.random()))
        self._wait = min(self._wait * 2, LONGEST_WAIT)


def heed_cancellation() -> None:
    """To be asked where errors of a driver are survived. A driver that is cancelled while its connection breaks may
    raise an error of its own instead, or none, and whoever cancelled would wait for ever."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def until_lost(lost: asyncio.Event, *acts: Coroutine[object, object, object]) -> None:
    """Do these until the connection is lost or one of them ends; raises what ended it."""
    tasks = [asyncio.ensure_future(act) for act in (lost.wait(), *acts)]
    try:
        heed_cancellation()
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ended = [task for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        # A driver may end by cancellation what it can't go on with: that is a loss, not our own end.
        if not task.cancelled():
            task.result()
