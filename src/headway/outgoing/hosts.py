"""How many requests a worker sends to a host at once, and in a time. What doesn't fit is told to come back later, so
that a crowd at one host takes no room from requests to others."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

import msgspec

from headway.clock import Clock, sleep, wait_for
from headway.model.errors import ConfigurationError, InvalidJob
from headway.model.limits import Limit, Rate

PATIENCE = 2.0
"""Seconds for which a job waits here for its turn, before it goes back to its queue."""
LEAST_AWAY = 0.25
EVERY_HOST = "*"

_ENTRY = re.compile(r"(?P<host>[^\s=]+)=(?:(?P<most>\d+)(?![\d/]))?:?(?P<rate>\d+/\d*[smhd])?")
_SMOOTH = 0.2


class Crowded(Exception):
    """It isn't this request's turn: try again after `delay` seconds."""

    def __init__(self, delay: float) -> None:
        super().__init__(f"not within {delay:g} s")
        self.delay = delay


def parse_limits(given: Iterable[str]) -> dict[str, Limit]:
    """`api.example.com=5` (at once), `=10/s` (in a time), `=5:10/s` (both); `*` is every host that isn't named. Raises
    ConfigurationError."""
    return dict(_parse(entry.strip().lower()) for entry in given)


def _parse(entry: str) -> tuple[str, Limit]:
    found = _ENTRY.fullmatch(entry)
    if found is None or not (found["most"] or found["rate"]):
        raise ConfigurationError(
            f"HEADWAY_HOST_LIMITS must be like api.example.com=5:10/s (at once: in a time) or *=100, not {entry!r}"
        )
    try:
        rate = Rate.parse(found["rate"]) if found["rate"] else None
        return found["host"], Limit(max_running=int(found["most"]) if found["most"] else None, rate=rate)
    except InvalidJob as error:
        raise ConfigurationError(f"HEADWAY_HOST_LIMITS: {entry!r}: {error}") from error


class Turnstile:
    """Lets requests to each host pass as its limit allows."""

    def __init__(self, clock: Clock, limits: Mapping[str, Limit]) -> None:
        self._clock = clock
        self._limits = limits
        self._queues: dict[str, _Queue] = {}

    @property
    def open(self) -> bool:
        """Nothing is limited."""
        return not self._limits

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """A request's time at a host. Raises Crowded."""
        limit = self._limits.get(host) or self._limits.get(EVERY_HOST)
        if limit is None:
            yield
            return
        queue = self._queues.setdefault(host, _Queue(limit, self._clock))
        await queue.enter()
        began = self._clock.monotonic()
        try:
            yield
        finally:
            queue.leave(self._clock.monotonic() - began)
            if queue.idle:
                self._queues.pop(host, None)


class _Line(msgspec.Struct):
    """What is known of a host's pace."""

    paid_until: float = 0.0
    """When the rate has made up for all that began so far."""
    away_until: float = 0.0
    """When the last of those that were sent away is to come back."""
    lasts: float = 0.1
    """Seconds that a request takes, on the average of late."""


class _Queue:
    def __init__(self, limit: Limit, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._running = 0
        self._waiting: deque[asyncio.Event] = deque()
        self._line = _Line()

    @property
    def idle(self) -> bool:
        """Nobody is here, and nothing is to be remembered."""
        now = self._clock.monotonic()
        return not self._running and not self._waiting and max(self._line.paid_until, self._line.away_until) <= now

    async def enter(self) -> None:
        await self._slot()
        try:
            await self._pay()
        except BaseException:
            self._free()
            raise

    def leave(self, lasted: float) -> None:
        self._line.lasts += _SMOOTH * (lasted - self._line.lasts)
        self._free()

    async def _slot(self) -> None:
        most = self._limit.max_running
        if most is None or self._running < most:
            self._running += 1
            return
        if len(self._waiting) >= most:
            raise self._crowded()
        mine = asyncio.Event()
        self._waiting.append(mine)
        try:
            if not await wait_for(self._clock, mine, PATIENCE):
                raise self._crowded()
        except BaseException:
            if mine.is_set():
                # The slot was handed over in the very moment in which we gave up.
                self._free()
            else:
                self._waiting.remove(mine)
            raise

    def _free(self) -> None:
        """The slot goes to who waits longest."""
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._running -= 1

    async def _pay(self) -> None:
        rate = self._limit.rate
        if rate is None:
            return
        now = self._clock.monotonic()
        paid = max(self._line.paid_until, now)
        wait = paid + rate.period / rate.count - rate.period - now
        if wait > PATIENCE:
            raise self._crowded()
        self._line.paid_until = paid + rate.period / rate.count
        if wait > 0:
            await sleep(self._clock, wait)

    def _crowded(self) -> Crowded:
        """Each that is sent away is to come back a little later than the one before."""
        rate, most = self._limit.rate, self._limit.max_running
        paces = [rate.period / rate.count if rate else 0.0, self._line.lasts / most if most else 0.0]
        now = self._clock.monotonic()
        self._line.away_until = max(self._line.away_until, self._line.paid_until, now + LEAST_AWAY) + max(paces)
        return Crowded(self._line.away_until - now)
