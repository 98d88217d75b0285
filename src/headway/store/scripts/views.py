"""What people and programs look at: jobs, their history, results, workers, functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

import msgspec

from headway.model.errors import HeadwayError
from headway.model.job import Attempt, Change, Chunk, ChunkSize, ErrorInfo, JobRecord, Progress
from headway.model.result import ResultMeta, Stored
from headway.model.retry import Retry
from headway.model.states import TERMINAL, Outcome, State, label
from headway.model.submission import OnParentFailure
from headway.model.worker import FunctionInfo, WorkerInfo
from headway.observe.logs import get_logger
from headway.store.scripts.rows import ids
from headway.store.statements import Row, Script, many, one

log = get_logger("headway.store")


def get(job_ids: Sequence[UUID]) -> Script[list[JobRecord | None]]:
    """The jobs in the order asked for; None for one that isn't there."""
    found = {row["id"]: row for row in (yield many("get_jobs", ids(job_ids)))}
    return [record(found[job_id]) if job_id in found else None for job_id in job_ids]


def attempts(job_id: UUID) -> Script[list[Attempt]]:
    """All attempts, the current or last one last."""
    earlier = [_attempt(row["number"], row) for row in (yield one("get_attempts", job_id=job_id))]
    [job] = (yield many("get_jobs", ids([job_id]))) or [None]
    if job is not None and job["attempt"] > len(earlier):
        earlier.append(_attempt(job["attempt"], job))
    return earlier


def children(job_id: UUID, limit: int) -> Script[list[UUID]]:
    """Jobs that were asked to run after this one, the earliest first."""
    return [row["id"] for row in (yield one("get_children", job_id=job_id, limit=limit))]


def history(job_id: UUID) -> Script[list[Change]]:
    """The job's life with time stamps, in order: what its columns, its attempts and its history rows tell."""
    [job] = (yield many("get_jobs", ids([job_id]))) or [None]
    if job is None:
        return []
    archived = [_attempt(row["number"], row) for row in (yield one("get_attempts", job_id=job_id))]
    lines = yield one("get_history", job_id=job_id)
    changes = _beginning(job, lines)
    changes += [change for attempt in archived for change in _tried(attempt, _endings(lines))]
    if job["claimed_at"] and job["attempt"] > len(archived):
        changes.append(_change(job["claimed_at"], State.RUNNING, detail=f"attempt {job['attempt']}"))
    changes += [_change(row["change_at"], row["what"], row["by"], row["detail"]) for row in lines]
    if State(job["state"]).terminal:
        changes.append(_change(job["finished_at"], job["state"], detail=_message(job)))
    return sorted(changes, key=lambda change: change.at)


def result(job_id: UUID) -> Script[Stored | None]:
    """The result as stored; None when the job has none."""
    rows = yield one("get_result", job_id=job_id)
    return Stored(**_described(rows[0]), data=rows[0]["data"]) if rows else None


def result_metas(job_ids: Sequence[UUID]) -> Script[dict[UUID, ResultMeta]]:
    """What is known of the results of these jobs, without their content; jobs without a result are left out."""
    rows = yield many("get_result_metas", ids(job_ids))
    return {row["job_id"]: ResultMeta(**_described(row)) for row in rows}


def latest_result_of(source: str) -> Script[tuple[UUID, ResultMeta] | None]:
    """The job that last brought the content of this source, and what is known of it."""
    rows = yield one("latest_result_of", source=source)
    return (rows[0]["job_id"], ResultMeta(**_described(rows[0]))) if rows else None


def _described(row: Row) -> dict[str, Any]:
    meta = msgspec.json.decode(row["meta"]) if row["meta"] else {}
    return {"content_type": row["content_type"], "size": row["size"], "meta": meta}


def chunks(job_id: UUID, attempt: int, stream: str | None, after_seq: int, limit: int) -> Script[list[Chunk]]:
    """The next pieces of output behind `after_seq`."""
    rows = yield one("get_chunks", job_id=job_id, attempt=attempt, stream=stream, after_seq=after_seq, limit=limit)
    return [Chunk(seq=row["seq"], stream=row["stream"], data=row["data"], at=row["stored_at"]) for row in rows]


def chunk_sizes(job_id: UUID, attempt: int) -> Script[list[ChunkSize]]:
    """What there is of an attempt's output, without the output itself."""
    rows = yield one("get_chunk_sizes", job_id=job_id, attempt=attempt)
    return [ChunkSize(seq=row["seq"], stream=row["stream"], size=row["size"]) for row in rows]


def open_job(key: str) -> Script[UUID | None]:
    """Any job of this key that has not ended."""
    for row in (yield many("one_open", [(key,)])):
        return UUID(str(row["id"]))
    return None


def ahead(job: JobRecord, limit: int) -> Script[int | None]:
    """How many due jobs of its queue come before a job that is due; None: more than `limit`, or it isn't in line."""
    if job.state is not State.SCHEDULED or job.label == State.SCHEDULED:
        return None
    [row] = yield one(
        "why_ahead", queue=job.queue, rank=-job.priority, run_at=job.run_at, job_id=job.id, limit=limit + 1
    )
    number: int = row["ahead"]
    return number if number <= limit else None


def workers() -> Script[list[WorkerInfo]]:
    rows = yield one("get_workers")
    return [
        WorkerInfo(
            id=row["id"],
            name=row["name"],
            host=row["host"],
            pid=row["pid"],
            queues=tuple(_json(row["queues"])),
            slots=row["slots"],
            fires=bool(row["fires"]),
            code_version=row["code_version"],
            started_at=row["started_at"],
            seen_at=row["seen_at"],
        )
        for row in rows
    ]


