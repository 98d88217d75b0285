"""What can be done with jobs: cancel, retry, let go; one, or all that match."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headway.api.call import Call, answer
from headway.api.examples import JOB
from headway.api.problems import Problem, problem_of
from headway.api.table import Answer, Audit, Body, Route
from headway.components.bulk import Ask, in_steps, matching
from headway.components.cancel import REASON, cancel_jobs, delete_jobs
from headway.components.schedule import retry_jobs, schedule_jobs
from headway.components.shapes import JobShape, job_shape
from headway.components.status import Query, get_job
from headway.components.verdicts import sole
from headway.kinds.body import A_TIME, Time
from headway.kinds.reading import read
from headway.model.access import Permission
from headway.model.errors import HeadwayError, InvalidRequest
from headway.model.filters import JobFilter
from headway.model.states import State
from headway.store.contract import Store
from headway.store.scripts.cancel import Verdict

TOLD = 100
"""Refusals that an answer to a bulk act lists."""
_OPEN = tuple(state.value for state in (State.CREATING, State.SCHEDULED, State.BLOCKED, State.RUNNING))


class Reason(msgspec.Struct):
    """Why, for the history and for the job's error."""

    reason: Annotated[str, Meta(description="a text", max_length=1000)] = REASON


class When(msgspec.Struct):
    """When it is to run."""

    run_at: Annotated[Time | None, Meta(description=A_TIME)] = None


class Nothing(msgspec.Struct):
    """There is nothing to say."""


class Bulk(msgspec.Struct, kw_only=True):
    """An act on all jobs that match."""

    action: Annotated[Literal["cancel", "retry", "delete"], Meta(description="cancel, retry or delete")]
    filter: Annotated[dict[str, Any], Meta(description='conditions as for GET /jobs, such as {"state": "failed"}')]
    dry_run: Annotated[bool, Meta(description="true: count only, do nothing")] = False
    reason: Annotated[str, Meta(description="why, of a cancel", max_length=1000)] = REASON


class Refused(msgspec.Struct, frozen=True):
    """A job that the act could not be done with."""

    job_id: UUID
    error: Problem


class BulkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    action: str
    dry_run: bool
    matched: int
    done: int
    refused: int
    errors: list[Refused]
    """The first hundred of those refused."""


async def cancel(call: Call) -> Response:
    return await _act(call, _cancel(call, call.body.reason))


async def retry(call: Call) -> Response:
    return await _act(call, _retry(call))


async def schedule(call: Call) -> Response:
    run_at = call.body.run_at

    def ask(store: Store, ids: Sequence[UUID]) -> Awaitable[list[Verdict]]:
        return schedule_jobs(store, ids, run_at, by=call.by, correlation_id=call.correlation_id)

    return await _act(call, ask)


async def _act(call: Call, ask: Ask) -> Response:
    job_id, permitted = call.job_id, within(call, ask)
    sole(await call.store(lambda store: permitted(store, [job_id])))
    return answer(job_shape(await call.store(lambda store: get_job(store, job_id))))


def within(call: Call, ask: Ask) -> Ask:
    """The same, with jobs that the caller may submit: to act on others' is as good as to submit them."""
    if not call.limited:
        return ask

    async def permitted(store: Store, ids: Sequence[UUID]) -> list[Verdict]:
        refused = {job.id: error for job in await store.get(ids) if job and (error := call.forbids(job))}
        answers = iter(await ask(store, [job_id for job_id in ids if job_id not in refused]))
        return [refused.get(job_id) or next(answers) for job_id in ids]

    return permitted


