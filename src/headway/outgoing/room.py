"""How much of what others send a worker holds in memory at once.

An answer may be small or as large as its limit allows, and thousands are read at a time. What is small is read as it
comes. Whoever needs more takes all it may need in one step before it reads on, so that nobody who holds a part waits
for the rest; meanwhile the far side is held up by its full line.
"""

from __future__ import annotations

import asyncio
from collections import deque

from headway.clock import Clock, wait_for
from headway.outgoing.hosts import Crowded

SMALL = 64 * 1024
"""Bytes that nobody has to ask for."""
PATIENCE = 10.0
"""Seconds for which a request waits for room, before its job goes back to its queue."""
AWAY = 1.0


class Room:
    """So many bytes, given in the order in which they are asked for."""

    def __init__(self, size: int, clock: Clock) -> None:
        self.size = size
        self.free = size
        self._clock = clock
        self._waiting: deque[tuple[int, asyncio.Event]] = deque()

    async def take(self, amount: int) -> int:
        """What was given: `amount`, or all there is if that is less. Raises Crowded."""
        amount = min(amount, self.size)
        if not self._waiting and amount <= self.free:
            self.free -= amount
            return amount
        turn = (amount, asyncio.Event())
        self._waiting.append(turn)
        try:
            if not await wait_for(self._clock, turn[1], PATIENCE):
                raise Crowded(AWAY)
        except BaseException:
            self._leave(turn)
            raise
        return amount

    def give(self, amount: int) -> None:
        self.free += amount
        while self._waiting and self._waiting[0][0] <= self.free:
            asked, given = self._waiting.popleft()
            self.free -= asked
            given.set()

    def _leave(self, turn: tuple[int, asyncio.Event]) -> None:
        """Whoever waits no longer gives back what it was given at the last moment, or lets those behind it pass."""
        if turn[1].is_set():
            self.give(turn[0])
        else:
            self._waiting.remove(turn)
            self.give(0)


class Share:
    """What one job holds of a room, until its end is recorded."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._held = 0

    async def hold(self, amount: int) -> None:
        """Room for a content of so many bytes, in place of one before. Raises Crowded."""
        if amount > self._held:
            self.let_go()
            self._held = await self._room.take(amount)

    def let_go(self) -> None:
        held, self._held = self._held, 0
        self._room.give(held)
