"""How an attempt ended decides what becomes of its job."""

from __future__ import annotations

import pytest
from uuid_utils.compat import uuid7

from headway.executors.contract import Cancelled, Completed, Failed, Lost, NoCode, Snoozed, TimedOut, Unknown
from headway.model.job import Claim, ErrorInfo, Finish, Release, encode
from headway.model.retry import Failure, Retry
from headway.model.states import Outcome, State
from headway.worker.judge import PARKED_WAIT, judge

ERROR = ErrorInfo("Boom", "it broke")
BROKEN = Failed(error=ERROR, failure=Failure(type="Boom"))


def claim(*, failures: int = 0, losses: int = 0, retry: Retry | None = None) -> Claim:
    return Claim(
        id=uuid7(),
        token=3,
        lease_id=uuid7(),
        kind="call",
        name="f",
        queue="default",
        payload="{}",
        attempt=failures + 1,
        failures=failures,
        losses=losses,
        timeout=None,
        correlation_id=None,
        traceparent=None,
        retry=encode(retry) if retry else None,
    )


def test_a_result_completes_the_job() -> None:
    move = judge(claim(), Completed(b"1"), 0.5, Retry(), lambda: 0.5)
    assert isinstance(move, Finish)
    assert (move.state, move.outcome, move.result, move.ran) == (State.COMPLETED, Outcome.SUCCEEDED, b"1", 0.5)


def test_a_failure_is_retried_by_the_jobs_own_policy() -> None:
    own = Retry(max_attempts=3, wait=5, jitter=0)
    move = judge(claim(failures=1, retry=own), BROKEN, 0, Retry(), lambda: 0.5)
    assert isinstance(move, Release)
    assert (move.reason, move.wait, move.outcome) == ("retry", 10.0, Outcome.FAILED)


def test_the_last_failure_is_the_end() -> None:
    move = judge(claim(failures=2, retry=Retry(max_attempts=3)), BROKEN, 0, Retry(), lambda: 0.5)
    assert isinstance(move, Finish)
    assert (move.state, move.outcome) == (State.FAILED, Outcome.FAILED)


def test_without_a_policy_the_kinds_default_holds() -> None:
    assert isinstance(judge(claim(), BROKEN, 0, Retry(), lambda: 0.5), Finish)
    assert isinstance(judge(claim(), BROKEN, 0, Retry(max_attempts=2), lambda: 0.5), Release)


def test_a_permanent_failure_is_not_retried() -> None:
    ending = Failed(error=ERROR, failure=Failure(), permanent=True)
    assert isinstance(judge(claim(retry=Retry(max_attempts=9)), ending, 0, Retry(), lambda: 0.5), Finish)


def test_a_timeout_counts_as_a_failure_of_its_own_kind() -> None:
    move = judge(claim(), TimedOut(ERROR), 1, Retry(), lambda: 0.5)
    assert isinstance(move, Finish)
    assert move.outcome is Outcome.TIMED_OUT


def test_a_lost_child_is_a_loss_and_only_a_suspect_is_poison() -> None:
    first = judge(claim(losses=1), Lost(ERROR), 1, Retry(), lambda: 0.5)
    alone = judge(claim(losses=2), Lost(ERROR), 1, Retry(), lambda: 0.5)
    assert isinstance(first, Release)
    assert first.reason == "lost"
    assert isinstance(alone, Finish)
    assert alone.outcome is Outcome.POISON


@pytest.mark.parametrize(
    ("ending", "expected"),
    [(Snoozed(60), ("snooze", 60)), (NoCode("f"), ("parked", PARKED_WAIT))],
)
def test_some_endings_put_the_job_back_uncharged(ending: Snoozed | NoCode, expected: tuple[str, float]) -> None:
    move = judge(claim(), ending, 1, Retry(), lambda: 0.5)
    assert isinstance(move, Release)
    assert (move.reason, move.wait) == expected


def test_what_nobody_can_find_out_is_unknown_and_never_retried() -> None:
    move = judge(claim(retry=Retry(max_attempts=9)), Unknown(ERROR), 1, Retry(), lambda: 0.5)
    assert isinstance(move, Finish)
    assert (move.state, move.outcome) == (State.FAILED, Outcome.UNKNOWN)


def test_a_job_may_cancel_itself() -> None:
    move = judge(claim(), Cancelled("nothing to do"), 1, Retry(), lambda: 0.5)
    assert isinstance(move, Finish)
    assert move.state is State.CANCELLED
