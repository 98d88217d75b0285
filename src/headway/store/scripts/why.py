"""The facts behind the question why a job is not running, read at one moment. What they mean: `model/why.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from headway.model.facts import AHEAD_LIMIT, Facts, FullLimit, Other
from headway.model.job import Change, JobRecord
from headway.model.limits import Limit
from headway.model.states import PARENT_FAILED, State
from headway.model.why import Why, explain
from headway.store.scripts import settings, views
from headway.store.scripts.gates import Gate, Limits, parse_gate, queue_gate
from headway.store.scripts.overview import pauses, workers_now
from headway.store.statements import Row, Script, many, one

HOLDERS = 5
"""How many of those who fill a limit are named."""


class _Called(msgspec.Struct):
    """The part of a call's payload that is asked for here."""

    function: str


def why(job_id: UUID) -> Script[Why | None]:
    """Why the job is not running now; None when there is no such job."""
    found = yield from facts(job_id)
    return explain(found) if found else None


def facts(job_id: UUID) -> Script[Facts | None]:
    """All that bears on it."""
    yield one("still_view")
    rows = yield one("why_job", job_id=job_id)
    [job] = yield from views.get([job_id])
    if not rows or job is None:
        return None
    [row] = rows
    history = yield one("get_history", job_id=job_id)
    known = {} if job.state.terminal else (yield from _surroundings(job, row))
    return Facts(
        job=job,
        now=row["now_at"],
        worker=row["worker"],
        lease_until=row["lease_until_at"],
        doomed=bool(row["doomed"]),
        cancel=_cancel(history),
        snoozed=job.outcome is None and _acts(history)[-1:] == ["snooze"],
        **known,
    )


def _surroundings(job: JobRecord, row: Row) -> Script[dict[str, Any]]:
    """What holds a job back that has not ended: its queue, its workers, others before it, limits."""
    paused = yield from pauses()
    workers = yield from workers_now()
    function = _function(job)
    announced = (yield one("why_function", name=function)) if function else []
    return {
        "pause": paused.get(job.queue),
        "workers": tuple(worker for worker in workers if job.queue in worker.info.queues),
        "function": function,
        "announced": announced[0]["announced_at"] if announced else None,
        **(yield from _line(job, row)),
    }


def _line(job: JobRecord, row: Row) -> Script[dict[str, Any]]:
    if job.state is State.BLOCKED:
        failed = job.wait_reason == PARENT_FAILED
        others = yield one("why_failed_parents" if failed else "why_waits_for", job_id=job.id)
        return {
            "waits_for": _others(others),
            "full": (yield from _full(job, row, [row["gate"]] if row["gate"] else [])),
        }
    if job.state is State.SCHEDULED and job.run_at <= row["now_at"]:
        place = _place(job, row)
        [ahead] = yield one("why_ahead", queue=job.queue, limit=AHEAD_LIMIT, **place)
        return {"ahead": ahead["ahead"], "full": (yield from _full(job, row))}
    return {}


def _full(job: JobRecord, row: Row, at: Sequence[str] | None = None) -> Script[tuple[FullLimit, ...]]:
    """The limits that let the job not pass now: of all it has to pass, or of those it stands at."""
    limits = yield from settings.limits()
    asked = {gate: limits.of_gate(gate) for gate in at} if at is not None else _gates(limits, job)
    states = (
        {state["name"]: state for state in (yield many("read_gates", [(name,) for name in asked]))} if asked else {}
    )
    found: list[FullLimit] = []
    for name, limit in asked.items():
        gate = Gate(limit, states[name]) if name in states else None
        if gate is not None and gate.room == 0:
            found.append((yield from _described(name, limit, gate, states[name]["running"], _place(job, row))))
    return tuple(found)


def _gates(limits: Limits, job: JobRecord) -> dict[str, Limit]:
    return {queue_gate(job.queue): limits.of_queue(job.queue), **limits.gates_of(job.queue, job.key)}


def _described(name: str, limit: Limit, gate: Gate, running: int, place: dict[str, Any]) -> Script[FullLimit]:
    queue, key = parse_gate(name)
    where = " in ".join([*([f"the key {key}"] if key else []), *([f"the queue {queue}"] if queue else [])])
    holders = yield one("why_holders", gate=name, limit=HOLDERS)
    [line] = yield one("why_line", gate=name, limit=AHEAD_LIMIT, **place)
    return FullLimit(
        place=where,
        limit=limit,
        running=running,
        opens_in=gate.opens_in,
        holders=_others(holders),
        before=line["ahead"],
    )


def _place(job: JobRecord, row: Row) -> dict[str, Any]:
    """Where the job stands in an order by (rank, run_at, id)."""
    return {"rank": row["rank"], "run_at": job.run_at, "job_id": job.id}


def _acts(history: Sequence[Row]) -> list[str]:
    """What was done to the job, without the states it went through."""
    return [line["what"] for line in history if line["what"] not in set(State)]


def _cancel(history: Sequence[Row]) -> Change | None:
    asked = [line for line in history if line["what"] == "cancel"]
    if not asked:
        return None
    last = asked[-1]
    return Change(at=last["change_at"], what="cancel", by=last["by"], detail=last["detail"])


def _function(job: JobRecord) -> str | None:
    if job.kind != "call":
        return None
    try:
        return msgspec.json.decode(job.payload, type=_Called).function
    except msgspec.MsgspecError:
        return None


def _others(rows: Sequence[Row]) -> tuple[Other, ...]:
    return tuple(Other(row["id"], row["name"], State(row["state"]) if row["state"] else None) for row in rows)
