"""CREATE: a job body becomes a job.

In one process, CREATE and SCHEDULE are one INSERT. A CREATE that comes as a message stores the job as `creating` and
sends SCHEDULE, so that another process may take it from there; should that get lost, the sweep finds the job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from headway.components.identity import Names
from headway.components.messages import Handled, Message, Reach, answered
from headway.components.shapes import JobShape, job_shape, record_of
from headway.kinds.bodies import Asked, Bodies, Origin
from headway.model.errors import HeadwayError
from headway.model.states import State
from headway.model.submission import Accepted, Submission
from headway.observe import metrics, series, trail
from headway.store.contract import Jobs, Store
from headway.store.scripts.submit import Answer

CREATE = "create"
SCHEDULE = "schedule"


async def create_jobs(store: Jobs, batch: Sequence[Submission], *, partial: bool = True) -> list[Answer]:
    """Store jobs, one answer each, in order. Not `partial`: all or none, and the first error is raised."""
    answers = await store.submit(batch, partial=partial)
    if metrics.counting():
        _count(batch, answers)
    if trail.heard():
        for job, answer in zip(batch, answers, strict=True):
            _tell(job, answer)
    return answers


async def run_schedule(store: Store, schedule_id: UUID, job_id: UUID, *, by: str | None) -> Accepted:
    """One job of a schedule at once, beside its timetable. Raises what stands in its way."""
    answer = await store.run_schedule(schedule_id, job_id, by=by)
    if not isinstance(answer, Accepted):
        raise answer
    if metrics.counting() and not answer.earlier:
        [job] = await store.get([job_id])
        if job is not None:
            series.jobs_submitted.add((job.kind, job.queue))
    return answer


def _count(batch: Sequence[Submission], answers: Sequence[Answer]) -> None:
    series.batch_size.observe((len(batch),), ("submit",))
    new = Counter(
        (job.kind, job.queue)
        for job, answer in zip(batch, answers, strict=True)
        if isinstance(answer, Accepted) and not answer.earlier
    )
    for labels, number in new.items():
        series.jobs_submitted.add(labels, number)


def _tell(job: Submission, answer: Answer) -> None:
    if isinstance(answer, HeadwayError) or answer.earlier:
        return
    trail.changed(CREATE, job.id, before=None, after=State.CREATING, correlation_id=job.correlation_id)
    if answer.state is not State.CREATING:
        trail.changed(SCHEDULE, job.id, before=State.CREATING, after=answer.state, correlation_id=job.correlation_id)
    for replaced, moved in answer.replaced:
        if moved.before is not moved.state:
            trail.changed(CREATE, replaced, before=moved.before, after=moved.state, correlation_id=job.correlation_id)


class CreateJob:
    """Acts on CREATE: `{"type": "CREATE", "id"?: …, "payload": <job body>}`."""

    handles = "CREATE"
    name = CREATE

    def __init__(self, reach: Reach, bodies: Bodies, names: Names) -> None:
        self._reach = reach
        self._bodies = bodies
        self._names = names

    async def handle(self, message: Message) -> Handled | None:
        return await answered(self, message, self._create) if message.type == self.handles else None

    async def _create(self, message: Message) -> Handled:
        origin = Origin(
            by=message.by,
            id=await self._names.of(message),
            correlation_id=message.correlation_id,
            traceparent=message.traceparent,
            broker=True,
            staged=True,
        )
        asked = await self._bodies.read(message.payload, origin)
        accepted = await self._reach.submit(asked.submission)
        job = await shaped(self._reach, asked, accepted)
        return Handled({"ok": True, "job": job}, _next(message, asked.submission, accepted), job.id)


async def shaped(reach: Reach, asked: Asked, accepted: Accepted) -> JobShape:
    """The job as the answer to its submission. A new one is known; an earlier one is read, and one that is blocked,
    because the store alone knows by what."""
    record = None
    if accepted.earlier or accepted.state is State.BLOCKED:
        [record] = await reach.call(lambda store: store.get([accepted.job_id]))
    return job_shape(
        record or record_of(asked.submission, accepted),
        warnings=(*asked.warnings, *accepted.warnings, *late(asked.submission, accepted)),
        deduplicated=accepted.deduplicated,
    )


def late(job: Submission, accepted: Accepted) -> tuple[str, ...]:
    """What to tell somebody who asked for a time that has been."""
    if job.run_at is None or job.run_at >= accepted.created_at or accepted.earlier:
        return ()
    return (f"run_at {job.run_at.isoformat()} has passed already: the job runs as soon as its turn comes",)


def _next(message: Message, job: Submission, accepted: Accepted) -> tuple[Message, ...]:
    """SCHEDULE, for a job that waits for nothing else; sent again for a repeat, lest the first one got lost."""
    if accepted.state is not State.CREATING or accepted.deduplicated or job.hold:
        return ()
    follow_up = Message(
        type="SCHEDULE",
        payload={"job_id": str(job.id)},
        message_id=f"schedule {job.id}",
        correlation_id=message.correlation_id or str(job.id),
        by=message.by,
    )
    return (follow_up,)
