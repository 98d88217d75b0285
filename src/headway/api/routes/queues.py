"""Queues, workers, functions, and all at a glance."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from headway.api.call import Call, answer, tagged
from headway.api.examples import FUNCTION, QUEUE, STATS, WORKER
from headway.api.routes.jobs import IF_NONE_MATCH
from headway.api.shapes import QueueShape, WorkerShape, queue_shape, worker_shape
from headway.api.table import Answer, Body, Route, reading
from headway.kinds.body import Seconds
from headway.model.access import Permission
from headway.model.errors import InvalidRequest, NotFound
from headway.model.limits import QueueSettings, Rate
from headway.model.overview import QueueStats
from headway.model.submission import check_name
from headway.model.worker import FunctionInfo
from headway.store.contract import Store
from headway.store.scripts.fire import ScheduleStats

Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_RATE = 'starts in a time, such as "10/s", "100/m" or "5/10s"; null for no limit'


class QueuePage(msgspec.Struct, frozen=True):
    """All queues with open jobs, workers or settings, by name."""

    items: list[QueueShape]
    cursor: None = None


class WorkerPage(msgspec.Struct, frozen=True):
    """All workers, those gone silent too."""

    items: list[WorkerShape]
    cursor: None = None


class FunctionPage(msgspec.Struct, frozen=True):
    """All functions that workers have announced, by name."""

    items: list[FunctionInfo]
    cursor: None = None


class Limits(msgspec.Struct, kw_only=True):
    """Settings of a queue, for all workers; what isn't given stays as it is, null lifts a limit."""

    paused: Annotated[bool | UnsetType, Meta(description="true or false")] = UNSET
    max_running: Annotated[Count | UnsetType | None, Meta(description="jobs at once; null for no limit")] = UNSET
    rate: Annotated[str | UnsetType | None, Meta(description=_RATE)] = UNSET
    key_max_running: Annotated[Count | UnsetType | None, Meta(description="the same, of each key")] = UNSET
    key_rate: Annotated[str | UnsetType | None, Meta(description=_RATE)] = UNSET
    keep_completed: Annotated[
        Seconds | UnsetType | None, Meta(description="seconds for which completed jobs are kept; null: the usual time")
    ] = UNSET
    keep_failed: Annotated[Seconds | UnsetType | None, Meta(description="the same of failed and cancelled ones")] = (
        UNSET
    )


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that have not ended, of all queues."""

    waiting: int
    due: int
    running: int
    cancelling: int
    blocked: int
    on_hold: int


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Everything at a glance."""

    at: datetime
    jobs: Totals
    oldest_due: float | None
    queues: list[QueueShape]
    workers: int
    """Those that have been seen lately."""
    slots: int
    schedulers: int
    schedules: ScheduleStats


async def list_queues(call: Call) -> Response:
    return tagged(call, QueuePage([queue_shape(queue) for queue in await _queues(call)]))


async def show_queue(call: Call) -> Response:
    name = call.path("queue")
    found = [queue for queue in await _queues(call) if queue.name == name]
    if not found:
        raise NotFound(f"no queue {name!r} holds jobs, has settings or is served by a worker")
    return tagged(call, queue_shape(found[0]))


async def set_queue(call: Call) -> Response:
    asked: Limits = call.body
    changes = {name: value for name in asked.__struct_fields__ if (value := getattr(asked, name)) is not UNSET}
    if not changes:
        raise InvalidRequest(f"nothing to set is named: give some of {', '.join(asked.__struct_fields__)}")
    for name in ("rate", "key_rate"):
        if changes.get(name) is not None:
            changes[name] = Rate.parse(changes[name])
    return await _set(call, changes)


async def pause(call: Call) -> Response:
    return await _set(call, {"paused": True})


async def resume(call: Call) -> Response:
    return await _set(call, {"paused": False})


async def list_workers(call: Call) -> Response:
    found = await call.store(lambda store: store.worker_stats())
    return tagged(call, WorkerPage([worker_shape(worker) for worker in found]))


async def list_functions(call: Call) -> Response:
    return tagged(call, FunctionPage(await call.store(lambda store: store.functions())))


async def stats(call: Call) -> Response:
    return answer(await call.store(_stats))


async def _stats(store: Store) -> Stats:
    queues, workers = await store.queue_stats(), await store.worker_stats()
    serving = [worker.info for worker in workers if worker.alive and worker.info.queues]
    return Stats(
        at=await store.now(),
        jobs=Totals(**{name: sum(getattr(queue, name) for queue in queues) for name in Totals.__struct_fields__}),
        oldest_due=max((queue.oldest_due for queue in queues if queue.oldest_due is not None), default=None),
        queues=[queue_shape(queue) for queue in queues],
        workers=len(serving),
        slots=sum(worker.slots for worker in serving),
        schedulers=await store.schedulers(),
        schedules=await store.schedule_stats(),
    )


async def _set(call: Call, changes: dict[str, Any]) -> Response:
    name = call.path("queue")
    check_name("queue", name)
    settings = await call.store(lambda store: store.change_queue(name, changes, by=call.by))
    found = [queue for queue in await _queues(call) if queue.name == name]
    return answer(queue_shape(found[0] if found else _empty(settings)))


async def _queues(call: Call) -> list[QueueStats]:
    return await call.store(lambda store: store.queue_stats())


def _empty(settings: QueueSettings) -> QueueStats:
    return QueueStats(name=settings.name, settings=settings)


TAG = "Queues and workers"
_SAME = Answer(status=304, words="It is as you have it.")
_SHOWN = Answer(form=QueueShape, words="The queue as it is now.", example=QUEUE)


def _list(path: str, handler: Any, form: Any, summary: str, example: dict[str, Any]) -> Route:
    told = Answer(form=form, words="All of them.", example={"items": [example], "cursor": None})
    return reading(path, handler, summary, tag=TAG, answers=[told, _SAME], headers=IF_NONE_MATCH)


def _change(method: str, path: str, handler: Any, summary: str, body: Body | None = None) -> Route:
    return Route(
        method=method,
        path=path,
        handler=handler,
        permission=Permission.SUBMIT,
        summary=summary,
        tag=TAG,
        body=body,
        answers=[_SHOWN],
        problems=[422],
    )


ROUTES = [
    _list("/queues", list_queues, QueuePage, "All queues", QUEUE),
    reading(
        "/queues/{queue}",
        show_queue,
        "Look at a queue",
        tag=TAG,
        answers=[_SHOWN, _SAME],
        headers=IF_NONE_MATCH,
    ),
    _change(
        "PATCH",
        "/queues/{queue}",
        set_queue,
        "Set limits and retention of a queue",
        Body(form=Limits, examples={"limits": {"max_running": 10, "rate": "100/m"}}),
    ),
    _change("POST", "/queues/{queue}/pause", pause, "Start no more jobs of a queue"),
    _change("POST", "/queues/{queue}/resume", resume, "Start jobs of a paused queue again"),
    _list("/workers", list_workers, WorkerPage, "All workers", WORKER),
    _list("/functions", list_functions, FunctionPage, "All functions that workers have announced", FUNCTION),
    reading(
        "/stats",
        stats,
        "Everything at a glance",
        tag=TAG,
        answers=[Answer(form=Stats, words="Open jobs, queues, workers, schedules.", example=STATS)],
    ),
]
