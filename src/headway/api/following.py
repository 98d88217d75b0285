"""A job's output as it is written, as an event stream."""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator
from uuid import UUID

import msgspec
from starlette.responses import Response

from headway.api.call import Call
from headway.api.chunks import is_output
from headway.api.streaming import Pulse, event, refuse_crowd, stream
from headway.clock import sleep
from headway.model.job import Chunk, JobRecord
from headway.model.states import State

LOOK_EVERY = 0.05
_PLACE = re.compile("([0-9]{1,9}):([0-9]{1,9}):([0-9]{1,18})")


class OutputEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of output."""

    attempt: int
    seq: int
    stream: str
    text: str


class AgainEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt went to another worker, which tells its output from the beginning: what came of it before is void."""

    attempt: int


class EndEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing more will come."""

    state: State
    attempt: int


def follow(call: Call, job: JobRecord, attempt: int | None, name: str | None) -> Response:
    """From the beginning, or from where an earlier stream ended (`Last-Event-ID`), until the job has ended."""
    refuse_crowd(call)
    return stream(call, _follow(call, job, attempt, name))


async def _follow(call: Call, job: JobRecord, only: int | None, name: str | None) -> AsyncIterator[bytes]:
    pulse, place = Pulse(call), _resumed(call) or _Place(only or max(job.attempt, 1), -1, _claimed(job))
    while not pulse.over and await pulse.allowed():
        # Looked at before its output is read: what was written before the end is then surely read.
        [now] = await call.store(lambda store: store.get([job.id]))
        sent = False
        if now is not None and place.void(now):
            yield event("again", AgainEvent(attempt=place.attempt))
        while place.begun(now) and (chunks := await _read(call, job.id, place)):
            place.after = chunks[-1].seq
            for chunk in chunks:
                if (name is None and is_output(chunk.stream)) or chunk.stream == name:
                    yield place.event(chunk)
                    sent = True
        if now is None:
            return
        if now.attempt > place.attempt and only is None:
            place = _Place(place.attempt + 1, -1, 0)
        elif now.state.terminal or now.attempt > place.attempt:
            yield event("end", EndEvent(state=now.state, attempt=place.attempt))
            return
        else:
            if beat := pulse.beat(sent):
                yield beat
            await sleep(call.service.clock, LOOK_EVERY)


class _Place:
    """Where a follower stands: in an attempt, behind one of its chunks. An attempt that a worker gives back keeps its
    number, and begins anew with the next one: `claimed` tells one holder from another."""

    def __init__(self, attempt: int, after: int, claimed: int) -> None:
        self.attempt = attempt
        self.after = after
        self._claimed = claimed
        self._texts = _Texts()

    def begun(self, job: JobRecord | None) -> bool:
        """Whether there may be something to read. Of an attempt that has begun since, nobody knows yet whose it is."""
        return job is None or job.state.terminal or job.attempt >= self.attempt

    def void(self, job: JobRecord) -> bool:
        """Whether what was sent of this attempt doesn't hold any more; from now on it is read from its beginning."""
        if job.attempt != self.attempt or _claimed(job) == self._claimed:
            return False
        sent, self.after = self.after >= 0, -1
        self._claimed, self._texts = _claimed(job), _Texts()
        return sent

    def event(self, chunk: Chunk) -> bytes:
        told = OutputEvent(attempt=self.attempt, seq=chunk.seq, stream=chunk.stream, text=self._texts.text(chunk))
        return event("output", told, f"{self.attempt}:{chunk.seq}:{self._claimed}")


async def _read(call: Call, job_id: UUID, place: _Place) -> list[Chunk]:
    return await call.outputs(lambda outputs: outputs.chunks(job_id, place.attempt, after_seq=place.after))


class _Texts:
    """Bytes as text: a character may begin in one chunk of a stream and end in the next."""

    def __init__(self) -> None:
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}

    def text(self, chunk: Chunk) -> str:
        decoder = self._decoders.setdefault(chunk.stream, codecs.getincrementaldecoder("utf-8")("replace"))
        return decoder.decode(chunk.data)


def _claimed(job: JobRecord) -> int:
    return 0 if job.claimed_at is None else round(job.claimed_at.timestamp() * 1_000_000)


def _resumed(call: Call) -> _Place | None:
    place = _PLACE.fullmatch(call.header("last-event-id") or "")
    return _Place(*map(int, place.groups())) if place else None
