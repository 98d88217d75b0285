"""FIRE: due schedules make jobs, in one transaction with the record of it. Any number of schedulers, no leader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from uuid import UUID

import msgspec

from headway.model.alerts import Cause
from headway.model.due import Due, Occurrence, SkipReason, Standing, Tick, due
from headway.model.errors import HeadwayError, KeyBusy
from headway.model.schedule import Schedule
from headway.model.submission import Accepted, OnConflict, Submission
from headway.observe.logs import get_logger
from headway.store.scripts import alerts, ledger, submit
from headway.store.scripts.ledger import Line
from headway.store.scripts.submit import Answer
from headway.store.scripts.walk import NO_ID
from headway.store.statements import Row, Script, many, one

BROKEN_WAIT = timedelta(seconds=60)
"""After so long a schedule whose record can't be read is looked at again."""
BUSY_WAIT = timedelta(seconds=0.2)
"""After so long a batch of schedules is looked at again that can't be fired because others are at their jobs."""
JOBS_AT_ONCE = 5000
"""Made by one tick, about: schedules that have missed much are left to the next one."""
MISSED = frozenset({SkipReason.MISSED.value, SkipReason.COALESCED.value, SkipReason.LIMIT.value, ledger.ERROR})
"""The reasons of skips that people may want to hear of."""
CHANNEL = "\x03schedules"
"""What is rung when a schedule was made or changed; no queue can have this name."""

log = get_logger("headway.schedules")


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    """What a tick has done, and in how many seconds the next schedule is due (None: none is planned; 0 or less: some
    are due and left, because there were too many, or because they are in other hands)."""

    at: datetime
    wait: float | None
    schedules: int = 0
    """Those that were due and are seen to."""
    jobs: int = 0
    skipped: int = 0
    lateness: tuple[float, ...] = ()
    """Seconds from each fired nominal time to now."""
    made: dict[tuple[str, str], int] = {}
    """Jobs by kind and queue."""
    reasons: dict[str, int] = {}
    """Skipped nominal times by the reason."""

    @property
    def clear(self) -> bool:
        """Nothing is due any more."""
        return self.wait is None or self.wait > 0

    @property
    def clear_until(self) -> datetime:
        """Of the time before this, nothing is left to be fired."""
        return self.at if self.wait is None or self.wait > 0 else self.at + timedelta(seconds=self.wait)


class NotFired(HeadwayError):
    """A batch of schedules came to nothing; one of those that were `tried` may have spoilt it for the others."""

    def __init__(self, tried: Sequence[UUID], error: Exception) -> None:
        super().__init__(f"{len(tried)} due schedules could not be fired: {error!r}")
        self.tried = tried
        self.error = error


class _Plan(msgspec.Struct):
    """A due schedule on its way through the steps of `fire`."""

    schedule: Schedule
    due: Due
    jobs: list[Submission]
    written: list[Line] = []
    """Its lines in the ledger, once it is seen to."""

    def lines(self, answers: dict[UUID, Answer]) -> list[Line]:
        return ledger.skip_lines(self.due, self.schedule) + ledger.job_lines(self.jobs, answers)

    def missed(self) -> Iterator[tuple[str, str, int, str, str | None, str | None]]:
        """Nominal times that went by although nobody wanted them to."""
        for line in self.written:
            if line.reason in MISSED:
                number, times = int(line.nominal_at.timestamp()), "time" if line.count == 1 else "times"
                first = f"{line.nominal_at:%Y-%m-%d %H:%M:%S} UTC"
                told = f"{line.count} {times} from {first} on ({line.reason}): {line.detail}"
                yield Cause.SCHEDULE_MISSED.value, str(self.schedule.id), number, self.schedule.name, None, told

    def busy(self, answers: dict[UUID, Answer]) -> bool:
        """Another transaction is at a job of this schedule: left as it is, and due again."""
        return any(isinstance(answers[job.id], KeyBusy) for job in self.jobs)


