"""Schedules: make, find, look at, change, pause, run, delete. Their jobs, their past and their future:
`timetables.py`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.responses import Response
from uuid_utils.compat import uuid7

from headway.api.call import Call, answer, nothing, tagged
from headway.api.examples import JOB, SCHEDULE, SCHEDULE_BODY
from headway.api.idempotency import KEY, named
from headway.api.masking import unmasked
from headway.api.routes.jobs import IF_MATCH, IF_NONE_MATCH
from headway.api.shapes import ScheduleShape, shape_of
from headway.api.table import API, Answer, Body, Route
from headway.api.tags import etag_of
from headway.components.create import run_schedule
from headway.components.shapes import JobShape, job_shape
from headway.components.status import get_job
from headway.kinds.bodies import fingerprint
from headway.model.access import Permission
from headway.model.errors import InvalidSchedule, VersionConflict
from headway.model.schedule import to_body
from headway.schedules import Drafting, changed_schedule, find_schedule, new_schedule
from headway.store.contract import Store
from headway.store.scripts.schedules import Draft, Found, ScheduleFilter, ScheduleRecord, Unreadable

TAG = "Schedules"
TRIES = 20
"""How often a change is begun anew because others have changed the schedule meanwhile."""
_VERSION = re.compile("[0-9]{1,18}")


class Finding(msgspec.Struct, kw_only=True):
    """Which schedules are meant. All conditions must hold."""

    name: Annotated[str | None, Meta(description="the name; nightly-* for all that begin with nightly-")] = None
    tag: Annotated[str | None, Meta(description="a tag")] = None
    paused: Annotated[bool | None, Meta(description="true or false")] = None
    source: Annotated[str | None, Meta(description="the app whose code declares them")] = None
    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="how many at most, from 1 to 1000")] = 50
    cursor: Annotated[str, Meta(description="the cursor of the page before")] = ""


class SchedulePage(msgspec.Struct, frozen=True):
    """Some of the schedules, by name; `cursor` asks for the next ones."""

    items: list[ScheduleShape]
    cursor: str | None


class PauseReason(msgspec.Struct):
    """Why."""

    reason: Annotated[Annotated[str, Meta(max_length=1000)] | None, Meta(description="a text for others")] = None


async def create(call: Call) -> Response:
    body = new_schedule(_meant(call.body, {}), await call.store(lambda store: store.now()))
    if (own_id := await named(call, "schedule", lambda store, ids: store.schedules(ids))) is not None:
        body = msgspec.structs.replace(body, id=own_id)
    draft, warnings = await _drafted(call, body)
    draft = _signed(draft, call.body)
    made = await call.store(lambda store: store.create_schedule(draft, by=call.by))
    return _tagged(call, made, 201, warnings, {"Location": f"{API}/schedules/{made.id}"})


async def find(call: Call) -> Response:
    asked: Finding = call.query
    prefix = asked.name.removesuffix("*") if asked.name and asked.name.endswith("*") else None
    wanted = ScheduleFilter(
        name=None if prefix is not None else asked.name,
        name_prefix=prefix,
        tag=asked.tag,
        paused=asked.paused,
        source=asked.source,
        cursor=asked.cursor,
        limit=asked.limit + 1,
    )
    found = await call.store(lambda store: store.find_schedules(wanted))
    page = found[: asked.limit]
    cursor = page[-1].name if len(found) > asked.limit else None
    return tagged(call, SchedulePage([shape_of(each) for each in page], cursor))


async def show(call: Call) -> Response:
    return _tagged(call, await any_schedule(call))


async def replace(call: Call) -> Response:
    return await _change(call, lambda before: call.body)


async def change(call: Call) -> Response:
    """Fields that are given replace those that are there; null takes one away."""
    return await _change(call, lambda before: _merged(to_body(before.schedule), call.body))


async def delete(call: Call) -> Response:
    found, expected = await _permitted(call), _expected(call)
    await call.store(lambda store: store.delete_schedule(found.id, expected))
    return nothing()


async def pause(call: Call) -> Response:
    return await _move(call, lambda store, key: store.pause_schedule(key, by=call.by, reason=call.body.reason))


async def resume(call: Call) -> Response:
    return await _move(call, lambda store, key: store.resume_schedule(key, by=call.by))


async def run(call: Call) -> Response:
    """One job at once, beside the timetable."""
    found = await schedule_of(call)
    call.permit(found.template)
    job_id = await named(call, f"run {found.id}") or uuid7()
    verdict = await call.store(lambda store: run_schedule(store, found.id, job_id, by=call.by))
    job = await call.store(lambda store: get_job(store, verdict.job_id))
    shape = job_shape(job, warnings=verdict.warnings, deduplicated=verdict.deduplicated)
    return answer(shape, 200 if verdict.earlier else 201, {"Location": f"{API}/jobs/{job.id}"})


async def _change(call: Call, asked: Callable[[ScheduleRecord], Mapping[str, Any]]) -> Response:
    """Only as it was seen: by the caller, who is told if it has changed since, or else by us, who look again."""
    expected = _expected(call)
    for left in reversed(range(TRIES)):
        before = await schedule_of(call)
        try:
            return await _changed(call, asked(before), before, before.version if expected is None else expected)
        except VersionConflict:
            if expected is not None or not left:
                raise
    raise AssertionError("there is no try left after the last")


async def _changed(call: Call, body: Mapping[str, Any], before: ScheduleRecord, version: int) -> Response:
    meant = _meant(body, to_body(before.schedule)["job"])
    draft, warnings = await _drafted(call, changed_schedule(before.schedule, meant))
    changed = await call.store(lambda store: store.change_schedule(draft, version, by=call.by))
    call.done = {"changed": _differences(to_body(before.schedule), to_body(changed.schedule))}
    return _tagged(call, changed, 200, warnings)


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Before and after of each field that is another now; of the job only that it is: it may hold what not everybody
    should read."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: [] if name == "job" else [before.get(name), after.get(name)] for name in names}


def _merged(stored: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    body = {name: value for name, value in stored.items() if value is not None}
    if "schedule" in changes:
        # Where and how clocks jump was said of the old timetable.
        body = {name: value for name, value in body.items() if name not in {"gap", "fold"}}
    if changes.get("paused") is False:
        body.pop("pause_reason", None)
    return {**body, **changes}


def _signed(draft: Draft, body: Mapping[str, Any]) -> Draft:
    """With what tells a repeat of this body. That of its job was made without the credentials in it."""
    job = draft.template.fingerprint or b""
    said = fingerprint({**body, "job": job.hex()}).hex()
    return msgspec.structs.replace(draft, schedule=msgspec.structs.replace(draft.schedule, fingerprint=said))


def _meant(body: Mapping[str, Any], stored: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**body, "job": unmasked(body["job"], stored)} if "job" in body else body


async def _drafted(call: Call, schedule: Any) -> tuple[Draft, tuple[str, ...]]:
    drafting = Drafting(call.service.bodies, call.service.functions)
    draft, warnings = await drafting.draft(schedule, exposed=not call.origin.secure)
    call.permit(draft.template)
    return draft, warnings


async def _move(call: Call, act: Callable[[Store, UUID], Awaitable[ScheduleRecord]]) -> Response:
    found = await _permitted(call)
    return _tagged(call, await call.store(lambda store: act(store, found.id)))


async def _permitted(call: Call) -> Found:
    """The schedule of the path, to be acted on by whoever may submit the jobs that it makes."""
    found = await any_schedule(call)
    if isinstance(found, ScheduleRecord):
        call.permit(found.template)
    return found


async def schedule_of(call: Call) -> ScheduleRecord:
    """The schedule of the path, by id or by name. Raises NotFound, InvalidSchedule."""
    return await call.store(lambda store: find_schedule(store, call.path("schedule")))


async def any_schedule(call: Call) -> Found:
    """The same, also one that this code can't read."""
    try:
        return await schedule_of(call)
    except InvalidSchedule:
        found = await call.store(
            lambda store: store.find_schedules(ScheduleFilter(name=call.path("schedule"), limit=1))
        )
        unreadable = [each for each in found if isinstance(each, Unreadable)]
        if not unreadable:
            raise
        return unreadable[0]


