"""Jobs by filter, newest first, as fast for few among a million as for many.

1. Most filters match many jobs: look at the newest, or at those whose ids are of the time asked for.
2. If that fills no page, what is asked for is rare. Look where some condition says there are few: each way has an index
   or a ledger of its own, and says whether what it found is all there is.
3. If no condition by itself is rare, walk through everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from headway.model.filters import JobFilter
from headway.model.job import JobRecord
from headway.model.states import TERMINAL, Label, State
from headway.store.scripts.views import record
from headway.store.statements import Row, Script, one

GLANCE = 600
DEPTH = 3000
"""How many jobs are looked at on each way: a few milliseconds' worth."""
DEPTH_OF_ERRORS = 20_000
"""Texts of errors have no index. They are looked through one by one."""
ALL = 1 << 30
SLACK = timedelta(minutes=1)
"""How far the time in an id may be from when the job was stored. Jobs beyond that stand in an index of their own."""


def find(wanted: JobFilter) -> Script[list[JobRecord]]:
    """Jobs that match, newest first."""
    yield one("plan_afresh")
    given = _parameters(wanted)
    frame = yield from _frame(wanted)
    for way, depth in _ways(wanted):
        where = frame if way == "find_near" else {}
        page = _page((yield one(way, **given, **where, depth=depth)), given["limit"], depth)
        if page is not None:
            return [record(row) for row in page]
    if frame["lower_id"] is not None:
        rows = yield one("find_near", **given, **frame, depth=ALL)
        return [record(row) for row in rows if row["id"] is not None]
    return [record(row) for row in (yield one("find_jobs", **given))]


def _frame(wanted: JobFilter) -> Script[dict[str, Any]]:
    """Between which ids jobs of the time asked for are: a job ends after it was made, and runs then unless it was to
    wait. Nowhere in particular, if there are too many strays to look at them all."""
    dated = wanted.time in {"created", "run"}
    lower = _id_at(wanted.since - SLACK) if wanted.since and dated else None
    upper = _id_at(wanted.until + SLACK) if wanted.until else None
    if lower or upper:
        many = DEPTH + 1
        [found] = yield one("count_strays", time=wanted.time, since=wanted.since, until=wanted.until, strays=many)
        if found["strays"] < many:
            upper = min(filter(None, (upper, wanted.cursor)), default=None)
            return {"lower_id": lower, "upper_id": upper, "strays": many}
    return {"lower_id": None, "upper_id": wanted.cursor, "strays": 0}


def _page(rows: Sequence[Row], limit: int, depth: int) -> list[Row] | None:
    """What was found, if nothing newer can have been missed."""
    found = [row for row in rows if row["id"] is not None]
    if rows[0]["reach"] <= depth:
        return found
    known_from = rows[0]["last_id"]
    known = [row for row in found if known_from is not None and row["id"] >= known_from]
    return known if len(known) == limit else None


def _ways(wanted: JobFilter) -> Iterator[tuple[str, int]]:
    """Where to look, and at how many jobs: at few everywhere, then at more."""
    rare = list(_rare(wanted))
    for depth in (GLANCE, DEPTH):
        yield "find_near", depth
        for way in rare:
            yield way, DEPTH_OF_ERRORS if way == "find_erring" and depth == DEPTH else depth


def _rare(wanted: JobFilter) -> Iterator[str]:
    """Conditions that may tell where the few are, the likely narrowest first."""
    if wanted.schedule_id is not None:
        yield "find_of_schedule"
    if wanted.name is not None:
        yield "find_named"
    if wanted.name_prefix is not None:
        yield "find_prefixed"
    if wanted.queue is not None:
        yield "find_of_queue"
    if wanted.kind is not None:
        yield "find_of_kind"
    states, labelled = set(_states(wanted)), bool({state.lower() for state in wanted.states} & set(Label))
    if (states or labelled) and not states & TERMINAL:
        yield "find_open"
    if states and states <= TERMINAL and not labelled:
        yield "find_ended"
    if wanted.time == "finished" and (wanted.since or wanted.until):
        yield "find_finished"
    if wanted.error is not None:
        yield "find_erring"


def _id_at(moment: datetime) -> UUID:
    millisecond = int(moment.timestamp() * 1000)
    return UUID(int=min(max(millisecond, 0), (1 << 48) - 1) << 80)


def _states(wanted: JobFilter) -> list[State]:
    asked = {state.lower() for state in wanted.states}
    submitted = [State.CREATING, State.SCHEDULED] if Label.SUBMITTED in asked else []
    return [State(state) for state in sorted(asked & set(State))] + submitted


def _parameters(wanted: JobFilter) -> dict[str, Any]:
    asked = {state.lower() for state in wanted.states}
    return {
        "states": [str(state) for state in _states(wanted)] if asked else None,
        "pending": Label.PENDING in asked,
        "retrying": Label.RETRYING in asked,
        "parked": Label.PARKED in asked,
        "kind": wanted.kind,
        "queue": wanted.queue,
        "name": wanted.name,
        "name_prefix": wanted.name_prefix,
        "key": wanted.key,
        "tagged": list(wanted.tags) or None,
        "created_by": wanted.created_by,
        "schedule_id": wanted.schedule_id,
        "error_text": wanted.error,
        "time": wanted.time,
        "since": wanted.since,
        "until": wanted.until,
        "cursor": wanted.cursor,
        "limit": wanted.limit + wanted.one_more,
    }
