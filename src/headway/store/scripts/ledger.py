"""The ledger: what became of each nominal time of a schedule. One line per job, one per range of times without."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

import msgspec

from headway.model.due import Due, SkipReason
from headway.model.schedule import MOMENT, Schedule
from headway.model.submission import Accepted, Submission
from headway.store.scripts.rows import ids
from headway.store.scripts.submit import Answer
from headway.store.statements import Row, Script, many

OVERLAP = "overlap"
"""The reason of a skip: the job of an earlier time had not ended."""
CHANGED = "changed"
"""The reason of a skip: the timetable was changed before anybody had fired them."""
DUPLICATE = "duplicate"
"""The reason of a skip: within the window of de-duplication another job stands for it."""
ERROR = "error"
"""The reason of a skip: the job could not be stored; `detail` says why."""

_DETAILS = {
    SkipReason.MISSED: "no scheduler ran in time, and what is late is skipped (misfire: skip)",
    SkipReason.COALESCED: "no scheduler ran in time; the job of the last time stands for all (misfire: run_once)",
    SkipReason.LIMIT: "more at once than misfire_limit allows",
    SkipReason.PAUSED: None,
}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the ledger: an occurrence that became a job, or a range of them that did not, and why."""

    nominal_at: datetime
    until_at: datetime
    count: int = 1
    job_id: UUID | None = None
    reason: str | None = None
    detail: str | None = None


def record(lines: Sequence[tuple[UUID, list[Line]]]) -> Script[None]:
    """Into the ledger. A skip that goes on from the last line of its schedule makes that line longer."""
    firsts = [(key, own[0]) for key, own in lines if own and own[0].reason]
    folded: set[UUID] = set()
    if firsts:
        rows = [(key, n.nominal_at, n.until_at, n.count, n.reason, n.detail) for key, n in firsts]
        folded = {row["schedule_id"] for row in (yield many("fold_skips", rows))}
    rest = [(key, line) for key, own in lines for line in (own[1:] if key in folded else own)]
    if rest:
        yield many(
            "put_occurrences",
            [(key, n.nominal_at, n.until_at, n.count, n.job_id, n.reason, n.detail) for key, n in rest],
        )


def job_lines(jobs: Sequence[Submission], answers: dict[UUID, Answer]) -> list[Line]:
    """One for each job; those that came to nothing for the same reason are one."""
    made = [_job_line(job, answers[job.id]) for job in jobs]
    return made if len(made) < 2 else [_folded(list(alike)) for _, alike in groupby(made, key=_sort)]


def skip_lines(found: Due, schedule: Schedule, reason: str | None = None) -> list[Line]:
    """The line of what was skipped, if anything was."""
    gone = found.skipped
    if gone is None:
        return []
    detail = schedule.pause_reason if gone.reason is SkipReason.PAUSED else _DETAILS[gone.reason]
    return [
        Line(
            nominal_at=gone.first,
            until_at=gone.last,
            count=gone.count,
            reason=reason or gone.reason.value,
            detail=None if reason else detail,
        )
    ]


def forget_future(schedules: dict[UUID, Schedule], now: datetime) -> Script[None]:
    """The clock was set back: times that are still to come were not skipped, whatever has been recorded."""
    gone = yield many("drop_future_skips", ids(schedules))
    cut = [(row["schedule_id"], _cut(row, schedules[row["schedule_id"]], now)) for row in gone]
    kept = [(key, [line]) for key, line in cut if line is not None]
    if kept:
        yield from record(kept)


def _cut(row: Row, schedule: Schedule, now: datetime) -> Line | None:
    """The part of a range that has been."""
    if row["nominal_at"] > now:
        return None
    table, before = schedule.when.timetable(schedule.anchor), row["nominal_at"] - MOMENT
    return Line(
        nominal_at=row["nominal_at"],
        until_at=table.last(before, now) or row["nominal_at"],
        count=min(row["count"], max(table.count(before, now), 1)),
        reason=row["reason"],
        detail=row["detail"],
    )


def _job_line(job: Submission, answer: Answer) -> Line:
    at = job.nominal_at
    assert at is not None
    if not isinstance(answer, Accepted):
        return Line(nominal_at=at, until_at=at, reason=ERROR, detail=str(answer))
    if answer.overlapped:
        return Line(nominal_at=at, until_at=at, reason=OVERLAP, detail=f"job {answer.job_id} had not ended")
    if answer.job_id != job.id:
        return Line(nominal_at=at, until_at=at, reason=DUPLICATE, detail=f"job {answer.job_id} stands for it")
    return Line(nominal_at=at, until_at=at, job_id=job.id)


def _sort(line: Line) -> object:
    return line.job_id or (line.reason, line.detail)


def _folded(alike: list[Line]) -> Line:
    return msgspec.structs.replace(alike[0], until_at=alike[-1].until_at, count=len(alike))
