"""What happens in and around a running job: retries, timeouts, cancellation, progress, output, hooks."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from datetime import timedelta
from typing import Any

import psutil
import pytest

from headway import Cancel, Fail, Headway, Hooks, Job, Retry, Rule, Services, Snooze, current
from headway.executors.call.executor import CHILDREN
from headway.model.errors import ConfigurationError
from headway.model.states import Outcome, State
from tests.flow.processes import Project
from tests.flow.waiting import block_until, until
from tests.logs import captured


async def test_a_failed_attempt_is_retried_until_it_works(app: Headway) -> None:
    tries: list[float] = []

    @app.job(retry=Retry(max_attempts=4, wait=0.1, backoff="linear", jitter=0))
    async def f() -> int:
        tries.append(time.monotonic())
        if len(tries) < 3:
            raise ConnectionError(f"try {len(tries)}")
        return len(tries)

    async with app.worker():
        done = await (await f.asubmit()).finished(60)
    assert (done.result, done.attempt, done.failures, done.error) == (3, 3, 2, None)
    assert tries[1] - tries[0] >= 0.1
    assert tries[2] - tries[1] >= 0.2
    attempts = await app.client.call(lambda store: store.attempts(done.id))
    assert [(each.number, each.outcome) for each in attempts] == [(1, "failed"), (2, "failed"), (3, "succeeded")]
    assert [each.error.message for each in attempts if each.error] == ["try 1", "try 2"]


async def test_retries_end_with_the_last_attempt_or_by_a_rule(app: Headway) -> None:
    rules = (
        Rule(on="exception", match="ValueError"),
        Rule(on="message", match="soon", then=0.01),
        Rule(on="status", match="400-499"),
    )

    class Refused(Exception):
        status = 404

    @app.job(retry=Retry(max_attempts=3, wait=0.01, rules=rules))
    async def f(how: str) -> None:
        raise {"value": ValueError("no"), "soon": KeyError("soon"), "status": Refused()}.get(how, OSError(how))

    async with app.worker():
        jobs = {how: await f.asubmit(how) for how in ("value", "soon", "status", "other")}
        ends = {how: await job.finished(60) for how, job in jobs.items()}
    assert {how: job.attempt for how, job in ends.items()} == {"value": 1, "soon": 3, "status": 1, "other": 3}
    assert {job.state for job in ends.values()} == {State.FAILED}
    assert {job.outcome for job in ends.values()} == {Outcome.FAILED}


async def test_a_job_says_itself_how_it_goes_on(app: Headway) -> None:
    snoozed: list[int] = []

    @app.job(retry=Retry(max_attempts=5, wait=0.01))
    async def f(how: str) -> str:
        if how == "fail":
            raise Fail("for good")
        if how == "cancel":
            raise Cancel("not needed any more")
        snoozed.append(current().attempt)
        if len(snoozed) < 3:
            raise Snooze(0.05)
        return "woke up"

    async with app.worker():
        failed = await (await f.asubmit("fail")).finished(60)
        cancelled = await (await f.asubmit("cancel")).finished(60)
        woken = await (await f.asubmit("snooze")).finished(60)
    assert (failed.state, failed.attempt) == (State.FAILED, 1)
    assert failed.error is not None
    assert failed.error.message == "for good"
    assert (cancelled.state, cancelled.outcome) == (State.CANCELLED, Outcome.CANCELLED)
    assert cancelled.error is not None
    assert cancelled.error.message == "not needed any more"
    assert (woken.result, woken.attempt, woken.failures) == ("woke up", 1, 0)
    assert snoozed == [1, 1, 1], "a snooze charges no attempt"


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_a_job_that_takes_too_long_is_stopped(sqlite_app: Headway, kind: str) -> None:
    cleaned: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            cleaned.append("coroutine")

    def spin() -> None:
        try:
            while not current().cancelled:
                time.sleep(0.01)
            raise RuntimeError("told to stop")
        finally:
            cleaned.append("thread")

    make = sqlite_app.job(timeout=0.2)
    coroutine, thread = make(wait), make(spin)
    async with sqlite_app.worker():
        job = await (coroutine if kind == "coroutine" else thread).asubmit()
        ended = await job.finished(60)
    assert (ended.state, ended.outcome) == (State.FAILED, Outcome.TIMED_OUT)
    assert ended.error is not None
    assert "did not end within 0.2 s" in ended.error.message
    assert cleaned == [kind]


async def test_a_timeout_is_a_failure_that_may_be_retried(sqlite_app: Headway) -> None:
    tries: list[int] = []

    @sqlite_app.job
    async def f() -> str:
        tries.append(1)
        if len(tries) == 1:
            await asyncio.sleep(30)
        return "in time"

    async with sqlite_app.worker():
        prepared = f.options(timeout=timedelta(seconds=0.1), retry=Retry(max_attempts=2, wait=0.01))
        done = await (await prepared.asubmit()).finished(60)
    assert (done.result, done.attempt, done.failures) == ("in time", 2, 1)


@pytest.mark.prompt
async def test_waiting_and_running_jobs_can_be_cancelled(app: Headway) -> None:
    started = asyncio.Event()
    in_thread = threading.Event()
    stopped: list[str] = []

    @app.job
    async def coroutine() -> None:
        started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.append("coroutine")
            raise

    @app.job
    def thread() -> None:
        in_thread.set()
        try:
            while True:
                time.sleep(0.01)
        finally:
            stopped.append("thread")

    async with app.worker():
        waiting = await coroutine.options(delay=60).asubmit()
        assert await app.acancel(waiting, reason="not today") == [State.CANCELLED]
        running, threaded = await coroutine.asubmit(), await thread.asubmit()
        await started.wait()
        await until(in_thread.is_set, "the thread to run")
        assert await app.acancel(running, threaded) == [State.CANCELLING, State.CANCELLING]
        begun = time.monotonic()
        ends = [await job.finished(60) for job in (waiting, running, threaded)]
        assert time.monotonic() - begun < 9, "a cancel is heard of at once, not at the next renewal"
    assert [(job.state, job.outcome) for job in ends] == [(State.CANCELLED, Outcome.CANCELLED)] * 3
    assert sorted(stopped) == ["coroutine", "thread"]
    history = await app.client.call(lambda store: store.history(waiting.id))
    assert [(line.what, line.detail) for line in history if line.what == "cancel"] == [("cancel", "not today")]
    assert await app.acancel(running) == [State.CANCELLED], "to cancel an ended job changes nothing"


async def test_a_job_that_completes_although_it_was_told_to_stop_has_completed(app: Headway) -> None:
    started = asyncio.Event()

    @app.job
    async def f() -> str:
        started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "done all the same"
        return "never"

    async with app.worker():
        job = await f.asubmit()
        await started.wait()
        await app.acancel(job)
        ended = await job.finished(60)
    assert (ended.state, ended.result) == (State.COMPLETED, "done all the same")


async def test_progress_and_output_are_seen_while_the_job_runs(app: Headway) -> None:
    go_on = asyncio.Event()

    @app.job
    async def f() -> tuple[str, int]:
        context = current()
        context.progress(1, 3, "a third")
        logging.getLogger("shop").warning("low on %s", "paper")
        context.log.info("said by the job")
        context.write(b"raw bytes\n")
        await go_on.wait()
        assert not context.cancelled
        return str(context.job_id), context.attempt

    async with app.worker():
        job = await f.asubmit()

        async def reported() -> Job[Any] | None:
            seen = await job.arefresh()
            return seen if seen.progress is not None else None

        seen = await until(reported, "progress")
        assert (seen.progress.done, seen.progress.total, seen.progress.text) == (1, 3, "a third")
        assert seen.started_at is not None
        output = await until(lambda: app.aoutput(job.id), "output of the running job")
        assert b"low on paper" in output
        go_on.set()
        done = await job.finished(60)
    assert done.result == (str(job.id), 1)
    output = await app.aoutput(job.id)
    assert b"raw bytes\n" in output
    assert b"said by the job" in output
    assert b"WARNING shop: low on paper" in output


def test_there_is_no_current_job_outside_of_one() -> None:
    with pytest.raises(LookupError, match="only inside a running job"):
        current()


async def test_hooks_hear_of_what_the_store_has_recorded(store_url: str) -> None:
    heard: list[tuple[str, State, Any]] = []

    class Own(Hooks):
        async def on_failed(self, job: Job[Any]) -> None:
            heard.append(("own failed", job.state, job.error and job.error.message))

    app = Headway(store_url, hooks=Own())

    @app.on_success
    async def succeeded(job: Job[Any]) -> None:
        heard.append(("success", (await app.aget(job.id)).state, job.result))

    @app.on_success
    def broken(job: Job[Any]) -> None:
        raise RuntimeError("a hook that breaks")

    @app.on_success
    def plain(job: Job[Any]) -> None:
        heard.append(("plain", app.get(job.id).state, job.result))

    @app.on_failed
    async def failed(job: Job[Any]) -> None:
        heard.append(("failed", job.state, job.outcome))

    @app.on_retry
    async def retried(job: Job[Any]) -> None:
        heard.append(("retry", job.state, job.failures))

    @app.job
    async def f(fail: bool) -> int:
        if fail:
            raise ValueError("broke")
        return 7

    with captured() as logs:
        async with app.worker():
            await (await f.asubmit(False)).finished(60)
            await (await f.options(retry=Retry(max_attempts=2, wait=0.01)).asubmit(True)).finished(60)
            cancelled = await f.options(delay=60).asubmit(False)
            await app.acancel(cancelled)
    assert ("success", State.COMPLETED, 7) in heard
    assert ("plain", State.COMPLETED, 7) in heard
    assert ("retry", State.SCHEDULED, 1) in heard
    assert ("failed", State.FAILED, Outcome.FAILED) in heard
    assert ("own failed", State.FAILED, "broke") in heard
    assert len(heard) == 5, "each hook is called once for each change"
    [line] = [line for line in logs if line["event"] == "hook.failed"]
    assert "broken" in line["hook"]
    await app.aclose()


class Database:
    opened = 0
    closed = 0


def open_database() -> Any:
    Database.opened += 1
    yield Database()
    Database.closed += 1


class Mailer:
    """A service with a dependency of its own."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def send(self, user: int) -> str:
        assert isinstance(self.database, Database)
        return f"mail to {user}"


