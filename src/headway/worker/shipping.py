"""What running jobs say about themselves, on its way to the store and to where output is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from headway.clock import Clock, sleep
from headway.model.errors import OutputUnavailable, StoreUnavailable
from headway.model.job import Claim, Release
from headway.observe.logs import get_logger
from headway.output.contract import Outputs
from headway.store.contract import Store
from headway.worker.attempt import Attempt
from headway.worker.endurance import endure
from headway.worker.judge import Move
from headway.worker.output import Output, Parcel

REPORT_EVERY = 0.5
SHIP_AFTER = 0.02
"""Seconds for which what jobs write is gathered before it is stored."""
OUTPUT_PATIENCE = 60.0
"""Seconds for which a place for output that fails is tried again before what it didn't take is given up."""
UNCHARGED = frozenset({"give_back", "snooze", "parked"})

log = get_logger("headway.worker")


class Shipping:
    """The news of one worker's running jobs: when they began and how far they are, and what they write.

    A place that refuses costs output, never the end of a job: nothing here raises.
    """

    def __init__(self, store: Store, outputs: Outputs, clock: Clock, running: Callable[[], Sequence[Attempt]]) -> None:
        self._store = store
        self._outputs = outputs
        self._clock = clock
        self._running = running
        self._written = asyncio.Event()
        self._told = False
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> list[asyncio.Task[None]]:
        """Begin; what is returned is to be cancelled at the end."""
        self._loop = asyncio.get_running_loop()
        loops = {"report": self._report, "output": self._ship}
        return [asyncio.create_task(endure(loop, self._clock, name)) for name, loop in loops.items()]

    def heard(self) -> None:
        """A job has written something. Called from any thread; one call is enough until it is seen to."""
        if not self._told:
            self._told = True
            self._loop.call_soon_threadsafe(self._written.set)

    async def end(self, attempt: Attempt, output: Output, move: Move | None) -> None:
        """Store the rest. An attempt that isn't charged leaves its number, and so its place, to the next one."""
        if isinstance(move, Release) and move.reason in UNCHARGED:
            output.discard()
        await self._store_output(attempt, output, last=True)

    async def _report(self) -> None:
        """Every now and then: start times of jobs that take longer, progress."""
        while True:
            await sleep(self._clock, REPORT_EVERY)
            now = self._clock.monotonic()
            news = [attempt.report(now) for attempt in self._running() if attempt.has_news(now)]
            try:
                if news:
                    await self._store.report(news)
            except StoreUnavailable as error:
                log.warning("worker.report_delayed", error=str(error))

    async def _ship(self) -> None:
        """What jobs write, soon after they do."""
        while True:
            await self._written.wait()
            await sleep(self._clock, SHIP_AFTER)
            self._written.clear()
            self._told = False
            # Side by side: what one has written must not be late because another writes much.
            await asyncio.gather(
                *(
                    self._store_output(attempt, attempt.output, last=False)
                    for attempt in self._running()
                    if attempt.output is not None and attempt.output.waiting
                )
            )

    async def _store_output(self, attempt: Attempt, output: Output, *, last: bool) -> None:
        # One at a time: an end must not be recorded while what was taken before is still on its way.
        async with output.storing:
            # Meanwhile it may have ended, and taken its output along: then this parcel is empty.
            parcel = output.take(last=last)
            until = self._clock.monotonic() + OUTPUT_PATIENCE
            while not parcel.empty and not await self._stored(attempt.claim, parcel, until):
                await sleep(self._clock, 1.0)

    async def _stored(self, claim: Claim, parcel: Parcel, until: float) -> bool:
        """Whether there is nothing left to do for it: it is where it belongs, or given up."""
        try:
            if parcel.trim is not None:
                await self._outputs.trim(claim, *parcel.trim)
            if parcel.chunks:
                await self._outputs.append(claim, parcel.chunks)
        except (StoreUnavailable, OutputUnavailable, OSError) as error:
            # Without the store the end can't be recorded either; another place must not hold it up for ever.
            over = not isinstance(error, StoreUnavailable) and self._clock.monotonic() >= until
            told = "worker.output_lost" if over else "worker.output_delayed"
            log.warning(told, job_id=str(claim.id), chunks=len(parcel.chunks), error=str(error))
            return over
        except Exception as error:
            # Trying again would not help, and raised it would keep the job's slot for ever.
            log.exception("worker.output_lost", job_id=str(claim.id), chunks=len(parcel.chunks), error=repr(error))
        return True
