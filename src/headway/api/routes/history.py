"""What queues did over the last hour, day or week, for charts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.responses import Response

from headway.api.call import Call, answer
from headway.api.table import Answer, Route
from headway.model.access import Permission
from headway.model.history import PERIODS, Figures, Row, floor, gathered


class HistoryQuery(msgspec.Struct, frozen=True):
    """Which part of the past."""

    period: Annotated[
        Literal["hour", "day", "week"],
        Meta(description="the last hour in steps of a minute, day (15 minutes) or week (2 hours)"),
    ] = "hour"
    queue: Annotated[str | None, Meta(description="only this queue")] = None


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One step. Durations are seconds, as near as a histogram tells; null where nothing was seen."""

    at: datetime
    completed: int
    failed: int
    cancelled: int
    retried: int
    wait_p50: float | None
    wait_p95: float | None
    run_p50: float | None
    run_p95: float | None
    due: int | None
    running: int | None
    oldest_due: float | None


class QueueHistory(msgspec.Struct, frozen=True):
    """One queue, oldest step first; steps in which nothing was seen are there too."""

    queue: str
    points: list[Point]


class History(msgspec.Struct, frozen=True):
    """All queues of which there is something to tell, by name, and all of them together."""

    period: str
    step: float
    since: datetime
    until: datetime
    total: list[Point]
    queues: list[QueueHistory]


async def history(call: Call) -> Response:
    period = PERIODS[call.query.period]
    now = await call.store(lambda store: store.now())
    # The step under way is not told: it would look like a slump.
    until = floor(now, period.step)
    since = until - period.length
    rows = await call.store(lambda store: store.figures(since, call.query.queue))
    rows = [row for row in rows if row.at < until]
    steps = [since + number * period.step for number in range(int(period.length / period.step))]
    return answer(
        History(
            period=call.query.period,
            step=period.step.total_seconds(),
            since=since,
            until=until,
            total=_points([Row(row.at, "", row.figures) for row in rows], steps, call.query.period),
            queues=[
                QueueHistory(queue, _points([row for row in rows if row.queue == queue], steps, call.query.period))
                for queue in sorted({row.queue for row in rows})
            ],
        )
    )


def _points(rows: list[Row], steps: list[datetime], period: str) -> list[Point]:
    found = {row.at: row.figures for row in gathered(rows, PERIODS[period].step)}
    return [_point(at, found.get(at) or Figures()) for at in steps]


def _point(at: datetime, figures: Figures) -> Point:
    return Point(
        at=at,
        completed=figures.completed,
        failed=figures.failed,
        cancelled=figures.cancelled,
        retried=figures.retried,
        wait_p50=figures.wait.quantile(0.5),
        wait_p95=figures.wait.quantile(0.95),
        run_p50=figures.run.quantile(0.5),
        run_p95=figures.run.quantile(0.95),
        due=figures.due,
        running=figures.running,
        oldest_due=figures.oldest_due,
    )


_POINT: dict[str, Any] = {
    "at": "2030-01-31T06:00:00Z",
    "completed": 1200,
    "failed": 3,
    "cancelled": 0,
    "retried": 7,
    "wait_p50": 0.004,
    "wait_p95": 0.021,
    "run_p50": 0.13,
    "run_p95": 0.42,
    "due": 15,
    "running": 8,
    "oldest_due": 0.6,
}

ROUTES = [
    Route(
        method="GET",
        path="/stats/history",
        handler=history,
        permission=Permission.READ,
        summary="What queues did over the last hour, day or week",
        description="Written down once a minute: the latest step is at most two minutes old. Jobs count where a worker "
        "ended them; the backlog is the most that was seen in a step.",
        tag="Queues",
        query=HistoryQuery,
        answers=[
            Answer(
                form=History,
                words="The steps, oldest first.",
                example={
                    "period": "hour",
                    "step": 60.0,
                    "since": "2030-01-31T06:00:00Z",
                    "until": "2030-01-31T07:00:00Z",
                    "total": [_POINT],
                    "queues": [{"queue": "mail", "points": [_POINT]}],
                },
            )
        ],
    )
]
