"""Looking: filters, labels, pages, counts, functions."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headway.model.filters import JobFilter
from headway.model.job import Release
from headway.model.states import Label, Outcome, State
from headway.model.worker import FunctionInfo
from tests.contract.house import House


async def found(house: House, **wanted: Any) -> list[UUID]:
    return [job.id for job in await house.store.find(JobFilter(**wanted))]


async def one_of_each(house: House) -> dict[str, UUID]:
    """A job in every state and with every label, by its name."""
    jobs: dict[str, UUID] = {}

    async def run(name: str) -> Any:
        claim = await house.running(name)
        jobs[name] = claim.id
        return claim

    jobs["creating"] = await house.submit("creating", hold=True)
    jobs["blocked"] = await house.submit("blocked", after=(jobs["creating"],))
    jobs["scheduled"] = await house.submit("scheduled", delay=1e6)
    await run("running")
    await house.cancel((await run("cancelling")).id)
    await house.complete(await run("completed"))
    await house.fail(await run("failed"))
    await house.give_up(await run("cancelled"))
    await house.release(Release.parked(await run("parked"), 1e6))
    await house.retry_later(await run("retrying"), wait=1e6)
    jobs["pending"] = await house.submit("pending")
    return jobs


async def test_jobs_are_found_by_state_and_label_in_any_case(house: House) -> None:
    jobs = await one_of_each(house)
    waiting = {"scheduled", "parked", "retrying", "pending"}
    expected: dict[str, set[str]] = {state.value: {state.value} for state in State}
    expected[State.SCHEDULED] = waiting
    expected |= {label.value: {label.value} for label in Label}
    expected[Label.SUBMITTED] = waiting | {"creating"}
    for word, names in expected.items():
        assert set(await found(house, states=(word.upper(),))) == {jobs[name] for name in names}, word
    assert set(await found(house, states=("failed", "pending"))) == {jobs["failed"], jobs["pending"]}
    assert set(await found(house)) == set(jobs.values())


async def test_each_job_shows_its_label(house: House) -> None:
    for name, job_id in (await one_of_each(house)).items():
        assert (await house.get(job_id)).label == name


async def test_jobs_are_found_by_what_they_are(house: House) -> None:
    await house.submit("other")
    job_id = await house.submit(
        "mail.send", kind="http", queue="mail", key="k", tags=("vip", "daily"), created_by="ann"
    )
    for wanted in (
        {"kind": "http"},
        {"queue": "mail"},
        {"name": "mail.send"},
        {"name_prefix": "mail."},
        {"key": "k"},
        {"tags": ("vip",)},
        {"tags": ("daily", "vip")},
        {"created_by": "ann"},
        {"kind": "http", "queue": "mail", "tags": ("vip",), "states": ("pending",)},
    ):
        assert await found(house, **wanted) == [job_id], wanted
    for wanted in (
        {"kind": "script"},
        {"tags": ("vi",)},
        {"tags": ("vip", "weekly")},
        {"name_prefix": "ail"},
        {"queue": "mail", "key": "other"},
    ):
        assert await found(house, **wanted) == [], wanted


async def test_a_name_prefix_is_taken_literally(house: House) -> None:
    await house.submit("abc")
    literal = await house.submit("a%_c")
    assert await found(house, name_prefix="a%_") == [literal]


async def test_jobs_are_found_by_each_of_their_times(house: House) -> None:
    start = house.now
    early = await house.running("early")
    await house.complete(early)
    house.clock.advance(1000)
    middle = house.now
    late = await house.running("late")
    await house.complete(late)
    waiting = await house.submit("waiting", delay=5000)
    for time in ("created", "run", "started", "finished"):
        assert early.id in await found(house, time=time, until=middle)
        assert late.id not in await found(house, time=time, until=middle)
        assert late.id in await found(house, time=time, since=middle)
        assert await found(house, time=time, since=start, until=middle) == [early.id]
    assert await found(house, time="run", since=house.after(4000)) == [waiting]
    assert waiting not in await found(house, time="finished", since=start)
    created = (await house.get(late.id)).created_at
    assert late.id in await found(house, since=created)
    assert late.id not in await found(house, until=created)
    assert late.id in await found(house, until=created + timedelta(microseconds=1))


async def test_pages_are_stable_while_jobs_arrive_and_leave(house: House) -> None:
    jobs = [await house.submit() for _ in range(7)]
    pages: list[UUID] = []
    cursor = None
    while page := await found(house, limit=2, cursor=cursor):
        pages += page
        cursor = page[-1]
        await house.submit()
        if len(pages) == 2:
            await house.delete(jobs[5])
    assert pages == jobs[::-1]
    assert len(await found(house, limit=2)) == 2


async def test_jobs_are_read_in_the_order_asked_for(house: House) -> None:
    first, second = await house.submit(), await house.submit()
    unknown = house.new_id()
    records = await house.store.get([second, unknown, first])
    assert [record and record.id for record in records] == [second, None, first]


async def test_counts_are_by_queue_and_state(house: House) -> None:
    assert await house.store.counts() == {}
    await house.submit(queue="a")
    await house.submit(queue="a")
    await house.running(queue="b")
    assert await house.store.counts() == {"a": {State.SCHEDULED: 2}, "b": {State.RUNNING: 1}}


async def test_all_attempts_are_told(house: House) -> None:
    claim = await house.running()
    await house.retry_later(claim)
    await house.lose(await house.claim_one())
    last = await house.claim_one()
    running = await house.store.attempts(claim.id)
    await house.complete(last)
    attempts = await house.store.attempts(claim.id)
    assert [attempt.number for attempt in attempts] == [1, 2, 3]
    assert [attempt.outcome for attempt in running] == [Outcome.FAILED, Outcome.LOST, None]
    assert [attempt.outcome for attempt in attempts] == [Outcome.FAILED, Outcome.LOST, Outcome.SUCCEEDED]
    assert attempts[0].error is not None
    assert attempts[0].error.message == "it broke"
    assert all(attempt.claimed_at and attempt.finished_at for attempt in attempts)
    assert {attempt.worker for attempt in attempts} == {str(house.worker.id)}


def function(version: str | None, queue: str = "default") -> FunctionInfo:
    return FunctionInfo(
        name="app.mail", queue=queue, defaults={"priority": 5}, parameters={"type": "object"}, code_version=version
    )


async def test_announced_functions_are_known_to_all(house: House) -> None:
    await house.store.announce([function("1"), FunctionInfo(name="app.sms", queue="q", defaults={}, parameters={})])
    mail, sms = await house.store.functions()
    assert (mail.name, mail.queue, mail.defaults, mail.parameters) == (
        "app.mail",
        "default",
        {"priority": 5},
        {"type": "object"},
    )
    assert (mail.code_version, mail.announced_at, sms.code_version) == ("1", house.now, None)
    await house.store.announce([])


@pytest.mark.parametrize(
    ("first", "second", "stands"),
    [("1", "2", "second"), ("2", "1", "first"), ("1", "1", "second"), (None, "1", "second"), ("1", None, "first")],
)
async def test_an_older_code_version_does_not_overwrite_a_newer_one(
    house: House, first: str | None, second: str | None, stands: str
) -> None:
    await house.store.announce([function(first, queue="first")])
    await house.store.announce([function(second, queue="second")])
    assert [info.queue for info in await house.store.functions()] == [stands]