def _expected(call: Call) -> int | None:
    """The version that the caller has seen; it is the first part of the ETag."""
    given = call.header("if-match")
    if given is None or given.strip() == "*":
        return None
    version = given.strip().strip('"').partition("-")[0]
    if not _VERSION.fullmatch(version):
        raise VersionConflict(call.path("schedule"), None)
    return int(version)


def _tagged(
    call: Call,
    found: Found,
    status: int = 200,
    warnings: tuple[str, ...] = (),
    headers: dict[str, str] | None = None,
) -> Response:
    shape = shape_of(found, warnings)
    version = found.version if isinstance(found, ScheduleRecord) else 0
    tag = f'"{version}-{etag_of(msgspec.json.encode(shape))[1:]}'
    if call.request.method in {"GET", "HEAD"}:
        return tagged(call, shape, tag)
    return answer(shape, status, {**(headers or {}), "ETag": tag})


_SHOWN = Answer(form=ScheduleShape, words="The schedule as it is now.", example=SCHEDULE)
SAME = Answer(status=304, words="It is as you have it.")
_BODY = Body(schema="ScheduleBody", examples={"callback": SCHEDULE_BODY})


def route(method: str, path: str, handler: Any, summary: str, **rest: Any) -> Route:
    """One below `/schedules`."""
    permission = Permission.READ if method == "GET" else Permission.SUBMIT
    return Route(
        method=method,
        path=f"/schedules{path}",
        handler=handler,
        summary=summary,
        tag=TAG,
        **{"permission": permission, "answers": [_SHOWN], **rest},
    )


