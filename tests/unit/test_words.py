"""Times and numbers as people read and type them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.times import length, moment
from headway.model.errors import ConfigurationError
from headway.model.words import ago, count, dated, duration, listed, size

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"), (-1, "0 s"), (0.04, "0 s"), (0.44, "0.4 s"), (9.96, "10 s"), (10, "10 s"), (59.9, "59 s"),
        (60, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (3601, "1 h"), (11_100, "3 h 5 min"), (86_399, "23 h 59 min"),
        (86_400, "1 d"), (90_000, "1 d 1 h"), (30 * 86_400, "30 d"),
    ],
)  # fmt: skip
def test_a_length_of_time_has_two_units_at_most(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_moments_are_told_with_their_distance() -> None:
    assert ago(NOW, NOW) == "0 s ago"
    assert ago(NOW + timedelta(hours=1), NOW) == "in 1 h"
    assert dated(NOW - timedelta(minutes=2), NOW) == "2029-12-31 23:58:00 UTC (2 min ago)"


def test_numbers_and_lists() -> None:
    assert [count(0, "job"), count(1, "job"), count(1200, "job")] == ["0 jobs", "1 job", "1,200 jobs"]
    assert [listed([]), listed(["a"]), listed(["a", "b"])] == ["", "a", "a and b"]
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert [size(0), size(1023), size(1536), size(5 << 30)] == ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("now", 0), ("-1h", -3600), ("+2d", 172_800), ("-1h30m", -5400), ("-90s", -90), ("-1.5h", -5400), ("-2min", -120)],
)
def test_times_relative_to_now(text: str, seconds: float) -> None:
    assert moment(text, NOW, "--from") == NOW + timedelta(seconds=seconds)


def test_times_in_rfc_3339() -> None:
    assert moment("2030-01-31T06:00:00Z", NOW, "--from") == datetime(2030, 1, 31, 6, tzinfo=UTC)
    assert moment("2030-01-31T06:00:00.5+01:00", NOW, "--to") == datetime(2030, 1, 31, 5, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("yesterday", "--from 'yesterday' is no time: write 2030-01-31T06:00:00Z, or relative to now -1h"),
        ("1h", "is no time"),
        ("-1y", "is no time"),
        ("", "is no time"),
        ("-999999999d", "is no time that a calendar has"),
        ("²", "is no time"),
        ("2030-01-31T06:00:00", "has no time zone: write 2030-01-31T06:00:00Z for UTC"),
    ],
)
def test_a_wrong_time_is_refused_with_an_example(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        moment(text, NOW, "--from")
    assert words in str(refused.value)


def test_lengths_of_time() -> None:
    assert [length(text, "--keep") for text in ("90", "1.5", "90s", "7d", "1h30m")] == [90, 1.5, 90, 604_800, 5400]
    for text in ("", "7 days", "-1h", "h"):
        with pytest.raises(ConfigurationError, match="is no length of time"):
            length(text, "--keep")


@given(st.one_of(st.text(max_size=12), st.from_regex(r"\A[+-]?[0-9]{1,12}\.?[0-9]{0,3}[smhdw]?\Z")))
def test_whatever_is_typed_is_a_time_or_refused_in_words(text: str) -> None:
    for read in (lambda: moment(text, NOW, "--from"), lambda: length(text, "--keep")):
        with suppress(ConfigurationError):
            read()
