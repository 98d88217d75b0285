"""Real faults under schedules: killed schedulers, a stopped database, commits of unknown outcome. Whatever happens,
each nominal time is in the ledger once, and each job in it exists once."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import msgspec
import psutil
import pytest

from headway import Headway, every
from headway.model.filters import JobFilter
from headway.model.job import JobRecord
from headway.store.contract import Store
from headway.store.scripts.ledger import Line
from headway.store.scripts.schedules import ScheduleRecord
from tests.flow.audit import nothing_waits
from tests.flow.conftest import migrate
from tests.flow.processes import Process, Processes
from tests.flow.proxy import Proxy
from tests.flow.waiting import until
from tests.servers import PostgresServer

LEASE = 2.0
RECOVERY = LEASE + 5.0
SECOND = timedelta(seconds=1)


class Count(msgspec.Struct):
    """What came of the nominal times of all schedules, to be printed."""

    schedules: int = 0
    expected: int = 0
    fired: int = 0
    skipped: int = 0
    jobs: int = 0

    def __str__(self) -> str:
        return (
            f"{self.schedules} schedules, {self.expected} nominal times = {self.fired} fired + {self.skipped} skipped, "
            f"{self.jobs} jobs"
        )


async def count(app: Headway) -> Count:
    """Hold the ledger against the timetables, and the jobs against the ledger."""
    found, result = await app.aschedules(limit=1000), Count()
    jobs = await app.client.call(all_jobs)
    made = Counter((job.schedule_id, job.nominal_at) for job in jobs)
    assert max(made.values()) == 1, "a nominal time became two jobs"
    for schedule in found:
        lines = await app.client.call(lambda store, key=schedule.id: store.occurrences(key, limit=100_000))  # type: ignore[misc]
        check_ledger(schedule, lines[::-1])
        fired = [line.nominal_at for line in lines if line.job_id]
        assert {at for key, at in made if key == schedule.id} == set(fired), "jobs and ledger tell different stories"
        result.schedules += 1
        result.fired += len(fired)
        result.skipped += sum(line.count for line in lines if not line.job_id)
    result.expected, result.jobs = result.fired + result.skipped, len(jobs)
    return result


def check_ledger(schedule: ScheduleRecord, lines: list[Line]) -> None:
    """Every nominal time from the first to the last stands in one line."""
    assert lines, f"{schedule.name} has never fired"
    assert schedule.last_at == lines[-1].until_at
    nominal = schedule.schedule.opening()
    for line in lines:
        assert line.nominal_at == nominal, f"{schedule.name}: {nominal} is missing, or recorded twice"
        assert line.until_at - line.nominal_at == (line.count - 1) * interval(schedule)
        nominal = line.until_at + interval(schedule)


def interval(schedule: ScheduleRecord) -> timedelta:
    return timedelta(seconds=schedule.schedule.when.seconds)  # type: ignore[union-attr]


async def all_jobs(store: Store) -> list[JobRecord]:
    found: list[JobRecord] = []
    cursor: UUID | None = None
    while page := await store.find(JobFilter(limit=1000, cursor=cursor)):
        found += page
        cursor = page[-1].id
    return [job for job in found if job.nominal_at]


async def make(app: Headway, number: int, **options: str) -> None:
    """So many schedules that are all due at the same moments."""
    start = datetime.now(UTC).replace(microsecond=0) + 3 * SECOND
    tick = app.function("tick")
    for each in range(number):
        await app.aschedule(f"s{each}", every(1), tick, start=start, overlap="allow", **options)  # type: ignore[arg-type]


def ticking(url: str) -> Headway:
    app = Headway(url)

    @app.job(name="tick")
    async def tick() -> None: ...

    return app


async def drained(app: Headway) -> None:
    async def nothing_open() -> bool:
        counts = await app.client.call(lambda store: store.counts())
        return not any(number for states in counts.values() for state, number in states.items() if not state.terminal)

    await until(nothing_open, "all jobs to end", 60)
    await nothing_waits(app, {UUID(int=1)})


def scheduler(processes: Processes, url: str) -> Process:
    return processes.headway("scheduler", "--store", url, "--log-json")


FIRING = """
    select client_port from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_xid is not null
      and (query like '%headway.occurrence%' or query like '%headway.schedule%' or query like '%headway.job%')
