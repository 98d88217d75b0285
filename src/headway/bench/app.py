"""The app that is measured: jobs that do nothing, and one that says when it began."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any
from uuid import UUID

from headway.app import Headway
from headway.clock import SystemClock
from headway.executors.contract import current
from headway.functions import JobFunction

QUEUE = "bench"
NOOP = "bench.noop"
STAMP = "bench.stamp"
HOLD = "bench.hold"
LATE = "bench.late"
ECHO = "bench.echo"
ANSWERS = "answers"
"""A queue for what has a result: it doesn't wait behind others."""
FULL = "full"
"""The key whose jobs may run one at a time."""


class Bench:
    """An app on a store, and what its jobs have noted in this process."""

    def __init__(self, url: str, bus: str | None = None) -> None:
        self.app = Headway(url, bus=bus)
        self.delays: list[float] = []
        """Seconds from submission to start. The steady clock is the same in all processes of a machine."""
        self.holding = asyncio.Event()
        self._clock = SystemClock()
        self.noop: JobFunction[Any, Any] = self.app.job(name=NOOP, queue=QUEUE)(self._noop)
        self.stamp: JobFunction[Any, Any] = self.app.job(name=STAMP, queue=QUEUE)(self._stamp)
        self.hold: JobFunction[Any, Any] = self.app.job(name=HOLD, queue=QUEUE, key=FULL)(self._hold)
        self.late: JobFunction[Any, Any] = self.app.job(name=LATE, queue=QUEUE)(self._late)
        self.echo: JobFunction[Any, Any] = self.app.job(name=ECHO, queue=ANSWERS)(self._echo)
        self.starts: dict[UUID, datetime] = {}

    async def _noop(self, number: int) -> None:
        """Nothing: what is measured is everything around it."""

    async def _echo(self, number: int) -> dict[str, int]:
        return {"number": number}

    async def _stamp(self, sent: float) -> None:
        self.delays.append(self._clock.monotonic() - sent)

    async def _late(self) -> None:
        self.starts[current().job_id] = self._clock.now()

    async def _hold(self) -> None:
        self.holding.set()
        await asyncio.Event().wait()