async def bulk(call: Call) -> Response:
    wanted, ask = _wanted(call.body), within(call, _ASKS[call.body.action](call))
    ids = await call.store(lambda store: matching(store, wanted))
    refused: list[tuple[UUID, HeadwayError]] = []
    done = 0
    if not call.body.dry_run:
        verdicts = await call.service.app.client.call(lambda store: _in_all(store, ids, ask, call))
        refused = [(job_id, verdict) for job_id, verdict in verdicts if isinstance(verdict, HeadwayError)]
        done = len(verdicts) - len(refused)
        call.done = {"matched": len(ids), "done": done, "refused": len(refused)}
    return answer(
        BulkAnswer(
            action=call.body.action,
            dry_run=call.body.dry_run,
            matched=len(ids),
            done=done,
            refused=len(refused),
            errors=[Refused(job_id, problem_of(error)) for job_id, error in refused[:TOLD]],
        )
    )


async def _in_all(store: Store, ids: Sequence[UUID], ask: Ask, call: Call) -> list[tuple[UUID, Verdict]]:
    return [each async for step in in_steps(store, ids, ask, call.service.clock) for each in step]


def _wanted(asked: Bulk) -> JobFilter:
    """Which jobs are meant. A filter that says nothing means nobody's jobs, not everybody's."""
    for name in ("limit", "cursor"):
        if name in asked.filter:
            raise InvalidRequest(f"filter.{name}: leave it out, an act is on all that match", field=f"filter.{name}")
    try:
        wanted = read(Query, asked.filter, InvalidRequest).filter()
    except InvalidRequest as error:
        raise InvalidRequest(f"filter: {error}", field=f"filter.{error.field}" if error.field else "filter") from None
    if not asked.filter:
        raise InvalidRequest("filter is empty: say which jobs are meant", field="filter")
    if not wanted.states and asked.action == "delete":
        raise InvalidRequest("filter.state is missing: to delete, say jobs of which state are meant", field="filter")
    default = _OPEN if asked.action == "cancel" else (State.FAILED.value,)
    return msgspec.structs.replace(wanted, states=wanted.states or default)


def _cancel(call: Call, reason: str) -> Ask:
    return lambda store, ids: cancel_jobs(store, ids, by=call.by, reason=reason, correlation_id=call.correlation_id)


def _retry(call: Call) -> Ask:
    return lambda store, ids: retry_jobs(store, ids, by=call.by, correlation_id=call.correlation_id)


_ASKS: dict[str, Callable[[Call], Ask]] = {
    "cancel": lambda call: _cancel(call, call.body.reason),
    "retry": _retry,
    "delete": lambda call: lambda store, ids: delete_jobs(store, ids, by=call.by, correlation_id=call.correlation_id),
}


def _route(verb: str, handler: Any, form: type[msgspec.Struct], summary: str, example: dict[str, Any]) -> Route:
    return Route(
        method="POST",
        path=f"/jobs/{{job_id}}/{verb}",
        handler=handler,
        permission=Permission.SUBMIT,
        summary=summary,
        body=Body(form=form, required=False, examples={verb: example}),
        answers=[Answer(form=JobShape, words="The job as it is now.", example=JOB)],
        problems=[409],
    )


ROUTES = [
    Route(
        method="POST",
        path="/jobs/bulk",
        handler=bulk,
        permission=Permission.SUBMIT,
        audit=Audit.FIRST,
        told=["action", "filter", "dry_run"],
        summary="Cancel, retry or delete all jobs that match",
        description="Without a state in the filter, cancel means jobs that have not ended and retry those that failed; "
        "delete must be told. `dry_run: true` counts and does nothing.",
        body=Body(form=Bulk, examples={"count": {"action": "retry", "filter": {"queue": "mail"}, "dry_run": True}}),
        answers=[
            Answer(
                form=BulkAnswer,
                words="What came of it.",
                example={
                    "action": "retry",
                    "dry_run": True,
                    "matched": 12,
                    "done": 0,
                    "refused": 0,
                    "errors": [],
                },
            )
        ],
    ),
    _route("cancel", cancel, Reason, "Cancel a job", {"reason": "no longer needed"}),
    _route("retry", retry, Nothing, "Run an ended job again", {}),
    _route(
        "schedule", schedule, When, "Let a job on hold go, or give it another time", {"run_at": "2030-01-31T06:00:00Z"}
    ),
]
