"""Real faults: killed and frozen workers, a killed database, connections cut in the middle."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from typing import Any

import pytest

from headway import Headway, Job, current
from headway.model.errors import HeadwayError
from headway.model.states import State
from headway.serve import WorkerSettings
from tests.flow.audit import audit, nothing_waits
from tests.flow.conftest import migrate
from tests.flow.processes import Process, Project
from tests.flow.proxy import Proxy
from tests.flow.waiting import block_until, until
from tests.servers import PostgresServer

LEASE = 2.0
RECOVERY = LEASE + 5.0
DEFAULT_LEASE = WorkerSettings().lease

WORK = """
@app.job(name="work")
async def work(n: int, seconds: float) -> list[int]:
    note(f"{n}")
    await asyncio.sleep(seconds)
    return [current().attempt, current().token]

@app.job(name="hang")
async def hang() -> list[int]:
    note(f"begun-{os.getpid()}")
    while not (here / "go").exists():
        await asyncio.sleep(0.01)
    return [current().attempt, current().token]
"""


def worker(project: Project, *arguments: str) -> Process:
    return project.worker("--lease", str(LEASE), *arguments)


def test_workers_are_killed_again_and_again_and_nothing_is_lost(project: Project) -> None:
    app = project.app(WORK)
    calls = [app.function("work").call(n, 0.02) for n in range(400)]
    workers = [worker(project, "-c", "4") for _ in range(2)]
    jobs = app.submit_many(calls)
    for kill in range(6):
        under_way = 60 * (kill + 1)
        block_until(lambda: len(project.notes()) >= under_way, "work to be under way")  # noqa: B023 - called at once
        victim = workers.pop(0)
        victim.kill()
        workers.append(project.start_worker("--lease", str(LEASE), "-c", "4"))
    killed_at = time.monotonic()
    found = asyncio.run(audit(app, jobs))
    print(f"\n6 x kill -9: {found}, starts {len(project.notes())}, done {time.monotonic() - killed_at:.1f} s after")
    assert found.accepted == found.finished == 400
    assert found.attempts == 400 + found.lost
    asyncio.run(nothing_waits(app, {job.id for job in jobs}))


def test_the_jobs_of_a_killed_worker_run_again_within_the_lease_and_five_seconds(project: Project) -> None:
    app = project.app(WORK)
    first = worker(project, "-c", "5")
    jobs = app.submit_many([app.function("hang").call() for _ in range(5)])
    block_until(lambda: len(project.notes()) == 5, "the jobs to begin")
    second = worker(project, "-c", "5")
    first.kill()
    killed_at = time.monotonic()
    block_until(lambda: len(project.notes()) == 10, "the jobs to begin again", RECOVERY)
    recovery = time.monotonic() - killed_at
    (project.directory / "go").touch()
    found = asyncio.run(audit(app, jobs))
    print(f"\nkill -9: {found}, begun again after {recovery:.1f} s with a lease of {LEASE:g} s")
    assert set(project.notes()[5:]) == {f"begun-{second.pid}"}
    assert found.lost == 5
    assert recovery <= RECOVERY


def test_with_the_lease_that_nobody_set_they_run_again_within_its_thirty_five_seconds(
    postgres_project: Project,
) -> None:
    app = postgres_project.app(WORK)
    first = postgres_project.worker()
    job = app.function("hang").submit()
    block_until(lambda: len(postgres_project.notes()) == 1, "the job to begin")
    second = postgres_project.worker()
    first.kill()
    killed_at = time.monotonic()
    block_until(lambda: len(postgres_project.notes()) == 2, "the job to begin again", DEFAULT_LEASE + 5)
    recovery = time.monotonic() - killed_at
    (postgres_project.directory / "go").touch()
    print(f"\nkill -9: begun again after {recovery:.1f} s with the default lease")
    assert postgres_project.notes()[1] == f"begun-{second.pid}"
    assert (job.wait(60).attempt, recovery > RECOVERY) == (2, True), "as long as the default lease says"


async def test_whoever_takes_a_lost_job_back_calls_the_hook_for_it(postgres_project: Project) -> None:
    app = postgres_project.app(WORK)
    heard: list[tuple[State, int]] = []

    @app.on_retry
    async def retried(job: Job[Any]) -> None:
        heard.append((job.state, job.losses))

    killed = await asyncio.to_thread(worker, postgres_project)
    job = await app.function("hang").asubmit()
    await until(lambda: postgres_project.notes() == [f"begun-{killed.pid}"], "the job to begin")
    killed.kill()
    async with app.worker(lease=LEASE, queues="nothing of it"):
        await until(lambda: heard, "the hook to be called", RECOVERY)
    assert heard == [(State.SCHEDULED, 1)]
    assert (await job.arefresh()).state is State.SCHEDULED


def test_the_late_writes_of_a_frozen_worker_are_refused(project: Project) -> None:
    app = project.app(WORK)
    frozen = worker(project)
    job = app.function("hang").submit()
    block_until(lambda: project.notes() == [f"begun-{frozen.pid}"], "the job to begin")
    frozen.send(signal.SIGSTOP)
    other = worker(project)
    block_until(lambda: f"begun-{other.pid}" in project.notes(), "the other to take over", RECOVERY)
    (project.directory / "go").touch()
    done = job.wait(60)
    frozen.send(signal.SIGCONT)

    def noticed() -> bool:
        return bool(frozen.lines("worker.write_refused") or frozen.lines("worker.leases_lost"))

    block_until(noticed, "the frozen worker to be refused")
    asyncio.run(audit(app, [job]))
    assert (done.attempt, done.losses) == (2, 0), "a success clears the count of losses"
    later = app.get(job.id)
    assert (later.result, later.finished_at) == (done.result, done.finished_at)
    assert other.stop() == 0
    after = app.function("work").submit(7, 0)
    assert after.wait(60).state is State.COMPLETED, "once awake, it works on"
    assert frozen.stop() == 0


class Load:
    """Submitters and a worker in this process, on a store that fails."""

    def __init__(self, app: Headway) -> None:
        self.app = app
        self.jobs: list[Job[list[int]]] = []
        self.refused: list[str] = []
        self.runs = 0
        self._stop = asyncio.Event()

        @app.job(name="work")
        async def work(n: int) -> list[int]:
            self.runs += 1
            await asyncio.sleep(0.005)
            return [current().attempt, current().token]

        self.work = work

    async def submit_until_stopped(self, pause: float = 0.01) -> None:
        """Plain, keyed and whole batches in turn; only what the store confirmed counts as accepted."""
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                self.jobs += await self._submit(number)
            except HeadwayError as error:
                self.refused.append(str(error))
            await asyncio.sleep(pause)

    async def _submit(self, number: int) -> list[Job[list[int]]]:
        match number % 3:
            case 0:
                return await self.app.asubmit_many([self.work.call(number), self.work.call(number)])
            case 1:
                return [await self.work.options(key=f"k{number % 5}", on_conflict="wait").asubmit(number)]
            case _:
                return list(await asyncio.gather(*(self.work.asubmit(number) for _ in range(3))))

    def stop(self) -> None:
        self._stop.set()

    async def grown(self, count: int) -> None:
        aim = len(self.jobs) + count
        await until(lambda: len(self.jobs) >= aim, f"{count} more jobs to be accepted", 60)

    async def count(self, what: str) -> Any:
        found = await audit(self.app, self.jobs)
        await nothing_waits(self.app, {job.id for job in self.jobs})
        print(f"\n{what}: {found}, runs {self.runs}, submits refused {len(self.refused)}")
        assert found.accepted == found.finished == len(self.jobs)
        return found


async def test_postgres_is_killed_and_started_again_under_load(private_postgres: PostgresServer) -> None:
    url = private_postgres.create_database()
    await migrate(url)
    app = Headway(url)
    load = Load(app)
    async with app.worker(lease=LEASE, concurrency=10):
        submitter = asyncio.create_task(load.submit_until_stopped())
        for _ in range(2):
            await load.grown(60)
            await asyncio.to_thread(private_postgres.kill)
            await asyncio.to_thread(private_postgres.start)
        started_at = time.monotonic()
        await load.grown(30)
        recovery = time.monotonic() - started_at
        load.stop()
        await submitter
        await load.count(f"PostgreSQL killed twice (30 more accepted {recovery:.1f} s after its start)")
    assert recovery <= RECOVERY
    assert not load.refused, "a short absence of the server is waited out"
    await app.aclose()


async def test_connections_are_cut_in_the_middle_of_everything(migrated: str) -> None:
    chance = random.Random(7)
    with Proxy(migrated) as proxy:
        proxy.cut_after = lambda: chance.randint(4_000, 60_000)
        app = Headway(proxy.url)
        load = Load(app)
        async with app.worker(lease=LEASE, concurrency=10):
            submitter = asyncio.create_task(load.submit_until_stopped())
            for _ in range(4):
                await load.grown(50)
                proxy.cut()
            load.stop()
            await submitter
            proxy.cut_after = None
            await load.count(f"{proxy.cuts} cuts of {proxy.connections} connections")
        assert proxy.cuts >= 8
        assert not load.refused
        await app.aclose()


# A commit of its own, or a statement that commits by itself.
WRITES = {
    "submit": "insert into headway.job",
    "claim": "insert into headway.lease",
    "finish": "finished_token = j.token",
    "commit": "commit",
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_reply_is_lost_in_the_commit_window(migrated: str, write: str) -> None:
    """The server has committed, the client does not know: it must find out, and neither repeat nor forget."""
    with Proxy(migrated) as proxy:
        app = Headway(proxy.url)
        load = Load(app)
        # A short lease lapses on a busy machine, too, which would say nothing of lost replies.
        async with app.worker(lease=15 * LEASE, concurrency=10):
            submitter = asyncio.create_task(load.submit_until_stopped())
            await load.grown(10)
            for _ in range(4):
                proxy.lose_reply(WRITES[write])
                await until(lambda: not proxy.armed, f"a {write} to lose its reply")
                await load.grown(4)
            load.stop()
            await submitter
            found = await load.count(f"{proxy.cuts} x the reply to a {write} was lost")
        assert proxy.cuts == 4
        assert not load.refused
        assert found.lost == 0, "what was committed is known after a look, no lease had to lapse"
        assert load.runs == found.accepted, "and nothing ran twice"
        await app.aclose()


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_that_arrives_after_we_have_looked_leaves_no_job_behind(migrated: str, write: str) -> None:
    """The connection breaks, the client looks and finds nothing, and only then the server does as it was told."""
    with Proxy(migrated) as proxy:
        app = Headway(proxy.url)
        load = Load(app)
        # A short lease lapses on a busy machine, too, which would say nothing of late writes.
        async with app.worker(lease=LEASE if write == "claim" else 15 * LEASE, concurrency=2):
            submitter = asyncio.create_task(load.submit_until_stopped())
            await load.grown(10)
            for number in range(4):
                # A backlog: whatever comes late finds something to do.
                load.jobs += await app.asubmit_many([load.work.call(n) for n in range(100)])
                proxy.delay_request(WRITES[write], 0.05)
                await until(lambda: proxy.late > number, f"a {write} to come late")  # noqa: B023 - called at once
                await load.grown(4)
            load.stop()
            await submitter
            found = await load.count(f"{proxy.cuts} x a {write} came late")
        assert proxy.cuts == proxy.late == 4
        assert not load.refused
        assert load.runs == found.accepted, "a claim that nobody knows of is given up, not run"
        assert (found.lost > 0) == (write == "claim"), "only its jobs have to wait for the lapse of a lease"
        await app.aclose()


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_workers_are_killed_for_a_minute_under_load(project: Project) -> None:
    app = project.app(WORK)
    workers = [worker(project, "-c", "10") for _ in range(3)]
    jobs: list[Job[list[int]]] = []
    chance = random.Random(1)
    ends = time.monotonic() + 60
    kills = 0
    while time.monotonic() < ends:
        jobs += app.submit_many([app.function("work").call(len(jobs) + n, 0.02) for n in range(100)])
        time.sleep(chance.uniform(0.1, 0.6))
        workers.pop(chance.randrange(len(workers))).kill()
        kills += 1
        workers.append(project.start_worker("--lease", str(LEASE), "-c", "10"))
    found = asyncio.run(audit(app, jobs, patience=240))
    print(f"\n{kills} x kill -9 in a minute: {found}, starts {len(project.notes())}")
