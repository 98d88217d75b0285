"""A schedule as data: when it fires, which job it makes then, and what it does when it is late or jobs overlap."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import takewhile
from typing import Any
from uuid import UUID

import msgspec

from headway.model.errors import InvalidSchedule
from headway.model.submission import INLINE_LIMIT
from headway.model.timetable import Fold, Gap
from headway.model.when import FORM, Cron, Fire, When, aware, form, parse, preview

MOMENT = timedelta(microseconds=1)
"""The smallest step of time: one before an instant, `after` finds the instant itself."""
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_TIME = "a time with its offset from UTC, e.g. 2030-01-31T06:00:00+01:00"
_NOT_IN_TEMPLATE = ("id", "run_at", "delay")


class Misfire(StrEnum):
    """What becomes of fires that were missed."""

    SKIP = "skip"
    RUN_ONCE = "run_once"
    RUN_ALL = "run_all"


class Overlap(StrEnum):
    """What a fire does when a job of an earlier one has not ended: the words of `OnConflict`."""

    ALLOW = "allow"
    SKIP = "skip"
    WAIT = "wait"
    REPLACE = "replace"


class Origin(StrEnum):
    """Who keeps a schedule: the app's code, or a person."""

    CODE = "code"
    PERSON = "person"


_FORMS = {
    "name": "1 to 200 characters without control characters, e.g. 'nightly-report'",
    "description": "a text",
    "schedule": FORM,
    "timezone": "an IANA name such as 'Europe/Berlin'",
    "gap": "after or skip",
    "fold": "first or both",
    "misfire": f"one of {', '.join(Misfire)}",
    "misfire_limit": "a number from 1 to 1,000",
    "overlap": f"one of {', '.join(Overlap)}",
    "jitter": "seconds from 0 to 86,400",
    "start": _TIME,
    "end": f"{_TIME}, later than start",
    "paused": "true or false",
    "pause_reason": "a text, with paused: true",
    "tags": "a list of texts",
    "job": 'a job body, e.g. {"callback_url": "https://example.com/report"}',
    "job.kind": "the kind of a job, e.g. 'http'",
}
"""The right form of each field of a body."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule, complete and checked. Raises InvalidSchedule."""

    id: UUID
    name: str
    when: When
    job: dict[str, Any]
    """The body of the jobs it makes; their time is the schedule's business."""
    created_at: datetime
    description: str | None = None
    misfire: Misfire = Misfire.RUN_ONCE
    misfire_limit: int = 100
    """The most jobs that one tick may make of it."""
    overlap: Overlap = Overlap.SKIP
    jitter: float = 0.0
    """Each job runs up to so many seconds after its nominal time."""
    start: datetime | None = None
    """The first instant at which it may fire; intervals count from here."""
    end: datetime | None = None
    """The last one."""
    paused: bool = False
    pause_reason: str | None = None
    tags: tuple[str, ...] = ()
    origin: Origin = Origin.PERSON
    code_version: str | None = None
    fingerprint: str | None = None
    """Of the body that it was made of, whatever has become of it since: tells a repeat from another schedule."""

    def __post_init__(self) -> None:
        for field in ("created_at", "start", "end"):
            if getattr(self, field) is not None:
                aware(getattr(self, field), field)
        _require(_NAME.fullmatch(self.name) is not None, "name", self.name[:250])
        _require(1 <= self.misfire_limit <= 1000, "misfire_limit", self.misfire_limit)
        _require(0 <= self.jitter <= 86_400, "jitter", self.jitter)
        _require(self.start is None or self.end is None or self.start < self.end, "end", self.end)
        _require(self.paused or self.pause_reason is None, "pause_reason", self.pause_reason)
        _check_template(self.job)

    def after(self, instant: datetime) -> datetime | None:
        """The first nominal time later than the instant; None: it has ended."""
        fire = self.when.timetable(self.anchor).after(self._not_before_start(instant))
        return fire if fire is None or self.end is None or fire <= self.end else None

    def opening(self) -> datetime:
        """The first nominal time of a new schedule. Raises InvalidSchedule if there is none."""
        fire = self.after(self.created_at)
        if fire is None:
            raise InvalidSchedule(
                f"schedule {self.name!r} would never fire after {self.created_at:%Y-%m-%d %H:%M:%S %Z}: "
                "give a time that is still to come, and an end that is later",
                field="schedule" if self.end is None else "end",
            )
        return fire

    def preview(self, after: datetime) -> Iterator[Fire]:
        """The coming fires, one after another, with the jumps of the zone's clocks marked."""
        coming = preview(self.when, self.anchor, self._not_before_start(after))
        return takewhile(lambda fire: self.end is None or fire.at <= self.end, coming)

    def run_at(self, nominal: datetime) -> datetime:
        """When the job of that nominal time is to run: the same for whoever asks, however often."""
        if not self.jitter:
            return nominal
        seed = hashlib.blake2b(f"{self.id}\0{nominal.astimezone(UTC).isoformat()}".encode(), digest_size=8)
        return nominal + timedelta(seconds=self.jitter) * (int.from_bytes(seed.digest()) / 2**64)

    @property
    def anchor(self) -> datetime:
        """What intervals are counted from."""
        return self.start or self.created_at

    def _not_before_start(self, instant: datetime) -> datetime:
        return instant if self.start is None else max(instant, self.start - MOMENT)


