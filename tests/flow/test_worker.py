"""The worker as a process: renewal, signals, wake-ups, several processes, jobs that kill."""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest

from headway import Headway, Job
from headway.model.states import Outcome, State
from headway.serve import REPLACE
from tests.flow.processes import Project
from tests.flow.proxy import Proxy
from tests.flow.waiting import block_until, until
from tests.logs import captured

LEASE = ("--lease", "2")


async def test_a_job_that_blocks_the_loop_for_three_leases_keeps_its_lease(app: Headway) -> None:
    runs: list[int] = []

    @app.job(name="a.blocking.job")
    async def block(seconds: float) -> str:
        runs.append(1)
        time.sleep(seconds)
        return "done"

    with captured() as logs:
        async with app.worker(lease=0.7):
            job = await block.asubmit(2.3)
            done = await job.finished(60)
    assert (done.result, done.attempt, done.losses, len(runs)) == ("done", 1, 0, 1)
    [line] = [line for line in logs if line["event"] == "worker.loop_blocked"]
    assert "time.sleep(seconds)" in line["stack"]
    assert line["job"] == "a.blocking.job"
    assert not [line for line in logs if line["event"] in {"worker.leases_lost", "duties.rescued"}]


async def test_a_worker_whose_loop_a_job_holds_is_not_ready(app: Headway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.worker.worker.STALLED", 0.5)

    @app.job(name="a.blocking.job")
    async def block() -> None:
        block_until(lambda: "held the loop" in (worker.signs.ready() or ""), "the worker to tell that it can't claim")

    async with app.worker() as worker:
        done = await (await block.asubmit()).finished(90)
        assert done.outcome is Outcome.SUCCEEDED
        await until(lambda: worker.signs.ready() is None, "the worker to be ready again")
    assert worker.signs.ready() == "it has not begun to serve"


SHORT = """
@app.job(name="short")
async def short(seconds: float) -> int:
    note("begun")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("stopped")
        raise
    note("ended")
    return os.getpid()
"""


def test_sigterm_lets_running_jobs_end_and_gives_the_others_back_uncharged(project: Project) -> None:
    app = project.app(SHORT)
    worker = project.worker("-c", "10")
    long = app.function("short").submit(1.5)
    block_until(lambda: project.notes() == ["begun"], "the long job to begin")
    jobs = app.submit_many([app.function("short").call(0.004) for _ in range(600)])
    block_until(lambda: len(project.notes()) > 200, "work to be under way")
    assert worker.stop() == 0
    states = Counter(job.state for job in app.jobs(limit=1000))
    assert states.keys() == {State.COMPLETED, State.SCHEDULED}, states
    assert long.refresh().state is State.COMPLETED
    waiting = app.jobs(state="scheduled", limit=1000)
    assert {(job.attempt, job.failures, job.losses) for job in waiting} == {(0, 0, 0)}
    assert Counter(project.notes())["stopped"] == 0
    second = project.worker("-c", "10")
    for job in jobs:
        done = job.wait(60)
        assert (done.state, done.attempt) == (State.COMPLETED, 1)
    assert len([note for note in project.notes() if note == "ended"]) == 601, "each ran exactly once"
    assert second.stop() == 0
    assert app.client.block(app.client.call(lambda store: store.workers()), name="workers") == []


def test_what_outlasts_the_grace_period_is_stopped_and_given_back(project: Project) -> None:
    app = project.app(SHORT)
    worker = project.worker("--grace", "0.3")
    job = app.function("short").submit(60)
    block_until(lambda: project.notes() == ["begun"], "the job to begin")
    stopped_at = time.monotonic()
    assert worker.stop() == 0
    assert 0.3 <= time.monotonic() - stopped_at < 30
    assert project.notes() == ["begun", "stopped"]
    back = job.refresh()
    assert (back.state, back.attempt, back.failures, back.losses) == (State.SCHEDULED, 0, 0, 0)
    history = app.client.block(app.client.call(lambda store: store.history(job.id)), name="history")
    assert [line.what for line in history] == ["scheduled", "running", "give_back", "scheduled"]


def test_a_thread_that_can_not_be_stopped_has_its_process_replaced(sqlite_project: Project) -> None:
    app = sqlite_project.app(
        SHORT
        + """
@app.job(name="stuck", timeout=0.2)
def stuck() -> None:
    note(f"stuck-{os.getpid()}")
    time.sleep(120)       # in C: no exception can reach it
"""
    )
    worker = sqlite_project.worker("--processes", "2", "--grace", "0.1", *LEASE)
    pids = {child.pid for child in worker.children}
    job = app.function("stuck").submit()
    [line] = worker.wait_for("worker.job_stuck")
    assert line["name"] == "stuck"
    assert app.function("short").submit(0).wait(60).state is State.COMPLETED, "the other process works on"
    [replaced] = worker.wait_for("processes.replaced")
    assert (replaced["status"], replaced["pid"] in pids) == (REPLACE, True)
    assert sqlite_project.notes()[0] == f"stuck-{replaced['pid']}"
    assert job.refresh().state is not State.CANCELLED, "it is never called stopped while it may still run"
    app.cancel(job)
    assert worker.stop() == 0


@pytest.mark.parametrize("command", ["worker", "up"])
def test_a_process_that_nobody_watches_over_begins_anew_when_a_thread_can_not_be_stopped(
    sqlite_project: Project, command: str
) -> None:
    app = sqlite_project.app(
        SHORT
        + """
@app.job(name="stuck", timeout=0.2)
def stuck() -> None:
    time.sleep(120)
"""
    )
    alone = sqlite_project.processes.headway(command, "--app", "jobs:app", "--log-json", "--grace", "0.1", *LEASE)
    alone.wait_for("worker.started")
    job = app.function("stuck").submit()
    alone.wait_for("worker.job_stuck")
    app.cancel(job)
    alone.wait_for("worker.started", 2)
    assert app.function("short").submit(0).wait(60).result == alone.pid, "in the same process, as seen from outside"
    assert job.wait(60).outcome in {Outcome.CANCELLED, Outcome.TIMED_OUT}
    assert alone.stop() == 0


@pytest.mark.prompt
def test_an_idle_worker_in_another_process_is_woken_at_once(project: Project) -> None:
    app = project.app(SHORT)
    project.worker()
    app.function("short").submit(0).wait(60)
    latencies = []
    for _ in range(30):
        time.sleep(0.02)
        done = app.function("short").submit(0).wait(60)
        assert done.claimed_at is not None
        latencies.append((done.claimed_at - done.created_at).total_seconds())
    print(f"\nenqueue to claim, other process: p50 {statistics.median(latencies) * 1000:.1f} ms")
    assert sorted(latencies)[24] < 0.5, "looking every second would find a sixth of them later than 0.8 s"


@pytest.mark.prompt
def test_a_future_job_starts_on_time_in_an_idle_worker(project: Project) -> None:
    app = project.app(SHORT)
    project.worker()
    late = []
    for delay in (0.3, 0.8, 0.4, 0.6, 0.7):
        done = app.function("short").options(delay=delay).submit(0).wait(60)
        assert done.claimed_at is not None
        late.append((done.claimed_at - done.run_at).total_seconds())
    print(f"\nstart after due time: {[f'{seconds * 1000:.0f} ms' for seconds in late]}")
    assert min(late) >= 0
    assert sorted(late)[3] < 0.3, "at most one was held up by what else the machine does"


async def test_an_idle_worker_asks_postgres_at_most_twice_a_second(migrated: str) -> None:
    with Proxy(migrated) as proxy:
        app = Headway(proxy.url)
        async with app.worker(queues=["default", "mail", "reports"]):
            # On a busy machine the first round of duties reaches into the first of these.
            rates = [await _queries_a_second(proxy, 4) for _ in range(3)]
        print(f"\nidle: {rates} queries/s, {proxy.connections} connections")
        assert min(rates) <= 2
        await app.aclose()


async def _queries_a_second(proxy: Proxy, seconds: float) -> float:
    before, started = proxy.queries, time.monotonic()
    await asyncio.sleep(seconds)
    return (proxy.queries - before) / (time.monotonic() - started)


def test_workers_end_when_the_process_that_watches_over_them_is_killed(sqlite_project: Project) -> None:
    sqlite_project.app(SHORT)
    supervisor = sqlite_project.worker("--processes", "2", "--grace", "0.1", *LEASE)
    supervisor.wait_for("worker.started", 2, patience=60)
    workers = supervisor.children
    assert len(workers) == 2
    supervisor.kill()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    assert len(supervisor.lines("worker.stopped")) == 2, "as by SIGTERM: what they held is given back"


def test_the_number_of_processes_may_be_written_in_one_word(sqlite_project: Project) -> None:
    sqlite_project.app(SHORT)
    supervisor = sqlite_project.start_worker("-p2")
    supervisor.wait_for("worker.started", 2)
    family = psutil.Process(supervisor.pid).children(recursive=True)
    assert [child.ppid() for child in family] == [supervisor.pid, supervisor.pid], (
        "workers, and no supervisors of others"
    )
    assert supervisor.stop() == 0


def test_several_processes_share_the_work_and_a_dead_one_is_replaced(postgres_project: Project) -> None:
    app = postgres_project.app(SHORT)
    worker = postgres_project.worker("--processes", "2", "-c", "2", *LEASE)
    pids = {child.pid for child in worker.children}
    assert len(pids) == 2
    jobs = app.submit_many([app.function("short").call(0.05) for _ in range(40)])
    assert {job.wait(60).result for job in jobs} == pids
    victim = min(pids)
    os.kill(victim, signal.SIGKILL)
    [line] = worker.wait_for("processes.replaced")
    assert (line["pid"], line["status"]) == (victim, -signal.SIGKILL)
    worker.wait_for("worker.started", 3)
    assert len({child.pid for child in worker.children} | pids) == 3
    assert worker.stop() == 0
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_a_job_without_code_is_parked_until_a_worker_knows_it(sqlite_project: Project) -> None:
    app = sqlite_project.app(SHORT)
    sqlite_project.write("", module="older")
    older = sqlite_project.worker(module="older")
    job = app.function("short").submit(0)

    def parked() -> Job[int] | None:
        seen = job.refresh()
        return seen if seen.label == "parked" else None

    seen = block_until(parked, "the job to be parked")
    assert (seen.state, seen.attempt, seen.wait_reason) == (State.SCHEDULED, 0, "no_code")
    assert [found.id for found in app.jobs(state="parked")] == [job.id]
    words = "no function 'short' is registered here"
    assert words in app.why(job.id).sentence
    [line, *_] = older.wait_for("job.parked")
    assert (line["job_id"], line["why"]) == (str(job.id), words)
    assert older.stop() == 0
    newer = sqlite_project.worker()
    done = job.wait(60)
    assert (done.state, done.attempt, done.result, done.error) == (State.COMPLETED, 1, newer.pid, None)


def test_of_five_hundred_jobs_only_the_one_that_kills_its_process_is_poison(sqlite_project: Project) -> None:
    one_killer_among_five_hundred(sqlite_project)


@pytest.mark.prove
def test_twenty_kills_from_outside_make_no_job_poison(postgres_project: Project) -> None:
    twenty_kills(postgres_project, min)


@pytest.mark.prove
def test_a_killer_is_found_on_postgres_too(postgres_project: Project) -> None:
    one_killer_among_five_hundred(postgres_project)


@pytest.mark.prove
def test_twenty_kills_make_no_poison_even_if_always_the_youngest_process_is_killed(project: Project) -> None:
    """The jobs taken back are the first to run again, so that the same ones are hit again and again."""
    twenty_kills(project, max)


def one_killer_among_five_hundred(project: Project) -> None:
    app = project.app("""
        @app.job(name="act")
        async def act(n: int) -> int:
            if n == 250:
                os.kill(os.getpid(), signal.SIGKILL)
            await asyncio.sleep(0.002)
            return n
    """)
    started = time.monotonic()
    project.worker("--processes", "2", "-c", "10", *LEASE)
    jobs = app.submit_many([app.function("act").call(n) for n in range(500)])
    ends = [job.wait(60) for job in jobs]
    print(f"\npoison among 500: {Counter(job.outcome for job in ends)} in {time.monotonic() - started:.1f} s")
    assert [n for n, job in enumerate(ends) if job.outcome is Outcome.POISON] == [250]
    assert Counter(job.state for job in ends) == {State.COMPLETED: 499, State.FAILED: 1}
    assert ends[250].error is not None
    assert "was killed by SIGKILL" in ends[250].error.message


def twenty_kills(project: Project, choose: Callable[..., psutil.Process]) -> None:
    app = project.app(SHORT)
    worker = project.worker("--processes", "4", "-c", "5", *LEASE)
    jobs = app.submit_many([app.function("short").call(0.03) for _ in range(1000)])
    killed = 0
    while killed < 20:
        before = len(project.notes())
        block_until(lambda: len(project.notes()) > before, "work to go on", 120)  # noqa: B023 - called at once
        # One killed before may be gone at any moment between two looks at it.
        with suppress(psutil.NoSuchProcess):
            victims = [child for child in worker.children if child.status() != psutil.STATUS_ZOMBIE]
            if victims:
                choose(victims, key=lambda child: child.create_time()).kill()
                killed += 1
    # One that was hit five times waits 40 seconds before it is tried again, alone.
    ends = [job.wait(240) for job in jobs]
    lost = sum(job.attempt - 1 for job in ends)
    print(f"\n20 kills: {Counter(job.outcome for job in ends)}, attempts lost {lost}")
    assert Counter(job.outcome for job in ends) == {Outcome.SUCCEEDED: 1000}


async def test_a_worker_in_the_users_process_stops_with_its_block(app: Headway) -> None:
    @app.job
    async def f() -> None:
        await asyncio.sleep(0.2)

    async with app.worker(name="inside") as worker:
        job = await f.asubmit()
        await until(lambda: worker.worker is not None and worker.worker.running == 1, "the job to begin")
        [info] = await until(lambda: app.client.call(lambda store: store.workers()), "the worker to show itself")
        assert (info.name, info.pid, info.queues) == ("inside", os.getpid(), ("default",))
    assert (await job.arefresh()).state is State.COMPLETED
    assert await app.client.call(lambda store: store.workers()) == []
