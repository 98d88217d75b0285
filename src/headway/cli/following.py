"""A job's output as it is written."""

from __future__ import annotations

from typing import BinaryIO

import typer

from headway.clock import SystemClock, sleep
from headway.model.job import JobRecord
from headway.store.contract import Store

LOOK_EVERY = 0.2


async def follow(store: Store, job: JobRecord, attempt: int | None, *, to_the_end: bool, out: BinaryIO) -> int:
    """Write out what there is, and with `to_the_end` what comes until the job (or the attempt asked for) has ended.
    Returns how many bytes it was."""
    number, written = attempt or max(job.attempt, 1), 0
    tail = Tail(store, job, number, out)
    while True:
        # Looked at before its output is read: what was written before the end is then surely read.
        [now] = await store.get([job.id])
        written += await tail.write()
        if now is None or not to_the_end:
            return written
        if now.attempt > number and attempt is None:
            number += 1
            typer.secho(f"--- attempt {number} ---", err=True, dim=True)
            tail = Tail(store, job, number, out)
        elif now.state.terminal or now.attempt > number:
            return written
        else:
            await sleep(SystemClock(), LOOK_EVERY)


class Tail:
    """The output of one attempt, from where the last look ended."""

    def __init__(self, store: Store, job: JobRecord, attempt: int, out: BinaryIO) -> None:
        self._store = store
        self._job = job
        self._attempt = attempt
        self._out = out
        self._after = -1

    async def write(self) -> int:
        written = 0
        while chunks := await self._store.chunks(self._job.id, self._attempt, after_seq=self._after):
            for chunk in chunks:
                written += self._out.write(chunk.data)
            self._after = chunks[-1].seq
        self._out.flush()
        return written