"""
TORN = "unexpected EOF on client connection with an open transaction"
"""What the server notes when a client vanishes in the middle."""


async def at_it(watch: asyncpg.Connection, crew: list[Process]) -> Process:
    """The scheduler that is in the middle of firing. Whose connection is whose is found out before: afterwards it would
    be over."""
    while True:
        owners = {link.laddr.port: each for each in crew for link in psutil.Process(each.pid).net_connections()}
        for row in await watch.fetch(FIRING):
            if row["client_port"] in owners:
                return owners[row["client_port"]]


async def kill_schedulers(server: PostgresServer, processes: Processes, rounds: int) -> None:
    """Three schedulers; whoever is seen to fire is killed, and started again."""
    url = server.create_database()
    await migrate(url)
    app, watch = ticking(url), await asyncpg.connect(url)
    crew = [scheduler(processes, url) for _ in range(3)]
    for each in crew:
        await asyncio.to_thread(each.wait_for, "scheduler.started")
    async with app.worker(lease=LEASE):
        await make(app, 200, misfire="run_all")
        await asyncio.sleep(3)
        for _ in range(rounds):
            victim = await at_it(watch, crew)
            victim.kill()
            crew[crew.index(victim)] = scheduler(processes, url)
            await asyncio.sleep(0.9)
        await asyncio.sleep(3)
        for each in crew:
            # The last one may not have come far enough to hear of a signal.
            await asyncio.to_thread(each.wait_for, "scheduler.started")
            assert await asyncio.to_thread(each.stop) == 0
        await drained(app)
    found, torn = await count(app), server.log.read_text(errors="replace").count(TORN)
    print(f"\n{rounds} x kill -9 of three schedulers, {torn} in the middle of a transaction: {found}")
    assert found.skipped == 0, "all that was missed was made up for"
    assert found.expected == found.jobs >= 200 * 0.8 * rounds
    assert torn >= rounds / 3
    await watch.close()
    await app.aclose()


@pytest.mark.timeout(180)
async def test_three_schedulers_are_killed_while_they_fire_and_each_time_is_fired_once(
    private_postgres: PostgresServer, processes: Processes
) -> None:
    await kill_schedulers(private_postgres, processes, 9)


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_schedulers_are_killed_for_a_minute(private_postgres: PostgresServer, processes: Processes) -> None:
    await kill_schedulers(private_postgres, processes, 60)


@pytest.mark.timeout(180)
async def test_postgres_is_away_for_ten_seconds_under_schedules(private_postgres: PostgresServer) -> None:
    url = private_postgres.create_database()
    await migrate(url)
    app = ticking(url)
    async with app.worker(lease=LEASE, scheduler=True):
        await make(app, 20, misfire="run_all")
        await app.aschedule("coalescing", every(1), app.function("tick"), overlap="allow")
        await asyncio.sleep(5)
        await asyncio.to_thread(private_postgres.stop, "immediate")
        await asyncio.sleep(10)
        await asyncio.to_thread(private_postgres.start)
        started_at, back = time.monotonic(), datetime.now(UTC)

        async def fired_again() -> bool:
            found = await app.aschedules(limit=1000)
            return all((one.last_at or back) > back for one in found)

        await until(fired_again, "all to fire again", RECOVERY)
        recovery = time.monotonic() - started_at
        await asyncio.sleep(2)
        await asyncio.gather(*(app.apause_schedule(one) for one in await app.aschedules(limit=1000)))
        await drained(app)
    found = await count(app)
    print(f"\nPostgreSQL away for 10 s: {found}; all fired again {recovery:.1f} s after its start")
    everybody = [one.name for one in await app.aschedules(limit=1000)]
    skipped = [line for name in everybody for line in await app.aoccurrences(name) if line.reason]
    # What was due when it was paused, and not yet fired on a busy machine, is none of the outage's.
    assert [line.reason for line in skipped if line.reason != "paused"] == ["coalesced"]
    assert 7 <= sum(line.count for line in skipped) == found.skipped
    assert recovery <= RECOVERY
    await app.aclose()


@pytest.mark.parametrize("write", ["commit", "insert into headway.occurrence", "update headway.schedule"])
async def test_a_reply_is_lost_while_a_scheduler_fires_and_nothing_is_fired_twice(migrated: str, write: str) -> None:
    """The server has done it, the scheduler does not know: it looks, and neither repeats nor forgets."""
    app = ticking(migrated)
    with Proxy(migrated) as proxy:
        firing = ticking(proxy.url)
        clock = firing.scheduler()
        await clock.start()
        async with app.worker(lease=LEASE):
            await make(app, 10, misfire="run_all")
            await asyncio.sleep(3)
            for _ in range(4):
                proxy.lose_reply(write)
                await until(lambda: not proxy.armed, f"a reply to {write} to be lost")
            await asyncio.sleep(1.5)
            await clock.stop()
            await drained(app)
        found = await count(app)
        print(f"\n{proxy.cuts} x the reply to {write!r} was lost: {found}")
        assert (proxy.cuts, found.skipped) == (4, 0)
        await firing.aclose()
    await app.aclose()


@pytest.mark.timeout(180)
async def test_connections_are_cut_at_random_while_schedulers_fire(migrated: str) -> None:
    app, chance = ticking(migrated), random.Random(11)
    with Proxy(migrated) as proxy:
        proxy.cut_after = lambda: chance.randint(20_000, 200_000)
        crew = [ticking(proxy.url) for _ in range(2)]
        clocks = [each.scheduler() for each in crew]
        for each in clocks:
            await each.start()
        async with app.worker(lease=LEASE):
            await make(app, 30, misfire="run_all")
            await asyncio.sleep(3)
            for _ in range(5):
                await asyncio.sleep(1)
                proxy.cut()
            proxy.cut_after = None
            await asyncio.sleep(2)
            for each in clocks:
                await each.stop()
            await drained(app)
        found = await count(app)
        print(f"\n{proxy.cuts} cuts of {proxy.connections} connections: {found}")
        assert found.skipped == 0
        assert proxy.cuts >= 5
        for other in crew:
            await other.aclose()
    await app.aclose()