def announce(functions: Sequence[FunctionInfo]) -> Script[None]:
    """Let other processes know what this code can run. What they know already is not written again: many workers start
    at once, and would wait for each other."""
    known = {tuple(row)[:5] for row in (yield one("get_functions"))} if functions else set()
    rows = [(f.name, f.queue, _text(f.defaults), _text(f.parameters), f.code_version) for f in functions]
    news = sorted((row for row in rows if row not in known), key=itemgetter(0))
    if news:
        yield many("put_function", news)


def functions() -> Script[list[FunctionInfo]]:
    rows = yield one("get_functions")
    return [
        FunctionInfo(
            name=row["name"],
            queue=row["queue"],
            defaults=_json(row["defaults"]),
            parameters=_json(row["parameters"]),
            code_version=row["code_version"],
            announced_at=row["announced_at"],
        )
        for row in rows
    ]


def counts() -> Script[dict[str, dict[State, int]]]:
    """How many jobs of each queue are in each state. Reads every row: for tests; to look at queues, see `overview`."""
    table: dict[str, dict[State, int]] = {}
    for row in (yield one("count_states")):
        table.setdefault(row["queue"], {})[State(row["state"])] = row["jobs"]
    return table


def record(row: Row) -> JobRecord:
    """A row of `get_jobs` or of a list as a record."""
    state = State(row["state"])
    return JobRecord(
        id=row["id"],
        kind=row["kind"],
        name=row["name"],
        key=row["key"],
        queue=row["queue"],
        priority=-row["rank"],
        state=state,
        label=label(state, due=bool(row["due"]), failures=row["failures"], wait_reason=row["wait_reason"]),
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        payload=row["payload"],
        desired_at=row["desired_at"],
        run_at=row["run_at"],
        created_at=row["created_at"],
        claimed_at=row["claimed_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        expires_at=row["expires_at"],
        attempt=row["attempt"],
        failures=row["failures"],
        losses=row["losses"],
        token=row["token"],
        timeout=row["timeout"],
        retry=_read(row, "retry", Retry),
        error=_read(row, "error", ErrorInfo),
        progress=_read(row, "progress", Progress),
        wait_reason=row["wait_reason"],
        hold=bool(row["hold"]),
        on_parent_failure=OnParentFailure(row["on_parent_failure"]),
        tags=_read(row, "tags", tuple[str, ...]) or (),
        metadata=_read(row, "metadata", dict[str, Any]),
        created_by=row["created_by"],
        correlation_id=row["correlation_id"],
        traceparent=row["traceparent"],
        code_version=row["code_version"],
        worker=str(row["worker_id"]) if row["worker_id"] else None,
        after=_read(row, "after", tuple[UUID, ...]) or (),
        schedule_id=row["schedule_id"],
        nominal_at=row["nominal_at"],
    )


def _attempt(number: int, row: Row) -> Attempt:
    return Attempt(
        number=number,
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        error=_decode(row["error"], ErrorInfo),
        claimed_at=row["claimed_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        worker=str(row["worker_id"]) if row["worker_id"] else None,
    )


def _beginning(job: Row, lines: Sequence[Row]) -> list[Change]:
    """The state in which the job was stored, unless the first line tells it: that of a job that had to wait does."""
    told = next((row for row in lines if row["what"] in set(State)), None)
    if told is not None and told["what"] in {State.CREATING, State.BLOCKED} and not _at_limit(told):
        return []
    # What goes to `scheduled` first and was not blocked had been on hold.
    held = job["hold"] or (told is not None and told["what"] == State.SCHEDULED)
    return [_change(job["created_at"], State.CREATING if held else State.SCHEDULED, by=job["created_by"])]


def _at_limit(line: Row) -> bool:
    return (line["detail"] or "").startswith("limit")


def _endings(lines: Sequence[Row]) -> set[datetime]:
    """When the job had ended, before a person's retry took it up again."""
    return {row["change_at"] for row in lines if row["what"] in TERMINAL}


def _tried(attempt: Attempt, endings: set[datetime]) -> list[Change]:
    """An earlier attempt: it ran, and went back to wait, unless the job ended with it."""
    changes = []
    if attempt.claimed_at:
        changes.append(_change(attempt.claimed_at, State.RUNNING, detail=f"attempt {attempt.number}"))
    if attempt.finished_at and attempt.finished_at not in endings:
        message = attempt.error.message if attempt.error else None
        changes.append(_change(attempt.finished_at, State.SCHEDULED, detail=f"{attempt.outcome}: {message}"))
    return changes


def _change(at: datetime, what: str, by: str | None = None, detail: str | None = None) -> Change:
    return Change(at=at, what=str(what), by=by, detail=detail)


def _message(job: Row) -> str | None:
    error = _decode(job["error"], ErrorInfo)
    return f"{job['outcome']}: {error.message}" if error else job["outcome"]


def _json(text: str | None) -> Any:
    return msgspec.json.decode(text) if text is not None else None


def _read(row: Row, column: str, kind: Any) -> Any:
    """What a job's column holds; None, and a word about it, where that can't be read: one bad row hides no others."""
    try:
        return _decode(row[column], kind)
    except (msgspec.MsgspecError, HeadwayError, ValueError) as error:
        log.warning("job.unreadable", job_id=str(row["id"]), name=row["name"], column=column, error=str(error))
        return None


def _decode(text: str | None, kind: Any) -> Any:
    return msgspec.json.decode(text, type=kind) if text is not None else None


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
