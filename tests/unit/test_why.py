"""From facts to one sentence: the right reason, in words that make sense, for every job there can be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.model.facts import AHEAD_LIMIT, Facts, FullLimit, Other
from headway.model.job import Change, ErrorInfo, JobRecord, Progress
from headway.model.limits import Limit, Rate
from headway.model.overview import SILENT_AFTER, Pause, WorkerStats
from headway.model.retry import Retry
from headway.model.states import HELD, NO_CODE, PARENT_FAILED, TERMINAL, Outcome, State
from headway.model.submission import OnParentFailure
from headway.model.why import Reason, Why, explain
from headway.model.worker import WorkerInfo

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
JOB = UUID(int=1)
OTHER = Other(UUID(int=2), "import", State.RUNNING)
ERROR = ErrorInfo("ValueError", "it broke")


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def job(state: State = State.SCHEDULED, **changes: Any) -> JobRecord:
    fields: dict[str, Any] = dict.fromkeys(JobRecord.__struct_fields__)
    fields |= {
        "id": JOB,
        "kind": "call",
        "name": "mail.welcome",
        "key": "mail.welcome",
        "queue": "mail",
        "priority": 0,
        "state": state,
        "label": state.value,
        "payload": "{}",
        "desired_at": at(-10),
        "run_at": at(-10),
        "created_at": at(-10),
        "attempt": 0,
        "failures": 0,
        "losses": 0,
        "token": 0,
        "hold": False,
        "on_parent_failure": OnParentFailure.CANCEL,
        "tags": (),
        "after": (),
    }
    return JobRecord(**{**fields, **changes})


def worker(
    name: str = "w", *, slots: int = 10, held: int = 0, queues: tuple[str, ...] = ("mail",), silent: float = 1.0
) -> WorkerStats:
    info = WorkerInfo(id=UUID(int=9), name=name, host="here", pid=1, queues=queues, slots=slots)
    return WorkerStats(info=info, held=held, silent=silent)


def why(record: JobRecord, **facts: Any) -> Why:
    return explain(Facts(job=record, now=NOW, **{"workers": (worker(),), **facts}))


REASONS: list[tuple[Reason, str, JobRecord, dict[str, Any]]] = [
    (Reason.NOT_DUE, "not due until 2030-01-01 15:05:00 UTC (in 3 h 5 min).", job(run_at=at(11_100)), {}),
    (
        Reason.RETRY,
        "after failure 2 of 5: ValueError: it broke.",
        job(run_at=at(60), failures=2, outcome=Outcome.FAILED, error=ERROR, retry=Retry(max_attempts=5)),
        {},
    ),
    (Reason.RETRY, "after failure 1: ValueError", job(run_at=at(60), failures=1, error=ERROR), {}),
    (Reason.SNOOZED, "asked to be run later", job(run_at=at(60), failures=1), {"snoozed": True}),
    (Reason.LOST, "lost its worker 1 time and", job(run_at=at(60), losses=1, outcome=Outcome.LOST), {}),
    (Reason.LOST, "alone in a process of its own", job(run_at=at(60), losses=2, outcome=Outcome.LOST), {}),
    (
        Reason.PARKED,
        "no worker that took it has the code for the function f (never announced); the next try is in 12 s.",
        job(run_at=at(12), wait_reason=NO_CODE),
        {"function": "f"},
    ),
    (Reason.PARKED, "f (last announced 1 h ago)", job(wait_reason=NO_CODE), {"function": "f", "announced": at(-3600)}),
    (Reason.PARKED, "the code for jobs of kind http.", job(kind="http", wait_reason=NO_CODE), {}),
    (Reason.PAUSED, "The queue mail is paused.", job(), {"pause": Pause()}),
    (Reason.PAUSED, "(5 s ago) by ann.", job(), {"pause": Pause(at(-5), "ann"), "workers": ()}),
    (Reason.NO_WORKER, "No worker serves the queue mail.", job(), {"workers": ()}),
    (Reason.NO_WORKER, "(the last one, b, was seen 2 min ago)", job(), {
        "workers": (worker("a", silent=300), worker("b", silent=120))
    }),
    (Reason.BUSY, "All 20 slots of the 2 workers that serve the queue mail are busy, and 35 jobs are", job(), {
        "workers": (worker(held=10), worker(held=12)), "ahead": 35
    }),
    (Reason.BUSY, "The only slot of the worker that serves the queue mail is busy, and 1 job is", job(), {
        "workers": (worker(slots=1, held=1), worker(slots=99, silent=SILENT_AFTER + 1)), "ahead": 1
    }),
    (Reason.BUSY, "with 10 slots for mail and sms together, holds 4 jobs.", job(), {
        "workers": (worker(held=4, queues=("sms", "mail")),)
    }),
    (Reason.NEXT, "should take it at once", job(), {"workers": (worker(queues=("sms", "mail")),)}),
    (Reason.NEXT, "more than 10,000 jobs are before it", job(), {"ahead": AHEAD_LIMIT}),
    (
        Reason.LIMIT,
        f"the limit of the key vip: max_running 1 is reached by job {OTHER.id} (import, running), 3 jobs are before it",
        job(State.BLOCKED, wait_reason="limit"),
        {"full": (FullLimit(place="the key vip", limit=Limit(max_running=1), running=1, holders=(OTHER,), before=3),)},
    ),
    (
        Reason.LIMIT,
        "the queue mail: rate 10/60s is used up and opens again in 4 s.",
        job(),
        {"full": (FullLimit(place="the queue mail", limit=Limit(rate=Rate(10, 60.0)), opens_in=4.0),)},
    ),
    (
        Reason.OTHER_JOB,
        f"waits for job {OTHER.id} (import, running), in its line of the key mail.welcome.",
        job(State.BLOCKED, wait_reason="previous"),
        {"waits_for": (OTHER,)},
    ),
    (
        Reason.OTHER_JOB,
        "after which it is to run.",
        job(State.BLOCKED, wait_reason="after"),
        {"waits_for": (OTHER,)},
    ),
    (
        Reason.PARENT_FAILED,
        f"was to run after job {JOB}, which is gone, which did not complete",
        job(State.BLOCKED, wait_reason=PARENT_FAILED),
        {"waits_for": (Other(JOB),)},
    ),
    (Reason.NEXT, "waits for nothing any more", job(State.BLOCKED, wait_reason="after"), {}),
    (Reason.ON_HOLD, "on hold since 2030-01-01 11:59:50 UTC (10 s ago)", job(State.CREATING, hold=True), {}),
    (Reason.NOT_SUBMITTED, "stored 10 s ago", job(State.CREATING), {}),
    (
        Reason.RUNNING,
        "runs on worker w since 2030-01-01 11:59:57 UTC (3 s ago), attempt 2, 40 of 100 done (adding up).",
        job(State.RUNNING, started_at=at(-3), attempt=2, progress=Progress(40, 100, "adding up")),
        {"worker": "w", "lease_until": at(20)},
    ),
    (Reason.RUNNING, "in the hands of worker w", job(State.RUNNING, claimed_at=at(-3), attempt=1), {
        "worker": "w", "lease_until": at(20)
    }),
    (Reason.LEASE_LAPSED, "whose lease lapsed 5 s ago", job(State.RUNNING), {"worker": "w", "lease_until": at(-5)}),
    (
        Reason.CANCELLING,
        "since 2030-01-01 11:59:55 UTC (5 s ago), asked by ann because: wrong address; worker w has not",
        job(State.CANCELLING),
        {"worker": "w", "cancel": Change(at=at(-5), what="cancel", by="ann", detail="wrong address")},
    ),
    (
        Reason.ENDED,
        "completed at 2030-01-01 11:00:00 UTC (1 h ago) with attempt 2, after running for 30 s.",
        job(State.COMPLETED, outcome=Outcome.SUCCEEDED, attempt=2, started_at=at(-3630), finished_at=at(-3600)),
        {},
    ),
    (
        Reason.ENDED,
        "failed, outcome poison, at",
        job(State.FAILED, outcome=Outcome.POISON, attempt=3, finished_at=at(-1), error=ERROR),
        {},
    ),
    (
        Reason.ENDED,
        "was cancelled on request of ann at 2030-01-01 11:59:59 UTC (1 s ago) before it began: ValueError: it broke.",
        job(State.CANCELLED, outcome=Outcome.CANCELLED, finished_at=at(-1), error=ERROR),
        {"cancel": Change(at=at(-1), what="cancel", by="ann")},
    ),
    (
        Reason.EXPIRED,
        "had not begun by 2030-01-01 11:59:58 UTC (2 s ago).",
        job(State.CANCELLED, outcome=Outcome.EXPIRED, expires_at=at(-2), finished_at=at(-1)),
        {},
    ),
    (Reason.EXPIRED, "the next look of a worker cancels it", job(expires_at=at(-2)), {}),
    (Reason.EXPIRED, "the next look", job(State.BLOCKED, expires_at=at(-2)), {}),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "words", "record", "facts"), REASONS)
def test_each_reason_is_told(reason: Reason, words: str, record: JobRecord, facts: dict[str, Any]) -> None:
    answer = why(record, **facts)
    assert answer.reason is reason
    assert words in answer.sentence


def test_every_reason_and_every_state_is_among_them() -> None:
    assert {reason for reason, *_ in REASONS} == set(Reason)
    assert {record.state for _, _, record, _ in REASONS} == set(State)


@pytest.mark.parametrize(
    ("record", "facts", "stronger"),
    [
        (job(expires_at=at(-1), run_at=at(5)), {"pause": Pause()}, Reason.EXPIRED),
        (job(wait_reason=NO_CODE, failures=1, run_at=at(5)), {}, Reason.PARKED),
        (job(run_at=at(5)), {"pause": Pause(), "workers": ()}, Reason.NOT_DUE),
        (job(), {"pause": Pause(), "workers": ()}, Reason.PAUSED),
        (job(), {"workers": (), "full": (FullLimit(place="x", limit=Limit()),)}, Reason.NO_WORKER),
        (job(), {"workers": (worker(held=10),), "full": (FullLimit(place="x", limit=Limit()),)}, Reason.LIMIT),
    ],
)
def test_of_two_reasons_the_one_to_be_dealt_with_first_is_told(
    record: JobRecord, facts: dict[str, Any], stronger: Reason
) -> None:
    assert why(record, **facts).reason is stronger


def test_what_else_is_worth_knowing_stands_beside_it() -> None:
    answer = why(job(run_at=at(5), losses=1, expires_at=at(300)), pause=Pause(), workers=(), function="f", doomed=True)
    assert answer.reason is Reason.NOT_DUE
    assert answer.warnings == (
        "the queue mail is paused",
        "no worker serves the queue mail",
        "no worker has announced the function f",
        "the job expires in 5 min if it has not begun by then",
        "its worker was lost 1 time",
        "the job is removed as soon as it has ended",
    )
    assert why(job(State.COMPLETED, finished_at=NOW), workers=(), pause=Pause()).warnings == ()


def test_a_cancel_that_takes_long_is_warned_of() -> None:
    asked = Change(at=at(-61), what="cancel")
    assert why(job(State.CANCELLING), cancel=asked).warnings == ("the cancel has not been carried out for 1 min 1 s",)
    assert why(job(State.CANCELLING), cancel=Change(at=at(-59), what="cancel")).warnings == ()
    stuck = job(State.CANCELLING, progress=Progress(0, None, "the script can't be stopped yet: no route"))
    assert "the script can't be stopped yet: no route" in why(stuck).sentence


moments = st.one_of(st.none(), st.floats(-1e6, 1e6).map(at))
others = st.lists(st.sampled_from([OTHER, Other(UUID(int=3))]), max_size=5).map(tuple)


@given(
    state=st.sampled_from(State),
    outcome=st.one_of(st.none(), st.sampled_from(Outcome)),
    wait_reason=st.sampled_from([None, "after", "previous", "retried", "limit", NO_CODE, PARENT_FAILED]),
    times=st.tuples(moments, moments, moments, moments, st.floats(-1e6, 1e6).map(at)),
    numbers=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, AHEAD_LIMIT)),
    waits_for=others,
    full=st.booleans(),
    servers=st.lists(st.builds(worker, slots=st.integers(1, 5), held=st.integers(0, 9), silent=st.floats(0, 200))),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_whatever_the_facts_there_is_one_whole_sentence(  # type: ignore[no-untyped-def]
    state, outcome, wait_reason, times, numbers, waits_for, full, servers, flags
) -> None:
    claimed, started, finished, expires, run_at = times
    record = job(
        state, outcome=outcome, wait_reason=wait_reason, claimed_at=claimed, started_at=started, finished_at=finished,
        expires_at=expires, run_at=run_at, attempt=numbers[0], failures=numbers[1], losses=numbers[2], hold=flags[0],
    )  # fmt: skip
    limits = (FullLimit(place="the key k", limit=Limit(max_running=1), holders=waits_for or (OTHER,)),) if full else ()
    answer = why(
        record, ahead=numbers[3], waits_for=waits_for, full=limits, workers=tuple(servers), snoozed=flags[1],
        pause=Pause() if flags[2] else None, lease_until=claimed,
    )  # fmt: skip
    assert answer.sentence.endswith(".")
    assert "None" not in answer.sentence.replace("outcome None", "")
    assert "  " not in answer.sentence
    assert (answer.reason in {Reason.ENDED, Reason.EXPIRED}) >= (state in TERMINAL)
    assert (answer.reason in {Reason.RUNNING, Reason.LEASE_LAPSED, Reason.CANCELLING}) == (state in HELD)