def fire(limit: int, previous: datetime | None, tried: list[UUID]) -> Script[Fired]:
    """Make the jobs of up to `limit` due schedules. `previous`: up to when this scheduler has left nothing undone;
    `tried` tells, should it fail, with which."""
    rows = yield one("due_schedules", limit=limit)
    tried[:] = [row["id"] for row in rows]
    settled, answers = (yield from _fire(rows, previous, full=len(rows) == limit)) if rows else ([], {})
    [left] = yield one("next_due_schedule")
    written = [line for plan in settled for line in plan.written]
    reasons: Counter[str] = Counter()
    for line in written:
        if line.reason:
            reasons[line.reason] += line.count
    made = [line for line in written if line.job_id]
    return Fired(
        at=left["now_at"],
        wait=left["delay"],
        schedules=len(settled),
        jobs=sum(line.count for line in made),
        skipped=sum(line.count for line in written if not line.job_id),
        lateness=tuple((left["now_at"] - line.nominal_at).total_seconds() for line in made),
        made=Counter(_new_jobs(settled, answers)),
        reasons=reasons,
    )


def _new_jobs(plans: Sequence[_Plan], answers: dict[UUID, Answer]) -> Iterator[tuple[str, str]]:
    for job in (job for plan in plans for job in plan.jobs):
        answer = answers[job.id]
        if isinstance(answer, Accepted) and not answer.earlier:
            yield job.kind, job.queue


def _fire(
    rows: Sequence[Row], previous: datetime | None, *, full: bool
) -> Script[tuple[list[_Plan], dict[UUID, Answer]]]:
    """The schedules that are seen to, and what became of their jobs. `full`: there may be more behind these."""
    now: datetime = rows[0]["now_at"]
    plans = yield from _plan(rows, Tick(now=now, previous=previous))
    answers = yield from _submit([job for plan in plans for job in plan.jobs])
    settled = [plan for plan in plans if not plan.busy(answers)]
    if full and plans and not settled:
        busy = {plan.schedule.id for plan in plans}
        yield from _put_off([row for row in rows if row["id"] in busy], now + BUSY_WAIT)
    for plan in settled:
        plan.written = plan.lines(answers)
    yield from ledger.record([(plan.schedule.id, plan.written) for plan in settled])
    yield from alerts.note([missed for plan in settled for missed in plan.missed()])
    yield from _advance([(plan.schedule.id, plan.due.standing) for plan in settled])
    return settled, answers


class ScheduleStats(msgspec.Struct, frozen=True, kw_only=True):
    """How many schedules there are, how many of them are to fire, and for how long the first has been due."""

    schedules: int
    active: int
    late: float


def stats() -> Script[ScheduleStats]:
    [row] = yield one("count_schedules")
    return ScheduleStats(schedules=row["schedules"], active=row["active"], late=max(row["late"] or 0.0, 0.0))


def schedulers(age: float) -> Script[int]:
    """How many processes fire schedules and were seen not longer than `age` seconds ago."""
    [row] = yield one("count_schedulers", age=age)
    number: int = row["number"]
    return number


def put_aside(schedule_id: UUID, seconds: float) -> Script[bool]:
    """Leave a schedule alone for a while: whatever keeps it from firing must not keep all others. Not one that somebody
    else has fired meanwhile, or is at."""
    rows = yield one("due_schedule", id=schedule_id)
    if rows:
        yield from _put_off(rows, rows[0]["now_at"] + timedelta(seconds=seconds))
    return bool(rows)


def realign(after_id: UUID | None, limit: int) -> Script[UUID | None]:
    """The clock was set back: schedules that have had their turn at times still to come go on from now. One step of a
    walk through them; returns where to go on (None: the walk is over)."""
    rows = yield one("ahead_schedules", after_id=after_id or NO_ID, limit=limit)
    if not rows:
        return None
    now: datetime = rows[0]["now_at"]
    found = {row["id"]: schedule for row in rows if (schedule := _readable(row)) is not None}
    standings = [(row["id"], found[row["id"]].after(now), row["last_at"]) for row in rows if row["id"] in found]
    yield many(
        "advance_schedules",
        [(key, next_at, last_at, None if found[key].paused else next_at) for key, next_at, last_at in standings],
    )
    yield from ledger.forget_future(found, now)
    last: UUID = rows[-1]["id"]
    return last if len(rows) == limit else None


