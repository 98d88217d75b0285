"""When a failed job is tried again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.model.errors import InvalidJob
from headway.model.job import failure_of
from headway.model.retry import Failure, Retry, Rule

retries = st.builds(
    Retry,
    max_attempts=st.integers(1, 100),
    wait=st.floats(0, 1000),
    backoff=st.sampled_from(["fixed", "linear", "exponential"]),
    max_wait=st.floats(0, 10_000),
    jitter=st.floats(0, 1),
)
chances = st.floats(0, 1, exclude_max=True)
NOTHING = Failure()


@given(retries, st.integers(1, 200), chances)
def test_there_is_a_next_attempt_exactly_while_failures_are_fewer_than_attempts(
    retry: Retry, failures: int, chance: float
) -> None:
    wait = retry.next_wait(failures, NOTHING, lambda: chance)
    assert (wait is not None) == (failures < retry.max_attempts)


@given(retries, st.integers(1, 99), chances)
def test_a_wait_stays_within_its_bounds(retry: Retry, failures: int, chance: float) -> None:
    wait = retry.next_wait(failures, NOTHING, lambda: chance)
    if wait is not None:
        assert 0 <= wait <= retry.max_wait * (1 + retry.jitter) + 1e-9


@given(st.floats(0.001, 100), st.integers(1, 20))
def test_waits_never_shrink(wait: float, failures: int) -> None:
    for backoff in ("fixed", "linear", "exponential"):
        retry = Retry(max_attempts=100, wait=wait, backoff=backoff, jitter=0)
        first, second = (retry.next_wait(n, NOTHING, lambda: 0.5) for n in (failures, failures + 1))
        assert first is not None
        assert second is not None
        assert second >= first


def test_exponential_waits_double_up_to_the_limit() -> None:
    retry = Retry(max_attempts=10, wait=2, max_wait=10, jitter=0)
    assert [retry.next_wait(n, NOTHING, lambda: 0.5) for n in (1, 2, 3, 4)] == [2, 4, 8, 10]


@given(retries)
def test_a_policy_survives_being_stored(retry: Retry) -> None:
    assert msgspec.json.decode(msgspec.json.encode(retry), type=Retry) == retry


@pytest.mark.parametrize(
    ("rule", "failure", "matches"),
    [
        (Rule(on="exception", match="ValueError"), failure_of(ValueError("x")), True),
        (Rule(on="exception", match="OSError"), failure_of(ConnectionError("x")), True),
        (Rule(on="exception", match="KeyError"), failure_of(ValueError("x")), False),
        (Rule(on="message", match="quota .* exceeded"), Failure(message="quota of 5 exceeded"), True),
        (Rule(on="status", match="500-599"), Failure(status=503), True),
        (Rule(on="status", match="500-599"), Failure(status=404), False),
        (Rule(on="status", match="503"), Failure(), False),
        (Rule(on="exit", match="75"), Failure(exit=75), True),
    ],
)
def test_a_rule_matches_what_it_names(rule: Rule, failure: Failure, matches: bool) -> None:
    assert rule.matches(failure) is matches


def test_the_first_matching_rule_decides() -> None:
    rules = (Rule(on="message", match="gone", then="permanent"), Rule(on="exception", match="Exception", then=7.0))
    retry = Retry(max_attempts=5, rules=rules, jitter=0)
    assert retry.next_wait(1, failure_of(ValueError("gone for good")), lambda: 0.5) is None
    assert retry.next_wait(1, failure_of(ValueError("try later")), lambda: 0.5) == 7.0


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"max_attempts": 0}, "retry.max_attempts"),
        ({"wait": -1}, "retry.wait"),
        ({"jitter": 2}, "retry.jitter"),
        ({"backoff": "wild"}, "retry.backoff"),
        ({"max_attempts": "5"}, "retry.max_attempts"),
        ({"max_attempts": True}, "retry.max_attempts"),
        ({"wait": None}, "retry.wait"),
        ({"rules": Rule(on="exit", match="1")}, "retry.rules"),
        ({"rules": ("exit 1",)}, "retry.rules"),
    ],
)
def test_a_wrong_policy_is_refused_and_the_field_named(given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        Retry(**given)  # type: ignore[arg-type]
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("on", "match", "then"),
    [
        ("message", "(", "permanent"),
        ("status", "often", "permanent"),
        ("exit", "1-x", "permanent"),
        ("status", 503, "permanent"),
        ("weather", "rain", "permanent"),
        ("exit", "1", "never"),
        ("exit", "1", -1),
    ],
)
def test_a_wrong_rule_is_refused(on: str, match: str, then: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        Rule(on=on, match=match, then=then)  # type: ignore[arg-type]
    assert refused.value.field == "retry.rules"