ROUTES = [
    route(
        "POST",
        "",
        create,
        "Make a schedule",
        body=_BODY,
        answers=[Answer(status=201, form=ScheduleShape, words="The new schedule.", example=SCHEDULE)],
        problems=[409],
        headers=KEY,
    ),
    route(
        "GET",
        "",
        find,
        "Find schedules, by name",
        query=Finding,
        answers=[
            Answer(form=SchedulePage, words="A page of schedules.", example={"items": [SCHEDULE], "cursor": None}),
            SAME,
        ],
        headers=IF_NONE_MATCH,
    ),
    route(
        "GET", "/{schedule}", show, "Look at a schedule, by id or name", answers=[_SHOWN, SAME], headers=IF_NONE_MATCH
    ),
    route(
        "PUT",
        "/{schedule}",
        replace,
        "Replace a schedule",
        body=_BODY,
        problems=[409, 412],
        headers=IF_MATCH,
    ),
    route(
        "PATCH",
        "/{schedule}",
        change,
        "Change some fields of a schedule",
        body=Body(schema="ScheduleChanges", examples={"later": {"schedule": "30 6 * * *"}}),
        problems=[409, 412],
        headers=IF_MATCH,
    ),
    route(
        "DELETE",
        "/{schedule}",
        delete,
        "Delete a schedule with its ledger; its jobs stay",
        answers=[Answer(status=204, words="It is gone.")],
        problems=[412],
        headers=IF_MATCH,
    ),
    route(
        "POST",
        "/{schedule}/pause",
        pause,
        "Fire no more until it is resumed",
        body=Body(form=PauseReason, required=False, examples={"why": {"reason": "maintenance"}}),
    ),
    route("POST", "/{schedule}/resume", resume, "Go on from now"),
    route(
        "POST",
        "/{schedule}/run",
        run,
        "Make one job of it at once",
        answers=[
            Answer(status=201, form=JobShape, words="The new job.", example=JOB),
            Answer(form=JobShape, words="The earlier job that stands for it.", example=JOB),
        ],
        problems=[409],
        headers=KEY,
    ),
]
