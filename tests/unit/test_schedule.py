"""Schedules: what a body says, what is refused, when the jobs run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.model.errors import InvalidSchedule
from headway.model.schedule import Misfire, Origin, Overlap, Schedule, from_body, to_body
from headway.model.submission import INLINE_LIMIT
from headway.model.when import At, Cron, Every, at, cron, every

ID = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
CREATED = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BODY: dict[str, Any] = {
    "name": "report",
    "schedule": "* * * * *",
    "job": {"callback_url": "https://example.com", "http_method": "POST", "payload": {"a": 1}},
}


def schedule(**changes: Any) -> Schedule:
    return from_body(BODY | changes, id=ID, created_at=CREATED)


def test_the_shortest_body_has_the_documented_defaults() -> None:
    made = schedule()
    assert made.when == Cron("* * * * *", "UTC", None, None)
    assert made.job == {"kind": "http"} | BODY["job"]
    assert (made.misfire, made.misfire_limit, made.overlap) == (Misfire.RUN_ONCE, 100, Overlap.SKIP)
    assert (made.jitter, made.start, made.end, made.tags) == (0, None, None, ())
    assert (made.paused, made.origin, made.code_version) == (False, Origin.PERSON, None)


def test_every_field_of_a_body_is_taken_over() -> None:
    made = schedule(
        description="each morning",
        schedule="0 6 * * *",
        timezone="Europe/Berlin",
        gap="skip",
        fold="both",
        misfire="run_all",
        misfire_limit=7,
        overlap="replace",
        jitter=30,
        start="2026-06-01T00:00:00+02:00",
        end="2027-06-01T00:00:00Z",
        paused=True,
        pause_reason="holidays",
        tags=["a", "b"],
        job={"kind": "call", "function": "app.report"},
    )
    assert made.when == Cron("0 6 * * *", "Europe/Berlin", "skip", "both")
    assert (made.misfire, made.misfire_limit, made.overlap, made.jitter) == (Misfire.RUN_ALL, 7, Overlap.REPLACE, 30)
    assert made.start == datetime(2026, 5, 31, 22, tzinfo=UTC)
    assert made.end == datetime(2027, 6, 1, tzinfo=UTC)
    assert (made.paused, made.pause_reason, made.tags) == (True, "holidays", ("a", "b"))
    assert (made.description, made.job["kind"]) == ("each morning", "call")


@pytest.mark.parametrize(
    ("form", "when"),
    [
        ({"every": 300}, Every(300)),
        ({"at": "2030-01-31T06:00:00+01:00"}, At(datetime(2030, 1, 31, 5, tzinfo=UTC))),
        (cron("0 6 * * *", tz="Europe/Berlin"), Cron("0 6 * * *", "Europe/Berlin")),
        (every(timedelta(minutes=5)), Every(300)),
        (at(datetime(2030, 1, 31, tzinfo=UTC)), At(datetime(2030, 1, 31, tzinfo=UTC))),
    ],
)
def test_a_schedule_takes_each_way_to_say_when(form: Any, when: object) -> None:
    assert schedule(schedule=form).when == when


def test_null_counts_as_not_given() -> None:
    assert schedule(timezone=None, gap=None, tags=None, end=None, misfire=None) == schedule()


def test_code_says_where_a_schedule_comes_from() -> None:
    made = from_body(BODY, id=ID, created_at=CREATED, origin=Origin.CODE, code_version="7")
    assert (made.origin, made.code_version) == (Origin.CODE, "7")


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"name": None}, "name", "name is missing: it must be 1 to 200 characters"),
        ({"schedule": None}, "schedule", '{"every": 300}'),
        ({"job": None}, "job", "callback_url"),
        ({"name": ""}, "name", "'nightly-report'"),
        ({"name": "x" * 201}, "name", "1 to 200"),
        ({"name": "a\nb"}, "name", "control characters"),
        ({"name": 5}, "name", "not 5"),
        ({"misfre": "skip"}, "misfre", "use misfire"),
        ({"zzz": 1}, "zzz", "use description, end, fold"),
        ({"misfire": "later"}, "misfire", "one of skip, run_once, run_all, not 'later'"),
        ({"overlap": "reject"}, "overlap", "one of allow, skip, wait, replace"),
        ({"misfire_limit": 0}, "misfire_limit", "1 to 1,000"),
        ({"misfire_limit": 1001}, "misfire_limit", "1 to 1,000"),
        ({"misfire_limit": "7"}, "misfire_limit", "not '7'"),
        ({"jitter": -1}, "jitter", "seconds from 0"),
        ({"jitter": float("nan")}, "jitter", "seconds from 0"),
        ({"gap": "before"}, "gap", "after or skip"),
        ({"fold": "last"}, "fold", "first or both"),
        ({"schedule": {"every": 5}, "gap": "skip"}, "gap", "cron expression only"),
        ({"schedule": "61 * * * *"}, "schedule", "the minute of"),
        ({"schedule": "* * 31 2 *"}, "schedule", "never fires"),
        ({"schedule": {"every": 0}}, "schedule.every", "300"),
        ({"schedule": {"at": "2030-01-31T06:00:00"}}, "schedule.at", "with its offset"),
        ({"timezone": "Europe/Berln"}, "timezone", "did you mean 'Europe/Berlin'"),
        ({"timezone": 1}, "timezone", "an IANA name"),
        ({"start": "2030-01-31T06:00:00"}, "start", "2030-01-31T06:00:00+01:00"),
        ({"end": "soon"}, "end", "2030-01-31T06:00:00+01:00"),
        ({"start": "2030-01-31T06:00:00Z", "end": "2030-01-31T06:00:00Z"}, "end", "later than start"),
        ({"paused": "yes"}, "paused", "true or false"),
        ({"pause_reason": "why"}, "pause_reason", "with paused: true"),
        ({"tags": "a"}, "tags", "a list of texts"),
        ({"tags": ["a", 5]}, "tags", "a list of texts"),
        ({"job": {"run_at": "2030-01-31T06:00:00Z"}}, "job.run_at", "leave run_at out"),
        ({"job": {"id": "x"}}, "job.id", "leave id out"),
        ({"job": {"kind": ""}}, "job.kind", "'http'"),
        ({"job": {"kind": 5}}, "job.kind", "'http'"),
        ({"job": {"payload": "x" * INLINE_LIMIT}}, "job", "the limit is 262,144"),
        ({"job": {"payload": object()}}, "job", "JSON"),
        ({"job": "password=1234"}, "job", "not str"),
    ],
)
def test_a_wrong_body_is_refused_the_field_named_and_the_right_form_shown(
    changes: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        schedule(**changes)
    assert refused.value.field == field
    assert says in str(refused.value)
    assert "1234" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_a_naive_time_of_creation_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="created_at must be a time with its offset"):
        from_body(BODY, id=ID, created_at=CREATED.replace(tzinfo=None))


bodies = st.fixed_dictionaries(
    {"schedule": st.sampled_from(["0 6 * * *", {"every": 7.5}, {"at": CREATED}])},
    optional={
        "description": st.text(max_size=9),
        "timezone": st.sampled_from(["UTC", "Asia/Kolkata"]),
        "misfire": st.sampled_from(Misfire),
        "overlap": st.sampled_from(Overlap),
        "jitter": st.floats(0, 100),
        "start": st.just(CREATED),
        "paused": st.booleans(),
        "tags": st.lists(st.text(max_size=9)),
    },
)


@given(bodies)
def test_a_body_and_the_schedule_it_describes_say_the_same(changes: dict[str, Any]) -> None:
    made = schedule(**changes)
    as_json = msgspec.json.decode(msgspec.json.encode(to_body(made)))
    assert from_body(as_json, id=ID, created_at=CREATED) == made


def test_rules_about_jumping_clocks_are_part_of_the_body() -> None:
    shown = to_body(schedule(gap="skip", fold="both", timezone="Europe/Berlin"))
    assert (shown["timezone"], shown["gap"], shown["fold"]) == ("Europe/Berlin", "skip", "both")


@given(bodies)
def test_a_schedule_survives_being_stored(changes: dict[str, Any]) -> None:
    made = schedule(**changes)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Schedule) == made


def test_nothing_fires_before_the_start_or_after_the_end() -> None:
    made = schedule(start=CREATED + 2 * MINUTE, end=CREATED + 4 * MINUTE)
    first = CREATED.replace(second=0) + 3 * MINUTE
    assert made.opening() == first
    assert [fire.at for fire in made.preview(CREATED)] == [first, first + MINUTE]
    assert made.after(first + MINUTE) is None


def test_start_and_end_are_themselves_included() -> None:
    noon = datetime(2026, 5, 2, 12, tzinfo=UTC)
    made = schedule(start=noon, end=noon + 2 * MINUTE)
    assert [fire.at for fire in made.preview(CREATED)] == [noon, noon + MINUTE, noon + 2 * MINUTE]
    assert (made.after(CREATED), made.after(noon + MINUTE)) == (noon, noon + 2 * MINUTE)


def test_intervals_count_from_the_start_or_else_from_the_creation() -> None:
    assert schedule(schedule={"every": 60}).opening() == CREATED + MINUTE
    later = CREATED + timedelta(seconds=7)
    coming = schedule(schedule={"every": 60}, start=later).preview(CREATED)
    assert [fire.at for fire in islice(coming, 2)] == [later, later + MINUTE]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"schedule": {"at": CREATED}}, "schedule"),
        ({"schedule": "0 0 29 2 *", "end": "2027-01-01T00:00:00Z"}, "end"),
        ({"schedule": "30 2 * 3 7L", "timezone": "Europe/Berlin", "gap": "skip"}, "schedule"),
    ],
)
def test_a_new_schedule_that_would_never_fire_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidSchedule, match="would never fire after 2026-05-01 12:00:30 UTC") as refused:
        schedule(**changes).opening()
    assert refused.value.field == field


@given(st.floats(0, 86_400), st.integers(0, 10**6))
def test_jitter_delays_within_its_bounds_and_always_alike(jitter: float, minutes: int) -> None:
    nominal = CREATED + minutes * MINUTE
    run_at = schedule(jitter=jitter).run_at(nominal)
    assert nominal <= run_at <= nominal + timedelta(seconds=jitter)
    elsewhere = nominal.astimezone(UTC)
    assert schedule(jitter=jitter).run_at(elsewhere) == run_at


def test_jitter_spreads_schedules_and_times() -> None:
    times = [CREATED + n * MINUTE for n in range(200)]
    of_one = [(schedule(jitter=60).run_at(at) - at).total_seconds() for at in times]
    of_many = [
        (from_body(BODY | {"jitter": 60}, id=UUID(int=n), created_at=CREATED).run_at(CREATED) - CREATED).total_seconds()
        for n in range(200)
    ]
    for delays in (of_one, of_many):
        assert min(delays) < 6
        assert max(delays) > 54
        assert 25 < sum(delays) / len(delays) < 35


def test_without_jitter_a_job_runs_at_its_nominal_time() -> None:
    assert schedule().run_at(CREATED) == CREATED
