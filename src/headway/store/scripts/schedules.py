"""Schedules kept: made, changed, paused, run by hand, removed. Those that code declares are in `declare.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from headway.model.due import Standing, Tick, due
from headway.model.errors import IdTaken, InvalidSchedule, KeyBusy, NameTaken, ScheduleNotFound, VersionConflict
from headway.model.job import encode
from headway.model.schedule import Schedule, to_body
from headway.model.submission import Submission
from headway.store.scripts import fire, ledger, submit, vault
from headway.store.scripts.fire import read_schedule, read_template
from headway.store.scripts.ledger import Line
from headway.store.scripts.rows import ids
from headway.store.scripts.walk import NO_ID
from headway.store.statements import Row, Script, many, one

COUNTED = 100_000
"""Lines of a ledger that are counted for a calendar, the latest: two months of a schedule that fires every minute."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule to be stored, and the job it is to make. Jobs get ids of their own: that of the template is none."""

    schedule: Schedule
    template: Submission

    def template_text(self) -> str:
        return encode(msgspec.structs.replace(vault.bare(self.template), id=NO_ID))


class ScheduleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule, the job it makes, and where it stands. `version` grows with every change of it."""

    schedule: Schedule
    template: Submission
    next_at: datetime | None
    """Its next nominal time; None: it can't fire again."""
    last_at: datetime | None
    """The latest nominal time that something was decided about."""
    version: int
    source: str | None
    """The app whose code declares it."""
    updated_at: datetime
    updated_by: str | None

    @property
    def id(self) -> UUID:
        return self.schedule.id

    @property
    def name(self) -> str:
        return self.schedule.name

    @property
    def paused(self) -> bool:
        return self.schedule.paused

    @property
    def ended(self) -> bool:
        """It can't fire again."""
        return self.next_at is None


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that this code can't read: newer code wrote it, or a time zone is no more. It doesn't fire."""

    id: UUID
    name: str
    problem: str


Found = ScheduleRecord | Unreadable


class ScheduleFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which schedules are meant; listed by name, `cursor` is the name after which to go on."""

    name: str | None = None
    name_prefix: str | None = None
    tag: str | None = None
    paused: bool | None = None
    source: str | None = None
    cursor: str = ""
    limit: int = 50


def create(draft: Draft, *, by: str | None, source: str | None = None) -> Script[ScheduleRecord]:
    """A new schedule, from the store's present on; a repeat finds the one that was made. Raises NameTaken, IdTaken."""
    [clock] = yield one("store_time")
    schedule = msgspec.structs.replace(draft.schedule, created_at=clock["now_at"])
    next_at = schedule.opening()
    yield from hold(f"schedule {schedule.name}")
    made = yield one(
        "insert_schedule",
        id=schedule.id,
        name=schedule.name,
        record=encode(schedule),
        template=draft.template_text(),
        next_at=next_at,
        due_at=None if schedule.paused else next_at,
        source=source,
        declared=as_text(to_body(schedule)) if source else None,
        by=by,
    )
    if not made:
        return (yield from _repeated(schedule))
    if draft.template.attachments:
        yield from vault.reattach(schedule.id, draft.template.attachments)
    yield one("wake", wake=[fire.CHANNEL])
    return (yield from _get(schedule.id))


def _repeated(schedule: Schedule) -> Script[ScheduleRecord]:
    """The schedule of this id as it is now: what it uses was attached when it was made."""
    [found] = yield from get([schedule.id])
    if found is None:
        raise NameTaken(schedule.name)
    if not isinstance(found, ScheduleRecord) or found.schedule.fingerprint != schedule.fingerprint:
        raise IdTaken(schedule.id, "schedule")
    return found


