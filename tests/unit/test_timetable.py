"""Which instants a cron expression, an interval or a time means, when clocks jump too."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from headway.model.cron import ALIASES, Pattern
from headway.model.errors import InvalidSchedule
from headway.model.timetable import Timetable
from headway.model.when import At, Cron, Every, When, at, cron, every, form, parse, preview
from headway.model.zones import spans
from tests.almanac import EXPRESSIONS, HOUR, Expression, jumps, wall, watch, year

BERLIN, NEW_YORK, LORD_HOWE, KOLKATA = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"
ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
RULES: list[tuple[Any, Any]] = [(None, None), *itertools.product(["after", "skip"], ["first", "both"])]


def fires(table: Timetable, after: datetime, until: datetime) -> list[datetime]:
    """Found one after another."""
    found = []
    fire = table.after(after)
    while fire and fire <= until:
        found.append(fire)
        fire = table.after(fire)
    return found


def fires_back(table: Timetable, after: datetime, until: datetime) -> list[datetime]:
    """Found from the last to the first."""
    found = []
    fire = table.last(after, until)
    while fire:
        found.append(fire)
        fire = table.last(after, fire - timedelta(microseconds=1))
    return found[::-1]


def local(expression: str, zone: str, day: str, **rules: Any) -> list[str]:
    """What the wall shows, and the hours from UTC, at the fires of a local day."""
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    end = (start + timedelta(days=1)).astimezone(UTC)
    table = cron(expression, tz=zone, **rules).timetable()
    before = start.astimezone(UTC) - timedelta(seconds=1)
    found = fires(table, before, end - timedelta(seconds=1))
    return [fire.astimezone(ZoneInfo(zone)).strftime("%H:%M %z") for fire in found]


# Spring and autumn, by example.


@pytest.mark.parametrize(
    ("zone", "day", "gap_end"),
    [
        (NEW_YORK, "2026-03-08", "03:00 -0400"),
        (BERLIN, "2026-03-29", "03:00 +0200"),
        (LORD_HOWE, "2026-10-04", "02:30 +1100"),
    ],
)
def test_a_time_that_a_gap_skips_runs_at_its_end(zone: str, day: str, gap_end: str) -> None:
    assert local("15 2 * * *", zone, day) == [gap_end]
    assert local("15 2 * * *", zone, day, gap="skip") == []


@pytest.mark.parametrize(
    ("zone", "day", "first", "second"),
    [
        (NEW_YORK, "2026-11-01", "01:45 -0400", "01:45 -0500"),
        (BERLIN, "2026-10-25", "02:45 +0200", "02:45 +0100"),
        (LORD_HOWE, "2026-04-05", "01:45 +1100", "01:45 +1030"),
    ],
)
def test_a_time_that_an_overlap_repeats_runs_the_first_time(zone: str, day: str, first: str, second: str) -> None:
    expression = f"45 {first[1]} * * *"
    assert local(expression, zone, day) == [first]
    assert local(expression, zone, day, fold="both") == [first, second]


def test_all_times_that_a_gap_skips_are_one_run() -> None:
    assert local("*/15 2 * * *", BERLIN, "2026-03-29") == ["03:00 +0200"]
    assert local("*/30 2,3 * * *", BERLIN, "2026-03-29") == ["03:00 +0200", "03:30 +0200"]
    assert local("*/15 2 * * *", LORD_HOWE, "2026-10-04") == ["02:30 +1100", "02:45 +1100"]


def test_with_an_hour_of_star_every_real_hour_counts_once() -> None:
    spring, autumn = (local("30 * * * *", BERLIN, day) for day in ("2026-03-29", "2026-10-25"))
    assert (len(spring), len(autumn)) == (23, 25)
    assert spring[1:3] == ["01:30 +0100", "03:30 +0200"]
    assert autumn[2:4] == ["02:30 +0200", "02:30 +0100"]


def test_with_an_hour_of_star_the_rules_can_be_overruled() -> None:
    assert local("30 * * * *", BERLIN, "2026-03-29", gap="after")[1:3] == ["01:30 +0100", "03:00 +0200"]
    assert local("30 * * * *", BERLIN, "2026-10-25", fold="first")[2:4] == ["02:30 +0200", "03:30 +0100"]


@pytest.mark.parametrize("hours", ["*/1", "0-23"])
def test_only_a_bare_star_means_every_hour(hours: str) -> None:
    assert local(f"30 {hours} * * *", BERLIN, "2026-10-25")[2:4] == ["02:30 +0200", "03:30 +0100"]


def test_a_zone_without_jumps_has_none() -> None:
    table = cron("30 2 * * *", tz=KOLKATA).timetable()
    found = fires(table, year(2026), year(2027))
    assert len(found) == 365
    assert {fire.time().isoformat() for fire in found} == {"21:00:00"}


def test_an_overlap_goes_on_into_the_new_year(monkeypatch: pytest.MonkeyPatch) -> None:
    """No zone has had one yet, so this one is made up: put back by an hour half an hour before the year ends."""
    back = int(datetime(2026, 12, 31, 23, 30, tzinfo=UTC).timestamp())
    monkeypatch.setattr("headway.model.zones._offset", lambda clock, instant: 3600 if instant < back else 0)
    [_, even] = spans.__wrapped__("UTC", 2026)
    [whole] = spans.__wrapped__("UTC", 2027)
    assert (even.start, even.offset, even.shown) == (back, 0, back + 3600)
    assert (whole.start, whole.offset, whole.shown) == (year(2027).timestamp(), 0, back + 3600)


def test_a_whole_day_that_never_was_is_one_run_at_its_end() -> None:
    table = cron("0 6 * * *", tz="Pacific/Apia").timetable()
    shown = [
        fire.astimezone(ZoneInfo("Pacific/Apia")).strftime("%d %H:%M")
        for fire in fires(table, datetime(2011, 12, 29, tzinfo=UTC), datetime(2012, 1, 1, tzinfo=UTC))
    ]
    assert shown == ["29 06:00", "31 00:00", "31 06:00", "01 06:00"]


# What cronsim by itself makes of a zone, and why we don't let it.


def of_cronsim(expression: str, after: datetime, count: int) -> list[datetime]:
    return [fire.astimezone(UTC) for fire in itertools.islice(CronSim(expression, after), count)]


def test_six_fields_fire_once_in_autumn_although_cronsim_fires_twice() -> None:
    evening = datetime(2026, 10, 24, 20, tzinfo=ZoneInfo(BERLIN))
    theirs = of_cronsim("0 30 2 * * *", evening, 2)
    assert theirs[1] - theirs[0] == HOUR
    assert local("0 30 2 * * *", BERLIN, "2026-10-25") == ["02:30 +0200"]


def test_quarters_of_a_named_hour_fire_four_times_in_autumn_although_cronsim_fires_eight_times() -> None:
    evening = datetime(2026, 10, 24, 20, tzinfo=ZoneInfo(BERLIN))
    theirs = of_cronsim("*/15 2 * * *", evening, 8)
    assert theirs[-1] - theirs[0] < 2 * HOUR
    assert len(local("*/15 2 * * *", BERLIN, "2026-10-25")) == 4


def test_the_next_fire_is_later_although_cronsim_may_go_back() -> None:
    second_fold = datetime(2026, 10, 25, 1, 15, tzinfo=UTC)
    [theirs] = of_cronsim("30 2 * * *", second_fold.astimezone(ZoneInfo(BERLIN)), 1)
    assert theirs < second_fold
    ours = cron("30 2 * * *", tz=BERLIN).timetable().after(second_fold)
    assert ours == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_where_clocks_go_evenly_we_and_cronsim_agree(expression: str) -> None:
    table = cron(expression).timetable()
    fire: datetime | None = datetime(2026, 2, 27, 11, 58, 3, tzinfo=UTC)
    assert fire is not None
    for theirs in itertools.islice(CronSim(expression, fire.replace(tzinfo=None)), 100):
        fire = table.after(fire)
        assert fire == theirs.replace(tzinfo=UTC)


# Every minute watched: a sample of tests/prove/test_timetable.py.


@pytest.mark.parametrize(("gap", "fold"), RULES)
@pytest.mark.parametrize(
    ("zone", "of"), [(NEW_YORK, 2026), (BERLIN, 2026), (LORD_HOWE, 2026), ("Antarctica/Troll", 2026)]
)
def test_around_jumps_we_fire_when_a_watcher_of_the_clock_would(zone: str, of: int, gap: Any, fold: Any) -> None:
    for jump in jumps(zone, year(of), year(of + 1)):
        start, end = jump - 4 * HOUR, jump + 4 * HOUR
        minutes = wall(zone, start, end)
        for text in EXPRESSIONS:
            if text == "* * * * * *":
                continue
            table = cron(text, tz=zone, gap=gap, fold=fold).timetable()
            expected = list(watch(Expression(text), minutes, gap, fold))
            around = (start - timedelta(microseconds=1), end - timedelta(microseconds=1))
            assert fires(table, *around) == expected, text
            assert fires_back(table, *around) == expected, text
            assert table.count(*around) == len(expected), text


moments = st.integers(0, 3653 * 86_400 * 10**6).map(lambda us: year(2020) + timedelta(microseconds=us))
zones = st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, KOLKATA, "Africa/Casablanca", "Antarctica/Casey", "UTC"])


@given(st.sampled_from(EXPRESSIONS), zones, moments, st.integers(0, 200_000), st.sampled_from(RULES))
def test_forwards_backwards_and_counted_are_the_same(
    expression: str, zone: str, start: datetime, seconds: int, rules: Any
) -> None:
    table = cron(expression, tz=zone, gap=rules[0], fold=rules[1]).timetable()
    end = start + timedelta(seconds=seconds / 40 if expression == "* * * * * *" else seconds)
    found = fires(table, start, end)
    assert found == fires_back(table, start, end)
    assert len(found) == table.count(start, end)
    assert all(start < fire <= end for fire in found)
    assert found == sorted(set(found))


@given(st.sampled_from(EXPRESSIONS), zones, moments, moments, moments)
def test_counts_add_up(expression: str, zone: str, one: datetime, two: datetime, three: datetime) -> None:
    first, middle, last = sorted((one, two, three))
    table = cron(expression, tz=zone).timetable()
    assert table.count(first, middle) + table.count(middle, last) == table.count(first, last)


def test_a_month_of_seconds_is_counted_without_walking_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table = cron("* * * * * *", tz=BERLIN).timetable()
    for step in ("at_or_after", "at_or_before"):
        monkeypatch.delattr(Pattern, step)
    assert table.count(year(2026), year(2026) + timedelta(days=30)) == 30 * 86_400


# What is accepted, and what is refused with which words.


@pytest.mark.parametrize(
    ("alias", "next_fires"),
    [
        ("@hourly", ["02-26 14:00", "02-26 15:00"]),
        ("@daily", ["02-27 00:00", "02-28 00:00"]),
        ("@midnight", ["02-27 00:00", "02-28 00:00"]),
        ("@weekly", ["03-01 00:00", "03-08 00:00"]),
        ("@monthly", ["03-01 00:00", "04-01 00:00"]),
        ("@yearly", ["01-01 00:00", "01-01 00:00"]),
        ("@annually", ["01-01 00:00", "01-01 00:00"]),
        (" @Hourly ", ["02-26 14:00", "02-26 15:00"]),
    ],
)
def test_an_alias_fires_when_its_name_says(alias: str, next_fires: list[str]) -> None:
    thursday = datetime(2026, 2, 26, 13, 5, tzinfo=UTC)
    found = itertools.islice(preview(cron(alias), ANCHOR, thursday), 2)
    assert [f"{fire.at:%m-%d %H:%M}" for fire in found] == next_fires
    assert alias.strip().lower() in ALIASES


def test_what_comes_every_twenty_eight_years_is_found() -> None:
    table = cron("0 0 * 2 MON#5").timetable()
    assert [fire.year for fire in fires(table, year(2000), year(2130))] == [2016, 2044, 2072, 2112]
    assert table.last(year(2000), year(2112)) == datetime(2072, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("61 * * * *", "the minute of '61 * * * *' is wrong"),
        ("0 24 * * *", "the hour of"),
        ("0 0 32 * *", "the day-of-month of"),
        ("0 0 * FOO *", "the month of"),
        ("0 0 * * 8", "the day-of-week of"),
        ("60 * * * * *", "the second of"),
        ("*/0 * * * *", "the minute of"),
        ("* * 31 2 *", "never fires"),
        ("0 0 31 4,6,9,11 *", "never fires"),
        ("* * * *", "is no cron expression"),
        ("", "is no cron expression"),
        ("@reboot", "is no cron expression"),
        ("9" * 5000 + " * * * *", "is no cron expression"),
    ],
)
def test_a_wrong_expression_is_refused_and_the_right_form_shown(expression: str, says: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        cron(expression)
    assert refused.value.field == "schedule"
    assert says in str(refused.value)
    assert "'0 6 " in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("zone", "says"),
    [
        ("Europe/Berln", "'Europe/Berlin'"),
        ("berlin", "'Europe/Berlin'"),
        ("New York", "'America/New_York'"),
        ("", "an IANA name such as 'Europe/Berlin'"),
        ("localtime", "no zone"),
        ("../../etc/passwd", "no zone"),
        ("right/Europe/Berlin", "no zone"),
    ],
)
def test_an_unknown_zone_is_refused_and_one_like_it_named(zone: str, says: str) -> None:
    for schedule in ("0 6 * * *", {"every": 5}, {"at": "2030-01-01T00:00:00Z"}):
        with pytest.raises(InvalidSchedule) as refused:
            parse(schedule, zone)
        assert refused.value.field == "timezone"
        assert says in str(refused.value)


@pytest.mark.parametrize(
    ("schedule", "field", "says"),
    [
        ({"every": 0}, "schedule.every", '{"every": 300}'),
        ({"every": -5}, "schedule.every", '{"every": 300}'),
        ({"every": True}, "schedule.every", '{"every": 300}'),
        ({"every": "5m"}, "schedule.every", '{"every": 300}'),
        ({"every": float("nan")}, "schedule.every", '{"every": 300}'),
        ({"every": float("inf")}, "schedule.every", '{"every": 300}'),
        ({"at": None}, "schedule.at", "2030-01-31T06:00:00+01:00"),
        ({"at": "2030-01-31T06:00:00"}, "schedule.at", "with its offset"),
        ({"at": "tomorrow"}, "schedule.at", "with its offset"),
        ({"at": 1893456000}, "schedule.at", "with its offset"),
        ({"at": "0001-01-01T00:00:00+01:00"}, "schedule.at", "from 1971 to 2998"),
        ({"at": "9999-12-31T23:59:59-01:00"}, "schedule.at", "from 1971 to 2998"),
        ({"at": year(2030).replace(tzinfo=None)}, "schedule.at", "with its offset"),
        ({}, "schedule", '{"at": "2030-01-31T06:00:00+01:00"}'),
        ({"every": 5, "at": "2030-01-31T06:00:00Z"}, "schedule", '{"every": 300}'),
        (5, "schedule", '{"every": 300}'),
    ],
)
def test_a_wrong_form_is_refused_and_the_right_one_shown(schedule: object, field: str, says: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        parse(schedule)
    assert refused.value.field == field
    assert says in str(refused.value)


@pytest.mark.parametrize(("field", "value"), [("gap", "before"), ("fold", "last")])
def test_a_wrong_rule_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidSchedule, match=f"{field} must be") as refused:
        parse("0 6 * * *", **{field: value})
    assert refused.value.field == field
    with pytest.raises(InvalidSchedule, match="cron expression only"):
        parse({"every": 5}, **{field: value})


records = st.one_of(
    st.builds(Cron, st.sampled_from(EXPRESSIONS), zones, st.sampled_from([None, "after"]), st.just("both")),
    st.builds(Every, st.floats(0.1, 1e9), zones),
    st.builds(At, moments, zones),
)


@given(records)
def test_what_is_said_survives_being_stored_and_shown(when: When) -> None:
    assert msgspec.json.decode(msgspec.json.encode(when), type=When) == when
    rules = (when.gap, when.fold) if isinstance(when, Cron) else ()
    assert parse(form(when), when.timezone, *rules) == when
    assert parse(when) == when


# Intervals and single times.


@given(st.integers(1, 10**6), moments, moments)
def test_intervals_never_drift(tenths: int, anchor: datetime, after: datetime) -> None:
    fire = every(timedelta(milliseconds=100 * tenths)).timetable(anchor).after(after)
    assert fire is not None
    assert fire > after
    assert (fire - anchor) % timedelta(milliseconds=100 * tenths) == timedelta(0)
    assert fire == anchor or fire - after <= timedelta(milliseconds=100 * tenths)


@given(st.integers(600, 10**6), moments, moments, st.integers(0, 10**5))
def test_intervals_are_the_same_forwards_backwards_and_counted(
    tenths: int, anchor: datetime, start: datetime, seconds: int
) -> None:
    table, end = every(tenths / 10).timetable(anchor), start + timedelta(seconds=seconds)
    found = fires(table, start, end)
    assert found == fires_back(table, start, end)
    assert table.count(start, end) == len(found)


def test_the_first_interval_is_the_anchor_itself() -> None:
    table = every(60).timetable(ANCHOR)
    assert table.after(ANCHOR - timedelta(days=9)) == ANCHOR
    assert table.after(ANCHOR) == ANCHOR + timedelta(seconds=60)


def test_one_time_comes_once() -> None:
    moment = datetime(2030, 1, 31, 6, tzinfo=ZoneInfo(BERLIN))
    table = at(moment).timetable()
    assert fires(table, ANCHOR, year(2040)) == [datetime(2030, 1, 31, 5, tzinfo=UTC)]
    assert fires_back(table, ANCHOR, year(2040)) == [datetime(2030, 1, 31, 5, tzinfo=UTC)]
    assert table.count(moment, year(2040)) == 0
    assert table.after(moment) is None


@pytest.mark.parametrize("when", [cron("* * * * *"), every(5), every(3e9), at(year(2000))])
def test_nothing_is_planned_beyond_the_year_2999(when: When) -> None:
    assert when.timetable(ANCHOR).after(datetime(9999, 12, 31, tzinfo=UTC)) is None


def test_a_time_before_1970_is_no_trouble() -> None:
    assert cron("0 0 * * *").timetable().after(datetime(1, 1, 1, tzinfo=UTC)) == datetime(1970, 1, 2, tzinfo=UTC)


# Previews.


def test_a_preview_marks_gaps() -> None:
    coming = list(
        itertools.islice(preview(cron("30 2 * * *", tz=BERLIN), ANCHOR, datetime(2026, 3, 28, tzinfo=UTC)), 3)
    )
    assert [(fire.local, fire.note) for fire in coming] == [
        ("2026-03-28T02:30:00+01:00", None),
        ("2026-03-29T03:00:00+02:00", "gap"),
        ("2026-03-30T02:30:00+02:00", None),
    ]


def test_a_fire_at_the_end_of_a_gap_that_skipped_nothing_is_not_marked() -> None:
    [fire] = itertools.islice(preview(cron("0 3 * * *", tz=BERLIN), ANCHOR, datetime(2026, 3, 28, 12, tzinfo=UTC)), 1)
    assert (fire.local, fire.note) == ("2026-03-29T03:00:00+02:00", None)


def test_a_preview_marks_overlaps() -> None:
    both = cron("30 2 * * *", tz=BERLIN, fold="both")
    coming = list(itertools.islice(preview(both, ANCHOR, datetime(2026, 10, 24, 12, tzinfo=UTC)), 3))
    assert [(fire.local, fire.note) for fire in coming] == [
        ("2026-10-25T02:30:00+02:00", "overlap"),
        ("2026-10-25T02:30:00+01:00", "overlap"),
        ("2026-10-26T02:30:00+01:00", None),
    ]


def test_a_preview_shows_intervals_and_times_in_their_zone() -> None:
    [fire] = itertools.islice(preview(Every(3600, BERLIN), ANCHOR, ANCHOR), 1)
    assert (fire.local, fire.note) == ("2026-01-01T02:00:00+01:00", None)
    [only] = preview(At(ANCHOR, KOLKATA), ANCHOR, year(2025))
    assert (only.at, only.local, only.note) == (ANCHOR, "2026-01-01T05:30:00+05:30", None)