class _Body(msgspec.Struct, kw_only=True):
    """The fields of a body, as far as their types go."""

    name: str
    schedule: Any
    job: dict[str, Any]
    description: str | None = None
    timezone: str = "UTC"
    gap: Gap | None = None
    fold: Fold | None = None
    misfire: Misfire = Misfire.RUN_ONCE
    misfire_limit: int = 100
    overlap: Overlap = Overlap.SKIP
    jitter: float = 0.0
    start: Any = None
    end: Any = None
    paused: bool = False
    pause_reason: str | None = None
    tags: tuple[str, ...] = ()


_WHEN = ("schedule", "timezone", "gap", "fold")
_FIELDS = [name for name in _Body.__struct_fields__ if name not in _WHEN]


def from_body(
    body: Mapping[str, Any],
    *,
    id: UUID,  # noqa: A002 - the field's name
    created_at: datetime,
    origin: Origin = Origin.PERSON,
    code_version: str | None = None,
) -> Schedule:
    """The schedule that a body describes; a field that is null counts as not given. Raises InvalidSchedule."""
    read = _read({name: value for name, value in body.items() if value is not None})
    fields = {name: getattr(read, name) for name in _FIELDS}
    fields["job"] = {"kind": "http"} | read.job
    for name in ("start", "end"):
        fields[name] = None if fields[name] is None else aware(fields[name], name)
    when = parse(read.schedule, read.timezone, read.gap, read.fold)
    return Schedule(id=id, created_at=created_at, origin=origin, code_version=code_version, when=when, **fields)


def to_body(schedule: Schedule) -> dict[str, Any]:
    """The body that describes the schedule, with every field: what is shown, and what an edit starts from."""
    body: dict[str, Any] = {name: getattr(schedule, name) for name in _FIELDS}
    body |= {"schedule": form(schedule.when), "timezone": schedule.when.timezone}
    if isinstance(schedule.when, Cron):
        body |= {"gap": schedule.when.gap, "fold": schedule.when.fold}
    return body


def _read(body: dict[str, Any]) -> _Body:
    for name in body:
        if name not in _Body.__struct_fields__:
            alike = difflib.get_close_matches(name, _Body.__struct_fields__, 1) or sorted(_Body.__struct_fields__)
            raise InvalidSchedule(f"there is no field {name!r}: use {', '.join(alike)}", field=name)
    for name in ("name", "schedule", "job"):
        if name not in body:
            raise InvalidSchedule(f"{name} is missing: it must be {_FORMS[name]}", field=name)
    try:
        return msgspec.convert(body, _Body)
    except msgspec.ValidationError as error:
        # msgspec names the place as in: Expected `int`, got `str` - at `$.misfire_limit`
        field = str(error).rpartition("`$.")[2].rstrip("`").partition("[")[0]
        raise _wrong(field, body[field]) from error


def _check_template(job: Mapping[str, Any]) -> None:
    for name in _NOT_IN_TEMPLATE:
        if name in job:
            raise InvalidSchedule(f"job: leave {name} out, the schedule gives it to each job", field=f"job.{name}")
    _require(isinstance(job.get("kind"), str) and bool(job["kind"]), "job.kind", job.get("kind"))
    try:
        size = len(msgspec.json.encode(job))
    except TypeError as error:
        raise InvalidSchedule(f"job must be data that JSON can hold: {error}", field="job") from error
    if size > INLINE_LIMIT:
        raise InvalidSchedule(f"job takes {size:,} bytes, the limit is {INLINE_LIMIT:,}", field="job")


def _require(holds: bool, field: str, value: object) -> None:
    if not holds:
        raise _wrong(field, value)


def _wrong(field: str, value: object) -> InvalidSchedule:
    # A job may hold what not everybody should read.
    shown = type(value).__name__ if field == "job" else str(value) if isinstance(value, datetime) else repr(value)
    return InvalidSchedule(f"{field} must be {_FORMS[field]}, not {shown[:250]}", field=field)
