"""The store's time on SQLite: the machine's wall clock, watched for jumps."""

from __future__ import annotations

import threading

from headway.clock import Clock
from headway.observe.logs import get_logger
from headway.store.sqlite.rows import microseconds

TOLERANCE = 5_000_000
"""Microseconds by which the wall clock may part from steady time before it counts as a jump."""

log = get_logger("headway.store")


class StoreTime:
    """Wall time in microseconds. A jump is handed to the next transaction, which makes up for it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._jump = 0
        self._last_wall, self._last_steady = self._both()

    def look(self) -> int:
        """The time, for one who only reads."""
        with self._lock:
            return self._sync()

    def read(self) -> tuple[int, int]:
        """The time, and by how much it has jumped (back: less than 0) since the last transaction."""
        with self._lock:
            now = self._sync()
            jump, self._jump = self._jump, 0
            return now, jump

    def _sync(self) -> int:
        wall, steady = self._both()
        step = (wall - self._last_wall) - (steady - self._last_steady)
        self._last_wall, self._last_steady = wall, steady
        if abs(step) > TOLERANCE:
            log.warning("store.clock_step", seconds=step / 1_000_000)
            self._jump += step
        return wall

    def _both(self) -> tuple[int, int]:
        return microseconds(self._clock.now()), int(self._clock.monotonic() * 1_000_000)
