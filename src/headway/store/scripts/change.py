"""EDIT: a person changes a job that nobody has begun."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from headway.model.errors import IllegalMove, JobChanged, JobNotFound
from headway.model.events import Transition
from headway.model.job import JobRecord
from headway.model.states import State
from headway.model.submission import Edit
from headway.store.scripts import views
from headway.store.scripts.news import tell
from headway.store.scripts.rows import ids
from headway.store.statements import Script, many, one

EDIT = "edit"
_UNBEGUN = frozenset({State.CREATING, State.SCHEDULED, State.BLOCKED})


def edit(
    job_id: UUID, edit: Edit, *, by: str | None, expected: Callable[[JobRecord], bool] | None
) -> Script[JobRecord]:
    """Under lock, so that no claim comes between the look and the change. In another queue other limits hold: a job
    that stood at one of the old ones is judged anew by the next claim."""
    yield many("lock_jobs", ids([job_id]))
    [job] = yield from views.get([job_id])
    if job is None:
        raise JobNotFound(job_id)
    if expected is not None and not expected(job):
        raise JobChanged(job_id)
    if job.state not in _UNBEGUN:
        raise IllegalMove(f"job {job_id} is {job.state}: only a job that nobody has begun can be changed")
    yield one(
        "edit_job",
        job_id=job_id,
        run_at=edit.run_at,
        rank=None if edit.priority is None else -edit.priority,
        queue=edit.queue,
        payload=edit.payload,
    )
    if edit.payload is not None:
        # What it stood for in de-duplication, it no longer does.
        yield many("free_dedupes", ids([job_id]))
    yield many("add_history", [(job_id, EDIT, by, str(edit))])
    yield one("wake", wake=sorted({job.queue, edit.queue or job.queue}))
    [after] = yield from views.get([job_id])
    assert after is not None
    if after.state is not job.state:
        yield many("add_history", [(job_id, after.state.value, None, None)])
        yield from tell([_moved(job, after)], EDIT)
    return after


def _moved(before: JobRecord, after: JobRecord) -> Transition:
    return Transition(
        job_id=after.id,
        kind=after.kind,
        name=after.name,
        queue=after.queue,
        state=after.state,
        attempt=after.attempt,
        before=before.state,
        correlation_id=after.correlation_id,
    )