async def test_methods_of_services_are_jobs_and_the_worker_builds_the_service(store_url: str) -> None:
    services = Services()
    services.provide(Database, open_database)
    app = Headway(store_url, services=services)

    class Shop:
        def __init__(self, mailer: Mailer, count: int = 3) -> None:
            self.mailer = mailer
            self.count = count

        @app.job(queue="mail", priority=2)
        async def welcome(self, user: int) -> str:
            return await self.mailer.send(user)

        @app.job
        def total(self, price: float) -> float:
            return price * self.count

    Database.opened = Database.closed = 0
    async with app.worker(queues=["mail", "default"]):
        one, two = await Shop.welcome.asubmit(5), await Shop.total.asubmit(1.5)
        assert (one.queue, one.priority) == ("mail", 2)
        assert (await one.finished(60)).result == "mail to 5"
        assert (await two.finished(60)).result == 4.5
    assert (Database.opened, Database.closed) == (2, 2)
    assert await Shop(Mailer(Database())).welcome(6) == "mail to 6", "of an instance it is the plain method"
    await app.aclose()


async def test_child_processes_find_the_app_of_an_embedded_worker_where_it_was_made(
    sqlite_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = sqlite_project.app("""
        @app.job(name="where", process=True)
        def where() -> int:
            return os.getppid()
    """)
    app.reference = None  # as for whoever imports the module
    monkeypatch.syspath_prepend(sqlite_project.directory)
    async with app.worker():
        job = await app.function("where").asubmit()
        assert (await job.finished(60)).result == os.getpid()
    await app.aclose()


async def test_the_log_tells_a_cancel_that_was_asked_for_from_a_jobs_own_wish(sqlite_app: Headway) -> None:
    begun = asyncio.Event()

    @sqlite_app.job
    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    @sqlite_app.job
    async def leave() -> None:
        raise Cancel("nothing to do")

    with captured() as logs:
        async with sqlite_app.worker():
            asked = await wait.asubmit()
            await begun.wait()
            await sqlite_app.acancel(asked)
            await asked.finished(60)
            left = await (await leave.asubmit()).finished(60)
    ends = [line for line in logs if line["event"] == "job.state_changed" and line["to"] == "cancelled"]
    assert [(line["job_id"], line["from"]) for line in ends] == [
        (str(asked.id), "cancelling"),
        (str(left.id), "running"),
    ]


async def test_as_many_plain_functions_run_at_once_as_there_are_slots(sqlite_app: Headway) -> None:
    together = threading.Barrier(60)

    @sqlite_app.job
    def meet() -> int:
        return together.wait(60)

    async with sqlite_app.worker(queues={"default": 60}):
        jobs = await sqlite_app.asubmit_many([meet.call() for _ in range(60)])
        assert {(await job.finished(60)).result for job in jobs} == set(range(60))


async def test_as_many_child_processes_run_at_once_as_there_are_slots(
    sqlite_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = CHILDREN + 2
    app = sqlite_project.app(f"""
        @app.job(name="meet", process=True)
        def meet() -> None:
            note(os.getpid())
            while len((here / "notes").read_text().splitlines()) < {many}:
                time.sleep(0.01)
    """)
    monkeypatch.syspath_prepend(sqlite_project.directory)
    async with app.worker(queues={"default": many}):
        jobs = await app.asubmit_many([app.function("meet").call() for _ in range(many)])
        assert [(await job.finished(60)).state for job in jobs] == [State.COMPLETED] * many
    await app.aclose()


async def test_a_job_that_waits_for_a_child_process_has_not_begun(
    sqlite_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = sqlite_project.app("""
        @app.job(name="last", process=True)
        def last() -> None:
            note(os.getpid())
            time.sleep(600)
    """)
    monkeypatch.syspath_prepend(sqlite_project.directory)
    async with app.worker(children=1) as worker:
        first, second = await app.asubmit_many([app.function("last").options(timeout=300).call() for _ in range(2)])

        async def told() -> bool:
            return (await first.arefresh()).started_at is not None

        await until(told, "the store to know that the first has begun")
        waiting = await second.arefresh()
        assert (waiting.state, waiting.started_at) == (State.RUNNING, None)

        await worker.stop_queue("default")

        async def given_back() -> bool:
            return (await second.arefresh()).state is State.SCHEDULED

        await until(given_back, "the second to be given back")
        assert (await second.arefresh()).attempt == 0
        assert (await first.arefresh()).state is State.RUNNING
        await worker.stop(grace=0)
    assert len(sqlite_project.notes()) == 1
    await app.aclose()


def alone() -> None:
    """Importable, unlike the app that a test makes."""


async def test_a_worker_whose_child_processes_could_not_import_its_app_refuses_to_start(sqlite_app: Headway) -> None:
    sqlite_app.job(name="alone", process=True)(alone)
    with pytest.raises(ConfigurationError, match=r"alone runs in a child process, .* set app.reference = 'module:"):
        await sqlite_app.worker().start()


def test_jobs_in_child_processes_are_stopped_the_hard_way(sqlite_project: Project) -> None:
    app = sqlite_project.app("""
        @app.job(name="add", process=True)
        def add(a: int, b: int) -> int:
            print("adding", a)
            return a + b

        @app.job(name="deaf", process=True)
        def deaf() -> None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            note(os.getpid())
            while True:
                try:
                    time.sleep(60)
                except BaseException:
                    pass

        @app.job(name="die", process=True)
        def die() -> None:
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    worker = sqlite_project.worker()
    done = app.function("add").submit(2, 3).wait(60)
    assert done.result == 5
    assert b"adding 2" in app.output(done.id)

    late = app.function("deaf").options(timeout=0.5).submit().wait(60)
    assert (late.state, late.outcome) == (State.FAILED, Outcome.TIMED_OUT)

    cancelled = app.function("deaf").submit()
    block_until(lambda: len(sqlite_project.notes()) == 2, "the second one to begin")
    assert app.cancel(cancelled) == [State.CANCELLING]
    assert cancelled.wait(60).state is State.CANCELLED
    assert not [pid for pid in sqlite_project.notes() if psutil.pid_exists(int(pid))], "seen dead"

    poison = app.function("die").submit().wait(60)
    assert (poison.state, poison.outcome, poison.attempt) == (State.FAILED, Outcome.POISON, 3)
    assert poison.error is not None
    assert "was killed by SIGKILL" in poison.error.message
    assert worker.stop() == 0
