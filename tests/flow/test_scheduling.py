"""Schedules through the library: declared by decorators, made by hand, fired by a worker or by a scheduler apart."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headway import Headway, HeadwayError, Retry, Schedule, at, cron, every
from headway.declaring import NOBODY_FIRES
from headway.model.errors import ConfigurationError, InvalidSchedule, NameTaken, ScheduleNotFound
from headway.model.overview import WorkerStats
from headway.model.states import State
from headway.model.submission import Dedupe
from tests.flow.terminal import Terminal
from tests.flow.waiting import until

NEVER_SOON = "0 0 1 1 *"


def named(app: Headway) -> list[str]:
    return [found.name for found in app.schedules()]


# From the code.


async def test_a_function_with_a_schedule_runs_by_itself(app: Headway) -> None:
    runs: list[str] = []

    @app.job(name="tick", schedule=every(0.2))
    async def tick() -> None:
        runs.append("tick")

    async with app.worker(scheduler=True):
        await until(lambda: len(runs) >= 3, "three runs")
    found = await app.aget_schedule("tick")
    assert (found.source, found.schedule.job) == (app.name, {"kind": "call", "function": "tick", "kwargs": {}})
    assert app.name == "tests.flow.conftest", "the module in which the app was made"
    # A slow machine may skip some times: the last one overlapped, or several were coalesced.
    fired = [line.job_id for line in await app.aoccurrences("tick") if line.job_id]
    assert len(fired) >= 3
    job = await app.aget(fired[-1])
    assert (job.state, job.record.schedule_id, job.record.created_by) == (State.COMPLETED, found.id, "schedule:tick")


async def test_a_scheduler_apart_fires_for_a_worker(app: Headway) -> None:
    runs: list[int] = []

    @app.job(name="tick", schedule=Schedule(every(0.2), args=(7,), overlap="allow"))
    async def tick(number: int) -> None:
        runs.append(number)

    async def both() -> list[WorkerStats] | None:
        alive = await app.client.call(lambda store: store.worker_stats())
        return alive if len(alive) == 2 else None

    scheduler = app.scheduler(name="the clock")
    await scheduler.start()
    async with app.worker():
        await until(lambda: len(runs) >= 2, "two runs")
        # A worker may have done its first jobs before it shows itself.
        alive = await until(both, "both to show themselves")
        told = {worker.info.name: (worker.info.fires, worker.info.queues) for worker in alive}
        assert told.pop("the clock") == (True, ())
        assert list(told.values()) == [(False, ("default",))]
        assert await app.client.call(lambda store: store.schedulers()) == 1
    await scheduler.stop()
    assert await app.client.call(lambda store: store.schedulers()) == 0
    assert set(runs) == {7}


async def test_every_way_to_say_when_is_taken_by_the_decorator(sqlite_app: Headway) -> None:
    app, soon = sqlite_app, datetime.now(UTC) + timedelta(days=1)
    ways: list[Any] = [NEVER_SOON, cron(NEVER_SOON, tz="Europe/Berlin"), every(timedelta(hours=1)), at(soon)]
    for number, when in enumerate(ways):
        app.job(name=f"f{number}", schedule=when)(_nothing)
    app.job(name="full", queue="slow", schedule=Schedule(NEVER_SOON, timezone="Asia/Tokyo", tags=["x"]))(_nothing)
    async with app.worker():
        found = await app.aschedules()
    assert [(one.name, one.schedule.when.timezone) for one in found] == [
        ("f0", "UTC"),
        ("f1", "Europe/Berlin"),
        ("f2", "UTC"),
        ("f3", "UTC"),
        ("full", "Asia/Tokyo"),
    ]
    assert (found[3].next_at, found[4].schedule.tags, found[4].template.queue) == (soon, ("x",), "slow")


async def _nothing() -> None: ...


@pytest.mark.parametrize(
    ("schedule", "field", "says"),
    [
        ("61 * * * *", "schedule", "the minute of '61 * * * *' is wrong"),
        ("* * 31 2 *", "schedule", "never fires"),
        ("soon", "schedule", "'0 6 * * MON-FRI'"),
        (5, "schedule", "cron(…)"),
    ],
)
def test_a_wrong_schedule_is_refused_where_it_is_written(
    sqlite_app: Headway, schedule: Any, field: str, says: str
) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        sqlite_app.job(schedule=schedule)(_nothing)
    assert (refused.value.field, says in str(refused.value)) == (field, True)


def test_a_function_that_needs_arguments_must_be_given_them(sqlite_app: Headway) -> None:
    async def report(month: int) -> None: ...

    with pytest.raises(InvalidSchedule, match=r"Schedule\(…, args=\(42,\)\)"):
        sqlite_app.job(name="r1", schedule=NEVER_SOON)(report)
    with pytest.raises(InvalidSchedule, match="month"):
        sqlite_app.job(name="r2", schedule=Schedule(NEVER_SOON, args=("May",)))(report)
    sqlite_app.job(name="r3", schedule=Schedule(NEVER_SOON, kwargs={"month": 5}))(report)


async def test_methods_of_services_can_have_schedules(sqlite_app: Headway) -> None:
    app = sqlite_app

    class Mail:
        @app.job(name="mail.sweep", schedule=NEVER_SOON)
        async def sweep(self) -> None: ...

    async with app.worker():
        assert [found.name for found in await app.aschedules()] == ["mail.sweep"]
    assert Mail is not None


async def test_what_vanishes_from_the_code_is_paused_and_operators_changes_stay(store_url: str) -> None:
    old = Headway(store_url, name="shop", code_version="1")
    old.job(name="kept", schedule=cron(NEVER_SOON))(_nothing)
    old.job(name="gone", schedule=cron(NEVER_SOON))(_nothing)
    async with old.worker():
        await old.apause_schedule("kept", "too loud")
    await old.aclose()
    new = Headway(store_url, name="shop", code_version="2")
    new.job(name="kept", schedule=Schedule(NEVER_SOON, description="new"))(_nothing)
    async with new.worker():
        kept, gone = await new.aget_schedule("kept"), await new.aget_schedule("gone")
    await new.aclose()
    assert (kept.paused, kept.schedule.pause_reason, kept.schedule.description) == (True, "too loud", "new")
    assert (gone.paused, gone.schedule.pause_reason) == (True, "no longer declared in the code of shop")


async def test_a_time_in_the_code_that_is_over_stops_nobody(
    sqlite_app: Headway, caplog: pytest.LogCaptureFixture
) -> None:
    sqlite_app.job(name="over", schedule=at(datetime(2020, 1, 1, tzinfo=UTC)))(_nothing)
    async with sqlite_app.worker():
        assert await sqlite_app.aschedules() == []
    assert "would never fire" in caplog.text


async def test_a_worker_warns_while_nobody_fires_its_schedules(
    app: Headway, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.declaring.FIRST_LOOK", 0.05)
    monkeypatch.setattr("headway.declaring.LOOK_EVERY", 0.05)
    app.job(name="nightly", schedule=NEVER_SOON)(_nothing)
    with caplog.at_level(logging.WARNING):
        async with app.worker():
            await until(lambda: NOBODY_FIRES in caplog.text, "a warning")
            scheduler = app.scheduler()
            await scheduler.start()
            await until(lambda: app.client.call(lambda store: store.schedulers()), "the scheduler to be seen")
            await until(lambda: _silent(caplog), "silence")
            await scheduler.stop()


async def _silent(caplog: pytest.LogCaptureFixture) -> bool:
    """In the time of three looks."""
    caplog.clear()
    await asyncio.sleep(0.15)
    return NOBODY_FIRES not in caplog.text


async def test_a_worker_that_fires_or_has_no_schedules_does_not_warn(
    sqlite_app: Headway, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.declaring.FIRST_LOOK", 0.0)
    monkeypatch.setattr("headway.declaring.LOOK_EVERY", 0.01)
    async with sqlite_app.worker():
        await asyncio.sleep(0.1)
    sqlite_app.job(name="nightly", schedule=NEVER_SOON)(_nothing)
    async with sqlite_app.worker(scheduler=True):
        await asyncio.sleep(0.1)
    assert NOBODY_FIRES not in caplog.text


# By hand.


def test_a_schedule_is_made_looked_at_paused_resumed_run_and_removed(app: Headway) -> None:
    @app.job(name="report", queue="slow", retry=Retry(max_attempts=3))
    def report(month: int, *, draft: bool = False) -> int:
        return month

    made = app.schedule("monthly", cron("0 6 1 * *", tz="Europe/Berlin"), report.call(5, draft=True), jitter=30)
    assert made.schedule.job == {"kind": "call", "function": "report", "kwargs": {"month": 5, "draft": True}}
    assert (made.template.queue, made.template.retry) == ("slow", Retry(max_attempts=3))
    assert (made.schedule.jitter, made.paused, made.ended) == (30, False, False)
    assert named(app) == ["monthly"]
    paused = app.pause_schedule("monthly", "holidays")
    assert (made.updated_by, paused.updated_by, paused.schedule.pause_reason) == (app.name, app.name, "holidays")
    assert not app.resume_schedule(made).paused
    job = app.run_schedule(made.id)
    assert job.record.created_by == app.name
    assert (job.state, job.queue, job.record.schedule_id) == (State.SCHEDULED, "slow", made.id)
    assert app.run_schedule("monthly").id == job.id, "overlap is skip, and that one has not ended"
    fires = app.preview_schedule("monthly", 3, after=datetime(2030, 2, 15, tzinfo=UTC))
    assert [fire.local for fire in fires] == [
        "2030-03-01T06:00:00+01:00",
        "2030-04-01T06:00:00+02:00",
        "2030-05-01T06:00:00+02:00",
    ]
    assert app.occurrences("monthly") == []
    app.unschedule("monthly")
    assert named(app) == []
    with pytest.raises(ScheduleNotFound):
        app.get_schedule("monthly")


def test_a_name_is_taken_unless_it_is_to_be_replaced(app: Headway) -> None:
    app.job(name="nothing")(_nothing)
    first = app.schedule("nightly", NEVER_SOON, app.function("nothing"))
    with pytest.raises(NameTaken):
        app.schedule("nightly", every(5), app.function("nothing"))
    second = app.schedule("nightly", every(5), app.function("nothing"), replace=True)
    assert (second.id, second.version) == (first.id, first.version + 1)


def test_what_a_call_says_beyond_the_decorator_is_kept_in_the_body(sqlite_app: Headway) -> None:
    app = sqlite_app
    nothing = app.job(name="nothing", queue="slow", tags=["a"], dedupe=60.0)(_nothing)
    options = nothing.options(priority=5, timeout=30, tags=["b"], retry=Retry(max_attempts=2), expires=9)
    made = app.schedule("nightly", NEVER_SOON, options.call())
    body = made.schedule.job
    assert set(body) == {"kind", "function", "kwargs", "priority", "timeout", "tags", "retry", "expires"}
    assert (made.template.queue, made.template.priority, made.template.expires_in) == ("slow", 5, 9)
    assert made.template.dedupe is None, "the window is the function's default, not the schedule's"
    windowed = nothing.options(dedupe=Dedupe("k", 5.0)).call()
    made = app.schedule("windowed", NEVER_SOON, windowed)
    assert made.template.dedupe == Dedupe("k", 5.0)


@pytest.mark.parametrize(
    ("options", "job", "field"),
    [
        ({"misfire": "later"}, {"kind": "call", "function": "nothing"}, "misfire"),
        ({"timezone": "Mars"}, {"kind": "call", "function": "nothing"}, "timezone"),
        ({"start": datetime(2031, 1, 1, tzinfo=UTC), "end": datetime(2030, 1, 1, tzinfo=UTC)}, {}, "end"),
        ({"end": datetime(2020, 1, 1, tzinfo=UTC)}, {"kind": "call", "function": "nothing"}, "end"),
        ({"color": "red"}, {"kind": "call", "function": "nothing"}, "color"),
        ({}, {"kind": "call", "function": "unknown"}, "job.function"),
        ({}, {"kind": "call", "function": "nothing", "args": [1]}, "job.args"),
        ({}, {"kind": "call", "function": "nothing", "priority": 1000}, "job.priority"),
        ({}, {"kind": "call", "function": "nothing", "on_conflict": "wait"}, "job.on_conflict"),
        ({}, {"kind": "call", "function": "nothing", "run_at": "2030-01-01T00:00:00Z"}, "job.run_at"),
        ({}, {"kind": "call", "function": "nothing", "expires": "2030-01-01T00:00:00Z"}, "job.expires"),
        ({}, {"kind": "nonsense"}, "job.kind"),
    ],
)
def test_what_can_not_be_is_refused_with_the_field(
    sqlite_app: Headway, options: dict[str, Any], job: dict[str, Any], field: str
) -> None:
    sqlite_app.job(name="nothing")(_nothing)
    with pytest.raises(InvalidSchedule) as refused:
        sqlite_app.schedule("s", NEVER_SOON, job, **options)
    assert refused.value.field == field
    assert sqlite_app.schedules() == []


def test_a_call_that_says_when_it_runs_is_no_job_for_a_schedule(sqlite_app: Headway) -> None:
    nothing = sqlite_app.job(name="nothing")(_nothing)
    with pytest.raises(InvalidSchedule, match="leave delay out"):
        sqlite_app.schedule("s", NEVER_SOON, nothing.options(delay=5).call())
    with pytest.raises(InvalidSchedule, match="overlap"):
        sqlite_app.schedule("s", NEVER_SOON, nothing.options(on_conflict="wait").call())


def test_a_schedule_that_is_only_thought_of_can_be_previewed(sqlite_app: Headway) -> None:
    after = datetime(2030, 3, 30, tzinfo=UTC)
    fires = sqlite_app.preview_schedule(cron("30 2 * * *", tz="Europe/Berlin"), 3, after)
    assert [(fire.local, fire.note) for fire in fires] == [
        ("2030-03-30T02:30:00+01:00", None),
        ("2030-03-31T03:00:00+02:00", "gap"),
        ("2030-04-01T02:30:00+02:00", None),
    ]


def test_schedules_are_filtered_and_an_unknown_filter_is_refused(sqlite_app: Headway) -> None:
    nothing = sqlite_app.job(name="nothing")(_nothing)
    sqlite_app.schedule("a", NEVER_SOON, nothing, tags=["x"])
    sqlite_app.schedule("b", NEVER_SOON, nothing, paused=True)
    assert [found.name for found in sqlite_app.schedules(tag="x")] == ["a"]
    assert [found.name for found in sqlite_app.schedules(paused=True)] == ["b"]
    with pytest.raises(HeadwayError, match="there is no filter 'colour'"):
        sqlite_app.schedules(colour="red")


async def test_jobs_of_a_schedule_need_an_announced_function_or_one_of_this_app(store_url: str) -> None:
    worker_app, other = Headway(store_url, name="worker"), Headway(store_url, name="web")
    worker_app.job(name="mail.welcome")(_nothing)
    body = {"kind": "call", "function": "mail.welcome"}
    with pytest.raises(InvalidSchedule, match="no worker has announced a function"):
        await other.aschedule("s", NEVER_SOON, body)
    async with worker_app.worker():
        assert (await other.aschedule("s", NEVER_SOON, body)).name == "s"
    await worker_app.aclose()
    await other.aclose()


async def test_a_scheduler_does_not_begin_with_a_bus_that_is_none(sqlite_app: Headway, tmp_path: Path) -> None:
    sqlite_app.bus = "nonsense://x"
    with pytest.raises(ConfigurationError, match="'nonsense://x' is no bus: use local://"):
        await sqlite_app.scheduler().start()
    commands = ("scheduler", "worker", "api", "up")
    said = Terminal(tmp_path, sqlite_app.url).all_refused([f"{each} --bus nonsense://x" for each in commands])
    for each in said:
        assert each.startswith("'nonsense://x' is no bus")


async def test_a_worker_that_fires_begins_with_components_that_there_are_only(sqlite_app: Headway) -> None:
    sqlite_app.bus = "local://"
    worker = sqlite_app.worker(scheduler=True, components=["create", "dance"])
    with pytest.raises(ConfigurationError, match="there is no component 'dance': use some of create, schedule"):
        await worker.start()
    async with sqlite_app.worker(scheduler=True, components=["create"]):
        pass