def _plan(rows: Sequence[Row], tick: Tick) -> Script[list[_Plan]]:
    """What is due of each. One that can't be read holds up nobody: it is put aside for a while."""
    recorded = yield from _recorded(rows)
    plans: list[_Plan] = []
    broken: list[Row] = []
    made = 0
    for row in rows:
        if made >= JOBS_AT_ONCE:
            break
        schedule_id, text, template_text, next_at, last_at, _ = row
        try:
            schedule, template = read_schedule(text), read_template(template_text)
            standing = Standing(next_at=next_at, last_at=last_at)
            found = due(schedule, standing, tick, recorded.get(schedule_id, frozenset()))
            plans.append(_Plan(schedule, found, [_job(schedule, template, fire) for fire in found.fires]))
            made += len(found.fires)
        except Exception as error:
            # Whatever it is: those that can be read must fire.
            log.exception("schedule.unreadable", schedule_id=str(schedule_id), error=str(error))
            broken.append(row)
    if broken:
        yield from _put_off(broken, tick.now + BROKEN_WAIT)
    return plans


def _put_off(rows: Sequence[Row], until: datetime) -> Script[None]:
    """Not due before then, and otherwise as they are."""
    yield many("advance_schedules", [(row["id"], row["next_at"], row["last_at"], until) for row in rows])


def _recorded(rows: Sequence[Row]) -> Script[dict[UUID, set[datetime]]]:
    """Nominal times that fired before the clock was set back. Those of other schedules lie behind them all."""
    asked = [
        (schedule_id, next_at)
        for schedule_id, _, _, next_at, last_at, _ in rows
        if last_at is not None and next_at is not None and last_at >= next_at
    ]
    found: dict[UUID, set[datetime]] = {}
    if asked:
        for row in (yield many("fired_times", asked)):
            found.setdefault(row["schedule_id"], set()).add(row["nominal_at"])
    return found


def _submit(jobs: Sequence[Submission]) -> Script[dict[UUID, Answer]]:
    """Into the store like any others; where jobs of a schedule may overlap, no look at each other is needed."""
    free = [job for job in jobs if _free(job)]
    bound = [job for job in jobs if not _free(job)]
    answers: dict[UUID, Answer] = {}
    if free:
        answers |= zip((job.id for job in free), (yield from submit.plain(free)), strict=True)
    if bound:
        answers |= zip((job.id for job in bound), (yield from submit.keyed(bound)), strict=True)
    return answers


def _free(job: Submission) -> bool:
    return job.on_conflict is OnConflict.ALLOW and not job.dedupe and not job.after and not job.attachments


def _advance(standings: Sequence[tuple[UUID, Standing]]) -> Script[None]:
    if standings:
        yield many("advance_schedules", [(key, at.next_at, at.last_at, at.next_at) for key, at in standings])


def schedule_job(schedule: Schedule, template: Submission, job_id: UUID, fire: Occurrence | None = None) -> Submission:
    """A job of the schedule: of one of its nominal times, or at once."""
    return msgspec.structs.replace(
        template,
        id=job_id,
        run_at=fire and fire.run_at,
        schedule_id=schedule.id,
        nominal_at=fire and fire.nominal,
        key=template.key or f"schedule:{schedule.id}",
        on_conflict=OnConflict(schedule.overlap.value),
        created_by=f"schedule:{schedule.name}",
    )


def _job(schedule: Schedule, template: Submission, fire: Occurrence) -> Submission:
    return schedule_job(schedule, template, occurrence_id(schedule.id, fire.nominal), fire)


def occurrence_id(schedule_id: UUID, nominal: datetime) -> UUID:
    """A UUIDv7 that any scheduler makes of the same occurrence: made twice, it is the same job."""
    millisecond = int(nominal.timestamp() * 1000)
    chance = int.from_bytes(blake2b(schedule_id.bytes + nominal.isoformat().encode(), digest_size=10).digest())
    high, low = chance >> 68, chance & (1 << 62) - 1
    return UUID(int=millisecond << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)


@lru_cache(maxsize=20_000)
def read_schedule(record: str) -> Schedule:
    """A schedule as stored. Read once for each wording: most are due again and again."""
    return msgspec.json.decode(record, type=Schedule)


@lru_cache(maxsize=20_000)
def read_template(template: str) -> Submission:
    return msgspec.json.decode(template, type=Submission)


def _readable(row: Row) -> Schedule | None:
    try:
        return read_schedule(row["record"])
    except Exception as error:
        log.exception("schedule.unreadable", schedule_id=str(row["id"]), error=str(error))
        return None