def change(draft: Draft, version: int | None, *, by: str | None) -> Script[ScheduleRecord]:
    """Replace a schedule by another form of itself. Raises VersionConflict if it is no longer the one that the caller
    saw, NameTaken if it is given the name of another, InvalidSchedule if its new times are all in the past."""
    row, schedule = (yield from _lock(draft.schedule.id)), draft.schedule
    _require_version(row, version)
    if schedule.name != row["name"]:
        yield from _take_name(row, schedule.name)
    old = readable(row)
    if old is None or _times(old) != _times(schedule):
        _refuse_ended(schedule, row["now_at"])
    yield from put(row, draft, by=by)
    return (yield from _get(schedule.id))


def pause(schedule_id: UUID, *, by: str | None, reason: str | None) -> Script[ScheduleRecord]:
    row = yield from _lock(schedule_id)
    yield from put_changed(row, by=by, paused=True, pause_reason=reason)
    return (yield from _get(schedule_id))


def resume(schedule_id: UUID, *, by: str | None) -> Script[ScheduleRecord]:
    """Go on from now; what was missed meanwhile is told as one skip."""
    row = yield from _lock(schedule_id)
    yield from put_changed(row, by=by, paused=False, pause_reason=None)
    return (yield from _get(schedule_id))


def run_now(schedule_id: UUID, job_id: UUID, *, by: str | None) -> Script[submit.Answer]:
    """One job of the schedule at once, beside its timetable; overlap is judged as ever."""
    row = yield from _lock(schedule_id)
    schedule, template = read_schedule(row["record"]), read_template(row["template"])
    job = msgspec.structs.replace(fire.schedule_job(schedule, template, job_id), created_by=by)
    [answer] = yield from submit.keyed([job])
    return answer


def delete(schedule_id: UUID, version: int | None = None) -> Script[None]:
    """With its ledger; the jobs it made stay. Raises VersionConflict if it is no longer the one that the caller saw."""
    row = yield from _lock(schedule_id)
    _require_version(row, version)
    yield one("delete_schedule", id=schedule_id)
    yield one("delete_occurrences", schedule_id=schedule_id)
    yield many("drop_uses", ids([schedule_id]))


def get(schedule_ids: Sequence[UUID]) -> Script[list[Found | None]]:
    found = {row["id"]: _found(row) for row in (yield many("get_schedules", ids(schedule_ids)))}
    return [found.get(schedule_id) for schedule_id in schedule_ids]


def find(wanted: ScheduleFilter) -> Script[list[Found]]:
    rows = yield one(
        "find_schedules",
        name=wanted.name,
        name_prefix=wanted.name_prefix,
        tag=wanted.tag,
        paused=wanted.paused,
        source=wanted.source,
        after_name=wanted.cursor,
        limit=wanted.limit,
    )
    return [_found(row) for row in rows]


def occurrences(schedule_id: UUID, before: datetime | None, limit: int) -> Script[list[Line]]:
    """The ledger, latest first."""
    rows = yield one("get_occurrences", schedule_id=schedule_id, before_at=before, limit=limit)
    return [Line(**{name: row[name] for name in Line.__struct_fields__}) for row in rows]


def calendar(schedule_id: UUID) -> Script[list[Line]]:
    """The ledger by days (UTC), latest first: a line for all that became the same."""
    rows = yield one("count_occurrences", schedule_id=schedule_id, limit=COUNTED)
    return [Line(**{name: row[name] for name in Line.__struct_fields__}) for row in rows]


def prune(age: float, limit: int) -> Script[int]:
    """Remove lines of the ledger that are older than `age` seconds, a bounded number at a time."""
    return len((yield one("prune_occurrences", age=age, limit=limit)))


def hold(name: str) -> Script[None]:
    """Until the end of this transaction nobody else is at what this name stands for. Raises KeyBusy."""
    if not (yield many("try_keys", [(name,)])):
        raise KeyBusy(f"another transaction is at the {name!r}: try again")


def put_changed(row: Row, *, by: str | None, **changes: Any) -> Script[None]:
    """Some fields anew, the others as they are."""
    schedule = msgspec.structs.replace(read_schedule(row["record"]), **changes)
    yield from put(row, Draft(schedule=schedule, template=read_template(row["template"])), by=by)


