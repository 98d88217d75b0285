"""Submissions, limits and filters refuse what makes no sense."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from headway.model.errors import InvalidJob
from headway.model.filters import JobFilter
from headway.model.limits import Limit, Rate
from headway.model.submission import INLINE_LIMIT, Dedupe, OnConflict, Submission


def submission(**given: Any) -> Submission:
    return Submission(**{"id": uuid7(), "kind": "call", "name": "f", "payload": "{}", **given})


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"priority": 101}, "priority"),
        ({"queue": ""}, "queue"),
        ({"queue": "x" * 201}, "queue"),
        ({"queue": "a\tb"}, "queue"),
        ({"name": ""}, "name"),
        ({"name": "nul\0"}, "name"),
        ({"payload": "x" * (INLINE_LIMIT + 1)}, "payload"),
        ({"metadata": {"x": "y" * 5000}}, "metadata"),
    ],
)
def test_a_wrong_submission_is_refused_and_the_field_named(given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        submission(**given)
    assert refused.value.field == field


def test_arguments_at_the_limit_are_accepted() -> None:
    assert len(submission(payload="x" * INLINE_LIMIT).payload) == INLINE_LIMIT


def test_what_counts_is_bytes() -> None:
    with pytest.raises(InvalidJob, match="bytes"):
        submission(payload="ä" * (INLINE_LIMIT - 1))


def test_only_a_submission_that_concerns_no_other_job_is_plain() -> None:
    assert submission().plain
    assert not submission(key="k").plain
    assert not submission(on_conflict=OnConflict.WAIT).plain
    assert not submission(dedupe=Dedupe("k")).plain
    assert not submission(after=(uuid7(),)).plain


def test_a_repeat_has_the_same_digest_and_another_content_has_not() -> None:
    first = submission(id=uuid7(), payload='{"a": 1}')
    assert first.digest() == submission(payload='{"a": 1}').digest()
    assert first.digest() != submission(payload='{"a": 2}').digest()
    assert first.digest() != submission(payload='{"a": 1}', queue="other").digest()


@given(st.integers(1, 10_000), st.sampled_from(["s", "m", "h", "d", "10s", "5m"]))
def test_a_rate_reads_back_as_it_was_written(count: int, period: str) -> None:
    rate = Rate.parse(f"{count}/{period}")
    assert Rate.parse(str(rate)) == rate


@pytest.mark.parametrize("text", ["", "10", "0/s", "10/0s", "ten/s", "10/y"])
def test_a_wrong_rate_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidJob, match="10/s"):
        Rate.parse(text)


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidJob, match="pause"):
        Limit(max_running=0)


def test_a_filter_knows_states_and_labels_only() -> None:
    assert JobFilter(states=("FAILED", "pending")).states == ("FAILED", "pending")
    with pytest.raises(InvalidJob, match="unknown state"):
        JobFilter(states=("lost-in-space",))
