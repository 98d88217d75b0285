"""A job's output as it is written."""

from __future__ import annotations

from typing import BinaryIO

import typer

from headway.clock import SystemClock, sleep
from headway.model.job import JobRecord
from headway.output import open_outputs
from headway.output.contract import Outputs
from headway.settings import load
from headway.store.contract import Store

LOOK_EVERY = 0.1


async def follow(store: Store, job: JobRecord, attempt: int | None, *, to_the_end: bool, out: BinaryIO) -> int:
    """Write out what there is, and with `to_the_end` what comes until the job (or the attempt asked for) has ended.
    Returns how many bytes it was."""
    async with open_outputs(load().output, store) as outputs:
        return await _follow(store, outputs, job, attempt, out, to_the_end=to_the_end)


async def _follow(  # noqa: PLR0913 - what `follow` was given, and where to read
    store: Store, outputs: Outputs, job: JobRecord, attempt: int | None, out: BinaryIO, *, to_the_end: bool
) -> int:
    number, written, claimed_at = attempt or max(job.attempt, 1), 0, job.claimed_at
    tail = Tail(outputs, job, number, out)
    while True:
        # Looked at before its output is read: what was written before the end is then surely read.
        [now] = await store.get([job.id])
        if now is not None and now.attempt == number and now.claimed_at != claimed_at:
            if tail.begun:
                typer.secho(
                    f"--- attempt {number} went to another worker: all of its output again ---", err=True, dim=True
                )
            claimed_at, tail = now.claimed_at, Tail(outputs, job, number, out)
        # Of an attempt that has begun since, nobody knows yet whose it is.
        if now is None or now.attempt >= number or now.state.terminal or not to_the_end:
            written += await tail.write()
        if now is None or not to_the_end:
            return written
        if now.attempt > number and attempt is None:
            number += 1
            typer.secho(f"--- attempt {number} ---", err=True, dim=True)
            tail = Tail(outputs, job, number, out)
        elif now.state.terminal or now.attempt > number:
            return written
        else:
            await sleep(SystemClock(), LOOK_EVERY)


class Tail:
    """The output of one attempt, from where the last look ended."""

    def __init__(self, outputs: Outputs, job: JobRecord, attempt: int, out: BinaryIO) -> None:
        self._outputs = outputs
        self._job = job
        self._attempt = attempt
        self._out = out
        self._after = -1

    @property
    def begun(self) -> bool:
        return self._after >= 0

    async def write(self) -> int:
        written = 0
        while chunks := await self._outputs.chunks(self._job.id, self._attempt, after_seq=self._after):
            for chunk in chunks:
                written += self._out.write(chunk.data)
            self._after = chunks[-1].seq
        self._out.flush()
        return written