def put(row: Row, draft: Draft, *, by: str | None, declared: str | None = None) -> Script[None]:
    """The row's new form, and whoever fires is told."""
    next_at, last_at = yield from _decide(row, draft.schedule)
    yield from vault.reattach(draft.schedule.id, draft.template.attachments)
    yield one(
        "update_schedule",
        id=draft.schedule.id,
        name=draft.schedule.name,
        record=encode(draft.schedule),
        template=draft.template_text(),
        next_at=next_at,
        last_at=last_at,
        due_at=None if draft.schedule.paused else next_at,
        declared=declared or row["declared"],
        by=by,
    )
    yield one("wake", wake=[fire.CHANNEL])


def _decide(row: Row, schedule: Schedule) -> Script[tuple[datetime | None, datetime | None]]:
    """From when on the new form holds. Times up to now that nobody has fired are the old one's: they stay due, unless
    it was paused, or is no more."""
    now, old = row["now_at"], readable(row)
    standing = Standing(next_at=row["next_at"], last_at=row["last_at"])
    if old is None or standing.next_at is None or standing.next_at > now:
        return schedule.after(now), standing.last_at
    paused = schedule if schedule.paused and not old.paused else old
    if not paused.paused and _times(old)[:2] == _times(schedule)[:2]:
        return standing.next_at, standing.last_at
    unfired = due(msgspec.structs.replace(old, paused=True), standing, Tick(now=now))
    reason = None if paused.paused else ledger.CHANGED
    yield from ledger.record([(schedule.id, ledger.skip_lines(unfired, paused, reason))])
    return schedule.after(now), unfired.standing.last_at


def _take_name(row: Row, name: str) -> Script[None]:
    if row["source"] is not None:
        raise InvalidSchedule(
            f"the name {row['name']!r} is given by the code of {row['source']}: change it there", field="name"
        )
    yield from hold(f"schedule {name}")
    if (yield one("lock_schedule", id=None, name=name)):
        raise NameTaken(name)


def _refuse_ended(schedule: Schedule, now: datetime) -> None:
    if schedule.after(now) is None:
        raise InvalidSchedule(
            f"schedule {schedule.name!r} would never fire again after {now:%Y-%m-%d %H:%M:%S %Z}: "
            "give a time that is still to come, and an end that is later",
            field="schedule" if schedule.end is None else "end",
        )


def _require_version(row: Row, version: int | None) -> None:
    if version is not None and version != row["version"]:
        raise VersionConflict(row["name"], row["version"])


def _times(schedule: Schedule) -> tuple[object, ...]:
    return schedule.when, schedule.start, schedule.end


def _lock(schedule_id: UUID) -> Script[Row]:
    rows = yield one("lock_schedule", id=schedule_id, name=None)
    if not rows:
        raise ScheduleNotFound(schedule_id)
    return rows[0]


def _get(schedule_id: UUID) -> Script[ScheduleRecord]:
    [row] = yield many("get_schedules", ids([schedule_id]))
    found = _found(row)
    assert isinstance(found, ScheduleRecord)
    return found


def _found(row: Row) -> Found:
    try:
        schedule, template = read_schedule(row["record"]), read_template(row["template"])
    except Exception as error:
        return Unreadable(id=row["id"], name=row["name"], problem=str(error))
    return ScheduleRecord(
        schedule=schedule,
        template=template,
        next_at=row["next_at"],
        last_at=row["last_at"],
        version=row["version"],
        source=row["source"],
        updated_at=row["updated_at"],
        updated_by=row["updated_by"],
    )


def readable(row: Row) -> Schedule | None:
    """The schedule of a row; None: this code can't read it."""
    found = _found(row)
    return found.schedule if isinstance(found, ScheduleRecord) else None


def as_text(body: Mapping[str, Any]) -> str:
    return msgspec.json.encode(body).decode()
