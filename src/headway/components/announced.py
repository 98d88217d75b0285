"""The functions that workers have announced, as the store tells, without asking it for every job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from headway.clock import Clock
from headway.model.worker import FunctionInfo

KEPT = 5.0
"""Seconds after which a function that was announced anew counts everywhere."""


class Announced:
    """Remembers for a while what it has read. A function that isn't there is looked for again at once: its worker may
    have just come, and without its options the job would go to the wrong queue."""

    def __init__(
        self,
        read: Callable[[], Awaitable[Sequence[FunctionInfo]]],
        clock: Clock,
        here: Callable[[str], FunctionInfo | None] = lambda name: None,
    ) -> None:
        self._read = read
        self._clock = clock
        self._here = here
        """Functions of this process's own app, which need no announcement."""
        self._known: dict[str, FunctionInfo] = {}
        self._read_at = float("-inf")

    async def function(self, name: str) -> FunctionInfo | None:
        own = self._here(name)
        if own is not None:
            return own
        now = self._clock.monotonic()
        if name not in self._known or now - self._read_at > KEPT:
            # Set before the reading: of many that ask at this moment, one reads, the others make do with what is known.
            before, self._read_at = self._read_at, now
            try:
                self._known = {each.name: each for each in await self._read()}
            except BaseException:
                self._read_at = before
                raise
        return self._known.get(name)
