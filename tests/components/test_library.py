"""The library reaches the very same components, without messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from headway import Headway
from headway.model.errors import HeadwayError, IllegalMove, InvalidJob, JobNotFound
from headway.model.states import State
from tests.contract.conftest import Maker
from tests.contract.house import House
from tests.contract.test_store_submit import count_statements
from tests.logs import Captured


@pytest.fixture
async def app(shared: House) -> AsyncIterator[Headway]:
    app = Headway("sqlite://", clock=shared.clock)
    app.client.adopt(shared.store)
    yield app
    app.client.leave(shared.store)


def told(lines: Captured) -> list[tuple[Any, ...]]:
    return [(line["component"], line["from"], line["to"]) for line in lines if line["event"] == "job.state_changed"]


async def test_all_that_the_library_does_is_told_by_the_components(app: Headway, lines: Captured) -> None:
    @app.job(name="f")
    async def f(number: int) -> None: ...

    job = await f.options(hold=True).asubmit(1)
    assert await app.arelease(job) == [State.SCHEDULED]
    assert await app.acancel(job) == [State.CANCELLED]
    assert await app.aretry(job) == [State.SCHEDULED]
    assert await app.adelete(job) == [State.CANCELLED]
    assert told(lines) == [
        ("create", None, "creating"),
        ("schedule", "creating", "scheduled"),
        ("cancel", "scheduled", "cancelled"),
        ("schedule", "cancelled", "scheduled"),
        ("cancel", "scheduled", "cancelled"),
    ]
    lines.clear()
    await app.asubmit_many([f.call(number) for number in range(3)])
    assert told(lines) == [("create", None, "creating"), ("schedule", "creating", "scheduled")] * 3


async def test_errors_are_raised_as_ever(app: Headway) -> None:
    @app.job(name="f")
    async def f() -> None: ...

    job = await f.asubmit()
    with pytest.raises(IllegalMove):
        await app.aretry(job)
    for act in (app.acancel, app.aretry, app.arelease, app.adelete, app.aget):
        with pytest.raises(JobNotFound):
            await act(uuid4())
    with pytest.raises(HeadwayError, match="unknown state"):
        await app.ajobs(state="done")


async def test_a_plain_submit_is_one_statement(app: Headway, shared: House, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.job(name="f")
    async def f(number: int) -> None: ...

    names = count_statements(shared, monkeypatch)
    await f.asubmit(1)
    await app.asubmit_many([f.call(number) for number in range(10)])
    assert names == ["insert_jobs", "insert_jobs"]


async def test_a_repeated_submission_is_shown_as_it_is_now(app: Headway, shared: House) -> None:
    @app.job(name="f")
    async def f() -> None: ...

    job_id = shared.new_id()
    await f.options(id=job_id).asubmit()
    await shared.complete(await shared.claim_one())
    again = await f.options(id=job_id).asubmit()
    assert (again.state, again.attempt, again.deduplicated) == (State.COMPLETED, 1, False)


async def test_jobs_of_any_kind_are_checked_as_their_kind_says(app: Headway) -> None:
    @app.job(name="welcome", queue="mail")
    async def welcome(user: int) -> None: ...

    job = await app.asubmit("call", {"function": "welcome", "args": [5]}, priority=3)
    assert (job.name, job.queue, job.priority, job.warnings) == ("welcome", "mail", 3, ())
    with pytest.raises(InvalidJob, match="the argument 'user' must be a whole number"):
        await app.asubmit("call", {"function": "welcome", "args": ["x"]})
    stranger = await app.asubmit("call", {"function": "unknown"})
    assert "no worker has announced the function 'unknown'" in stranger.warnings[0]
    elsewhere = await app.asubmit("installed elsewhere", {"x": 1}, name="n")
    assert elsewhere.record.payload == '{"x":1}'
    with pytest.raises(InvalidJob, match="a job of kind 'installed elsewhere' needs a name"):
        await app.asubmit("installed elsewhere", {})


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        ("call", {"function": "f", "kwargs": {"n": 10**5000}}, "kwargs can't be stored: Exceeds the limit"),
        ("call", {"function": "f", "args": [object()]}, "args can't be stored: Encoding objects of type object"),
        ("call", {"function": "f", "args": ["\ud800"]}, "args can't be stored: .*surrogates not allowed"),
        ("call", {"function": "f", "args": [float("nan")]}, "args holds NaN or an infinite number"),
        ("anything", {"deep": [{"x": float("inf")}]}, "deep holds NaN or an infinite number"),
        ("anything", {"x": object()}, "x can't be stored: .*; pass plain data"),
        ("anything", {1: 2}, r"a job of kind 'anything' takes a dict of its fields by name, not \{1: 2\}"),
        ("call", ["f"], "a job of kind 'call' takes a dict of its fields by name"),
        ("", {}, "kind must be 1 to 200 characters"),
    ],
)
async def test_what_a_job_of_any_kind_can_not_hold_is_refused_by_name(
    app: Headway, kind: str, fields: Any, says: str
) -> None:
    with pytest.raises(InvalidJob, match=says):
        await app.asubmit(kind, fields, name="n")
    assert await app.ajobs() == []


__all__ = ["Maker"]
