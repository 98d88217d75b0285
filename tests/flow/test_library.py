"""Submitting jobs and looking at them, as users of the library do, with a real worker beside."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from uuid import UUID, uuid4

import pytest

from headway import Dedupe, Headway, HeadwayError, Job
from headway.model.errors import (
    Conflict,
    IdTaken,
    IllegalMove,
    InvalidJob,
    InvalidRequest,
    JobFailed,
    JobNotFound,
    WaitTimeout,
)
from headway.model.states import Outcome, State
from tests.flow.waiting import until


class Colour(Enum):
    RED = "red"


@dataclass
class Invoice:
    id: UUID
    total: Decimal
    due: datetime
    colour: Colour
    parts: list[str]


INVOICE = Invoice(uuid4(), Decimal("19.90"), datetime(2031, 5, 4, 3, 2, 1, tzinfo=UTC), Colour.RED, ["ä", "b"])


async def test_a_submitted_job_runs_and_its_result_comes_back(app: Headway) -> None:
    @app.job
    async def add(a: int, b: int = 10) -> int:
        return a + b

    async with app.worker():
        job = await add.asubmit(1, b=2)
        assert (job.state, job.result, job.ended) == (State.SCHEDULED, None, False)
        done = await job.finished(60)
    assert (done.state, done.outcome, done.result) == (State.COMPLETED, Outcome.SUCCEEDED, 3)
    assert done.result_or_raise() == 3
    assert await add(1) == 11, "the function can still be called as ever"


async def test_arguments_and_results_keep_their_types(app: Headway) -> None:
    @app.job
    async def touch(invoice: Invoice, at: datetime, wait: timedelta) -> Invoice:
        assert isinstance(invoice, Invoice)
        assert isinstance(wait, timedelta)
        invoice.due = at + wait
        return invoice

    async with app.worker():
        at = datetime(2032, 1, 1, tzinfo=UTC)
        done = await (await touch.asubmit(INVOICE, at, timedelta(days=1))).finished(60)
    assert done.result == Invoice(INVOICE.id, INVOICE.total, datetime(2032, 1, 2, tzinfo=UTC), Colour.RED, ["ä", "b"])


def test_blocking_calls_serve_plain_code(app: Headway) -> None:
    ran = threading.Event()

    @app.job
    def note(word: str) -> str:
        ran.set()
        return word.upper()

    stop = asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with app.worker():
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        job = note.submit("hello")
        assert job.wait(60).result == "HELLO"
        assert ran.is_set()
        assert job.refresh().state is State.COMPLETED
        assert app.get(job.id).result == "HELLO"
        assert [found.id for found in app.jobs(state="completed")] == [job.id]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def test_a_blocking_call_on_a_running_loop_is_refused_and_names_the_async_one(sqlite_app: Headway) -> None:
    @sqlite_app.job
    async def f() -> None: ...

    with pytest.raises(HeadwayError, match="await asubmit"):
        f.submit()
    with pytest.raises(HeadwayError, match="await asubmit"):
        f.options(priority=1).submit()
    with pytest.raises(HeadwayError, match="await asubmit_many"):
        sqlite_app.submit_many([f.call()])
    with pytest.raises(HeadwayError, match="await aget"):
        sqlite_app.get(uuid4())
    with pytest.raises(HeadwayError, match=r"use `await job.finished\(\)` or `await app.await_ended\(job_id\)` there"):
        sqlite_app.wait(uuid4())
    assert await sqlite_app.ajobs() == []


def test_one_app_serves_two_event_loops_and_plain_threads(app: Headway) -> None:
    @app.job
    async def f(number: int) -> None: ...

    async def submit(number: int) -> UUID:
        jobs = await asyncio.gather(*(f.asubmit(number * 100 + i) for i in range(20)))
        return UUID(str(jobs[0].id))

    asyncio.run(submit(1))
    asyncio.run(submit(2))
    threads = [threading.Thread(target=asyncio.run, args=(submit(number),)) for number in (3, 4)]
    threads += [threading.Thread(target=f.submit, args=(number,)) for number in (5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(app.jobs(limit=1000)) == 4 * 20 + 2


def test_nothing_is_opened_before_first_use(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("unused")
    app = Headway(f"sqlite:///{directory / 'headway.db'}")
    app.job(len)
    Headway("postgresql://nobody@127.0.0.1:1/nowhere").worker()
    assert list(directory.iterdir()) == []


async def test_submit_many_stores_all_or_none(app: Headway) -> None:
    @app.job
    async def f(number: int) -> int:
        return number

    taken = await f.options(key="k", on_conflict="reject", delay=60).asubmit(0)
    with pytest.raises(Conflict) as conflict:
        await app.asubmit_many([f.call(1), f.options(key="k", on_conflict="reject").call(2), f.call(3)])
    assert conflict.value.conflicting_job_id == taken.id
    assert [job.id for job in await app.ajobs()] == [taken.id], "nothing of the refused batch may be stored"

    jobs = await app.asubmit_many([f.call(number) for number in range(500)] + [f.options(priority=5).call(500)])
    assert len({job.id for job in jobs}) == 501
    async with app.worker():
        results = [(await job.finished(60)).result for job in jobs]
    assert results == list(range(501))


async def test_an_id_of_ones_own_makes_a_repeat_harmless(app: Headway) -> None:
    @app.job
    async def f(number: int) -> None: ...

    mine = uuid4()
    first = await f.options(id=mine).asubmit(1)
    again = await f.options(id=mine).asubmit(1)
    assert first.id == again.id == mine
    with pytest.raises(IdTaken, match=str(mine)):
        await f.options(id=mine).asubmit(2)
    assert len(await app.ajobs()) == 1


async def test_no_job_starts_before_its_time(app: Headway) -> None:
    started: dict[str, datetime] = {}

    @app.job
    async def f(name: str) -> None:
        started[name] = datetime.now(UTC)

    async with app.worker():
        at = datetime.now(UTC) + timedelta(seconds=0.7)
        jobs = [
            await f.options(run_at=at).asubmit("at"),
            await f.options(delay=0.4).asubmit("delay"),
            await f.options(delay=timedelta(seconds=0.2)).asubmit("timedelta"),
        ]
        ends = [await job.finished(60) for job in jobs]
    assert started["at"] >= at
    assert jobs[0].desired_at == at
    for job in ends:
        assert job.claimed_at is not None
        assert timedelta(0) <= job.claimed_at - job.run_at < timedelta(seconds=0.5)
    assert list(started) == ["timedelta", "delay", "at"]


async def test_higher_priority_runs_first_and_equals_in_order(app: Headway) -> None:
    ran: list[str] = []

    @app.job(priority=-5)
    async def f(name: str) -> None:
        ran.append(name)

    jobs = [await f.asubmit("low 1"), await f.asubmit("low 2")]
    jobs += [await f.options(priority=p).asubmit(name) for p, name in ((0, "mid"), (100, "top"), (50, "high"))]
    async with app.worker(concurrency=1):
        for job in jobs:
            await job.finished(60)
    assert ran == ["top", "high", "mid", "low 1", "low 2"]


async def test_a_snapshot_is_frozen_and_refresh_gives_a_newer_one(app: Headway) -> None:
    @app.job(queue="mail", tags=["a"])
    async def f() -> int:
        return 1

    job = await f.options(tags=["x", "y"], metadata={"n": 1}, priority=3, correlation_id="c").asubmit()
    with pytest.raises(AttributeError, match="snapshot"):
        job.state = State.COMPLETED
    assert (job.queue, job.priority, job.tags, job.metadata) == ("mail", 3, ("x", "y"), {"n": 1})
    assert job.name in repr(job)
    async with app.worker(queues=["mail"]):
        done = await job.finished(60)
    assert job.state is State.SCHEDULED
    assert (await job.arefresh()).state is State.COMPLETED
    stored = done.record
    assert (stored.tags, stored.metadata, stored.correlation_id, stored.attempt) == (("x", "y"), {"n": 1}, "c", 1)
    for earlier, later in zip(
        (stored.created_at, stored.claimed_at, stored.started_at),
        (stored.claimed_at, stored.started_at, stored.finished_at),
        strict=True,
    ):
        assert earlier is not None
        assert later is not None
        assert earlier <= later
    with pytest.raises(AttributeError, match="no 'colour'"):
        _ = done.colour


async def test_waiting_has_a_limit(app: Headway) -> None:
    @app.job
    async def f() -> None: ...

    job = await f.asubmit()
    with pytest.raises(WaitTimeout, match=r"still scheduled after 0\.05 s"):
        await job.finished(0.05)
    with pytest.raises(TimeoutError):
        await asyncio.to_thread(job.wait, 0.01)
    with pytest.raises(JobFailed, match="scheduled"):
        job.result_or_raise()
    with pytest.raises(JobNotFound, match="was never accepted, was deleted, or retention removed it"):
        await app.aget(uuid4())


async def test_jobs_are_found_by_what_they_are(app: Headway) -> None:
    @app.job
    async def f() -> None: ...

    @app.job(queue="mail")
    async def g() -> None: ...

    one, two = await f.options(tags=["red"]).asubmit(), await g.options(delay=60).asubmit()
    three = await g.options(hold=True, created_by="ann").asubmit()

    async def found(**wanted: object) -> set[UUID]:
        return {job.id for job in await app.ajobs(**wanted)}

    assert await found(state="PENDING") == {one.id}
    assert await found(state=["scheduled", "creating"]) == {one.id, two.id, three.id}
    assert await found(queue="mail") == {two.id, three.id}
    assert await found(tag="red") == {one.id}
    assert await found(created_by="ann") == {three.id}
    assert await found(since=datetime.now(UTC) + timedelta(hours=1)) == set()
    assert [job.id for job in await app.ajobs(limit=2)] == [three.id, two.id]
    assert [job.id for job in await app.ajobs(cursor=two.id)] == [one.id]
    with pytest.raises(InvalidJob, match="unknown state 'done': use one of"):
        await app.ajobs(state="done")


async def test_a_job_on_hold_waits_for_its_release(app: Headway) -> None:
    @app.job
    async def f() -> str:
        return "went"

    async with app.worker():
        held, other = await f.options(hold=True).asubmit(), await f.asubmit()
        assert held.state is State.CREATING
        await other.finished(60)
        assert (await held.arefresh()).state is State.CREATING
        assert await app.arelease(held) == [State.SCHEDULED]
        assert (await held.finished(60)).result == "went"
        with pytest.raises(IllegalMove, match="only a job on hold can be released"):
            await app.arelease(held)


async def test_an_ended_job_can_be_run_again_under_its_id(app: Headway) -> None:
    @app.job
    async def f(fail: list[bool]) -> str:
        if len(seen) == 0:
            seen.append(1)
            raise ValueError("first time")
        return "second time"

    seen: list[int] = []
    async with app.worker():
        job = await f.asubmit([True])
        failed = await job.finished(60)
        assert failed.error is not None
        assert (failed.error.type, failed.error.message) == ("ValueError", "first time")
        assert "raise ValueError" in (failed.error.traceback or "")
        with pytest.raises(JobFailed, match="first time"):
            failed.result_or_raise()
        assert await app.aretry(job) == [State.SCHEDULED]
        again = await job.finished(60)
    assert (again.result, again.attempt, again.failures, again.error) == ("second time", 2, 0, None)


async def test_the_history_names_the_app_or_whoever_it_asks_for(app: Headway) -> None:
    @app.job
    async def f() -> None: ...

    job, other = await f.options(hold=True).asubmit(), await f.options(hold=True).asubmit()
    await app.arelease(job)
    await app.acancel(job)
    await app.aretry(job, by="ann")
    await app.acancel(other, by="bob")

    async def told(job_id: UUID) -> list[tuple[str, str | None]]:
        lines = await app.client.call(lambda store: store.history(job_id))
        return [(line.what, line.by) for line in lines if line.by]

    assert await told(job.id) == [("scheduled", app.name), ("cancel", app.name), ("retry", "ann")]
    assert await told(other.id) == [("cancel", "bob")]
    with pytest.raises(InvalidRequest, match="by must be the name of whoever asks, not 7"):
        await app.acancel(other, by=7)  # type: ignore[arg-type]


async def test_a_deleted_job_is_gone_also_a_running_one(app: Headway) -> None:
    started = asyncio.Event()

    @app.job
    async def f() -> None:
        started.set()
        await asyncio.Event().wait()

    async def gone(job: Job[None]) -> bool:
        try:
            await job.arefresh()
        except JobNotFound:
            return True
        return False

    async with app.worker():
        waiting = await f.options(delay=60).asubmit()
        await app.adelete(waiting)
        assert await gone(waiting)
        running = await f.asubmit()
        await started.wait()
        assert await app.adelete(running) == [State.CANCELLING]
        await until(lambda: gone(running), "the running job to be stopped and removed")
    assert await app.ajobs() == []


async def test_the_same_call_within_the_window_is_answered_with_the_first_job(app: Headway) -> None:
    @app.job(dedupe=60.0)
    async def f(number: int) -> int:
        return number

    async with app.worker():
        first = await f.asubmit(1)
        second = await f.asubmit(1)
        assert (second.id, second.deduplicated, first.deduplicated) == (first.id, True, False)
        assert second.name == first.name
        assert not (await f.asubmit(2)).deduplicated
        assert (await second.finished(60)).result == 1
        late = await f.asubmit(1)
        assert (late.id, late.state) == (first.id, State.COMPLETED)
        assert not (await f.options(dedupe=None).asubmit(1)).deduplicated
        keyed = [await f.options(dedupe=Dedupe("k", 60)).asubmit(n) for n in (3, 4)]
        assert keyed[0].id == keyed[1].id


async def test_a_failed_job_frees_its_window(app: Headway) -> None:
    @app.job(dedupe=60.0)
    async def f() -> None:
        raise ValueError

    async with app.worker():
        first = await f.asubmit()
        await first.finished(60)
        assert (await f.asubmit()).id != first.id


async def test_a_job_that_did_not_begin_in_time_expires(app: Headway) -> None:
    @app.job
    async def f() -> None: ...

    job = await f.options(expires=0.3).asubmit()
    late = await f.options(expires=datetime.now(UTC) + timedelta(hours=1)).asubmit()
    await asyncio.sleep(0.35)
    async with app.worker():
        ended = await job.finished(60)
        assert (await late.finished(60)).state is State.COMPLETED
    assert (ended.state, ended.outcome) == (State.CANCELLED, Outcome.EXPIRED)
    assert ended.attempt == 0


async def test_a_large_result_comes_back_whole(app: Headway) -> None:
    @app.job
    async def f(size: int) -> str:
        return "é" * size

    async with app.worker():
        done = await (await f.asubmit(700_000)).finished(60)
    assert done.result == "é" * 700_000


async def test_jobs_submit_jobs_and_share_a_correlation_id(app: Headway) -> None:
    @app.job
    async def inner() -> None: ...

    @app.job
    def plain() -> UUID:
        return UUID(str(inner.submit().id))

    @app.job
    async def outer() -> UUID:
        return UUID(str((await inner.asubmit()).id))

    async with app.worker():
        for first in (await outer.options(correlation_id="c-7").asubmit(), await plain.asubmit()):
            inner_id = (await first.finished(60)).result
            assert inner_id is not None
            second = await app.await_ended(inner_id, 10)
            assert second.state is State.COMPLETED
            assert second.record.correlation_id == (first.record.correlation_id or str(first.id))


def test_after_close_the_next_call_opens_the_store_again(app: Headway) -> None:
    @app.job
    async def f() -> None: ...

    f.submit()
    app.close()
    f.submit()
    assert len(app.jobs()) == 2


async def test_workers_announce_functions_with_their_parameters(app: Headway) -> None:
    @app.job(name="mail.welcome", queue="mail", timeout=30)
    async def welcome(user: int, at: datetime | None = None) -> None: ...

    async with app.worker():
        [info] = await app.client.call(lambda store: store.functions())
        [worker] = await until(lambda: app.client.call(lambda store: store.workers()), "the worker to show itself")
    assert (info.name, info.queue, info.defaults) == ("mail.welcome", "mail", {"queue": "mail", "timeout": 30.0})
    assert set(info.parameters["properties"]) == {"user", "at"}
    assert info.parameters["required"] == ["user"]
    assert worker.queues == ("default", "mail"), "what its functions name"


async def test_why_a_job_does_not_run(app: Headway) -> None:
    @app.job
    async def later() -> None: ...

    job = await later.options(delay=3600).asubmit()
    assert "not due" in (await app.awhy(job.id)).sentence
    with pytest.raises(JobNotFound):
        await app.awhy(uuid4())
