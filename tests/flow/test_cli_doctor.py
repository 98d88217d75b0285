"""`headway doctor`: what is well, what is not, and how to mend it."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headway.bench.server import PrivatePostgres
from headway.cli.checks import CHECKS, Patient
from headway.cli.checks.store import clock as check_clock
from headway.cli.doctor import examine
from headway.clock import FakeClock, SystemClock
from headway.model.findings import Finding, Level, problem
from headway.model.limits import Retention
from headway.store.postgres import postgres_store
from headway.store.postgres.driver import PostgresDriver
from headway.store.sqlite import sqlite_store
from tests.flow.conftest import migrate, sqlite_url
from tests.flow.processes import Project
from tests.flow.terminal import WIDTH, Terminal
from tests.flow.waiting import block_until
from tests.rabbit import Rabbit
from tests.servers import Postgres, database_of

STUBBORN = """
import threading

@app.job(name="stubborn", queue="mail")
def stubborn() -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends and not (here / "go").exists():
        try:
            time.sleep(0.01)
        except BaseException:
            pass
"""


def levels(findings: list[dict[str, Any]]) -> dict[str, str]:
    """The worst of each check."""
    order = ["ok", "warning", "problem"]
    worst: dict[str, str] = {}
    for finding in findings:
        worst[finding["check"]] = max(worst.get(finding["check"], "ok"), finding["level"], key=order.index)
    return worst


def test_all_is_well_where_a_worker_serves_every_queue(project: Project) -> None:
    app = project.app(STUBBORN)
    (project.directory / "go").touch()
    worker = project.worker("--queue", "mail")
    app.function("stubborn").submit().wait(60)
    terminal = Terminal(project.directory, project.url)
    told = terminal.fine("doctor")
    assert told.out.splitlines()[-1] == "all is well"
    assert max(map(len, told.out.splitlines())) <= WIDTH
    report = terminal.json("doctor")
    assert report["ok"] is True
    checks = levels(report["findings"])
    assert set(checks.values()) == {"ok"}
    engine = {"rights", "size"} | (
        {"server", "durability", "connections", "open transactions", "dead rows"}
        if project.url.startswith("postgresql")
        else {"disk", "file system", "journal"}
    )
    assert set(checks) == engine | {
        "store", "schema", "writing", "clock", "retention", "workers", "leases", "cancels", "queues",
        "schedules", "bus", "output", "lines", "audit", "admin token", "vault",
    }  # fmt: skip
    assert worker.stop() == 0


def test_jobs_that_no_worker_serves_are_a_problem(project: Project) -> None:
    app = project.app(STUBBORN)
    app.function("stubborn").submit()
    app.function("stubborn").options(queue="slow").submit()
    app.queue("slow", paused=True)
    done = Terminal(project.directory, project.url).run("doctor")
    assert done.status == 1
    assert "problem queues" in done.words
    assert "1 job due in the queue mail for up to" in done.words
    assert "→ start one: headway worker --app MODULE:APP --queue mail" in done.words
    assert "warning queues" in done.words
    assert "the queue slow is paused by jobs, 1 job due in it → to go on: headway queues resume slow" in done.words
    assert "warning workers" in done.words
    assert done.out.splitlines()[-1] == "1 problem and 2 warnings"


def test_a_killed_workers_leases_are_a_problem_when_nobody_rescues_its_jobs(sqlite_project: Project) -> None:
    app = sqlite_project.app(STUBBORN)
    worker = sqlite_project.worker("--queue", "mail", "--lease", "0.5")
    job = app.function("stubborn").submit()
    block_until(lambda: job.refresh().state == "running", "the job to run")
    worker.kill()

    def at(later: float) -> dict[str, str]:
        """The findings so many seconds from now."""
        clock = FakeClock(SystemClock().now())
        clock.step_wall(later)
        return asyncio.run(_levels(sqlite_project.directory / "headway.db", clock))

    assert at(1)["leases"] == "ok"
    found = at(30)
    assert (found["leases"], found["workers"], found["queues"]) == ("problem", "ok", "ok")
    assert at(90)["workers"] == "warning"


async def _levels(path: Path, clock: FakeClock) -> dict[str, str]:
    store = sqlite_store(path, clock=clock)
    await store.open()
    patient = Patient(url="", store=store, clock=clock, environment={})
    findings = [finding for check in CHECKS.values() for finding in await check(patient)]
    await store.close()
    return levels([{"check": finding.check, "level": finding.level} for finding in findings])


def test_a_cancel_that_a_thread_ignores_is_told(sqlite_project: Project) -> None:
    app = sqlite_project.app(STUBBORN)
    worker = sqlite_project.worker("--queue", "mail")
    job = app.function("stubborn").submit()
    block_until(lambda: job.refresh().state == "running", "the job to run")
    app.cancel(job)
    path = sqlite_project.directory / "headway.db"

    async def stuck(patience: float) -> list[str]:
        store = sqlite_store(path)
        await store.open()
        upkeep = await store.upkeep(Retention(), patience)
        await store.close()
        return [str(found.job_id) for found in upkeep.stuck]

    assert asyncio.run(stuck(0.0)) == [str(job.id)]
    assert asyncio.run(stuck(60.0)) == []
    (sqlite_project.directory / "go").touch()
    job.wait(60)
    worker.kill()


# PostgreSQL


def test_a_server_that_may_lose_jobs_is_a_problem() -> None:
    settings = {"fsync": "off", "max_connections": "8", "autovacuum": "off", "superuser_reserved_connections": "1"}
    with PrivatePostgres(settings) as server:
        url = server.admin_url
        asyncio.run(migrate(url))
        found = {finding.check: finding for finding in asyncio.run(examine(url))}
    assert found["durability"].level is Level.PROBLEM
    assert found["durability"].text.startswith("fsync is off")
    assert found["connections"].level is Level.WARNING
    assert found["dead rows"].level is Level.WARNING


def test_settings_of_the_database_count_too(postgres: Postgres, migrated: str) -> None:
    with psycopg.connect(postgres.admin_url, autocommit=True) as connection:
        connection.execute(f"alter database {database_of(migrated)} set default_transaction_read_only = on")
    done = Terminal(Path.cwd(), migrated).run("doctor")
    assert done.status == 1
    assert "read-only" in done.words


def test_a_user_who_may_only_read_learns_what_is_missing(postgres: Postgres, migrated: str) -> None:
    user = f"reader_{os.getpid()}"
    with psycopg.connect(migrated, autocommit=True) as connection:
        connection.execute(f"create role {user} login")
        connection.execute(f"grant usage on schema headway to {user}")
        connection.execute(f"grant select on all tables in schema headway to {user}")
    try:
        terminal = Terminal(Path.cwd(), migrated.replace("postgres@", f"{user}@"))
        report = terminal.run("doctor", "--json").data
        assert levels(report["findings"])["rights"] == "problem"
        assert levels(report["findings"])["writing"] == "problem"
        assert levels(report["findings"])["retention"] == "ok"
        assert terminal.fine("jobs", "list").out == "there are no jobs\n"
        assert "this user lacks rights there" in terminal.refused("queues", "pause", "mail")
        with psycopg.connect(migrated, autocommit=True) as connection:
            connection.execute(f"grant insert, update, delete on all tables in schema headway to {user}")
        # No right to create anything is needed.
        assert set(levels(terminal.json("doctor")["findings"]).values()) == {"ok", "warning"}
        terminal.fine("queues", "pause", "mail")
    finally:
        with psycopg.connect(migrated, autocommit=True) as connection:
            connection.execute(f"drop owned by {user}")
            connection.execute(f"drop role {user}")


async def test_a_transaction_that_somebody_keeps_open_is_told(migrated: str) -> None:
    store = postgres_store(migrated)
    await store.open()
    driver = store._driver
    assert isinstance(driver, PostgresDriver)
    try:
        with psycopg.connect(migrated, application_name="forgotten") as connection:
            connection.execute("create table theirs ()")
            [found] = [each for each in await driver.examine(long_open=0.0) if each.check == "open transactions"]
            connection.rollback()
        after = {finding.check: finding.level for finding in await driver.examine(long_open=0.0)}
    finally:
        await store.close()
    assert found.level is Level.WARNING
    assert "(forgotten, idle in transaction)" in found.text
    assert found.mend is not None
    assert "pg_terminate_backend" in found.mend
    assert after["open transactions"] is Level.OK


def test_a_store_without_a_schema_or_without_a_server(postgres_url: str) -> None:
    terminal = Terminal(Path.cwd(), None)
    empty = terminal.run("doctor", "--store", postgres_url)
    assert empty.status == 1
    assert "problem schema the store's schema lacks" in empty.words
    assert "→ headway migrate" in empty.words
    began = time.monotonic()
    gone = terminal.run("doctor", "--store", "postgresql://nobody:secret@127.0.0.1:1/x", "--json")
    assert gone.status == 1
    assert time.monotonic() - began < 40, "nobody waits that long for an answer"
    [finding] = gone.data["findings"]
    assert (finding["check"], finding["level"]) == ("store", "problem")
    assert "can't reach the store postgresql://nobody:***@127.0.0.1:1/x" in finding["text"]
    assert "is no store" in terminal.refused("doctor", "--store", "nothing")


# The list of checks


async def test_clocks_that_are_apart_are_told(tmp_path: Path) -> None:
    ours, theirs = FakeClock(), FakeClock()
    store = sqlite_store(tmp_path / "x.db", clock=theirs)
    await store.open()
    patient = Patient(url="", store=store, clock=ours, environment={})
    found = []
    for step in (0, 5, 100, -210):
        theirs.step_wall(step)
        found += [(finding.level.value, finding.text) for finding in await check_clock(patient)]
    await store.close()
    assert found == [
        ("ok", "this machine and the store are 0 s apart"),
        ("warning", "this machine and the store are 5 s apart: this one is behind the store"),
        ("problem", "this machine and the store are 1 min 45 s apart: this one is behind the store"),
        ("problem", "this machine and the store are 1 min 45 s apart: this one is ahead of the store"),
    ]


def test_a_check_can_be_added_and_one_that_breaks_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def moon(patient: Patient) -> list[Finding]:
        return [problem("moon", f"{patient.environment['HEADWAY_MOON']} does not answer", "wait")]

    async def broken(patient: Patient) -> list[Finding]:
        raise ZeroDivisionError("oops")

    monkeypatch.setenv("HEADWAY_MOON", "full")
    monkeypatch.setitem(CHECKS, "broken", broken)
    monkeypatch.setitem(CHECKS, "moon", moon)
    asyncio.run(migrate(sqlite_url(tmp_path)))
    findings = asyncio.run(examine(sqlite_url(tmp_path)))
    assert findings[-1] == problem("moon", "full does not answer", "wait")
    assert findings[-2].text == "can't be looked at: ZeroDivisionError: oops"
    assert len(findings) > len(CHECKS)


def test_the_bus_is_called_and_one_that_is_away_is_a_problem(sqlite_project: Project, rabbit: Rabbit) -> None:
    asyncio.run(migrate(sqlite_project.url))
    found = _bus(sqlite_project, rabbit.url)
    assert (found["level"], "answers in" in found["text"]) == ("ok", True)
    away = _bus(sqlite_project, "amqp://guest:secret@127.0.0.1:1/")
    assert (away["level"], "secret" in away["text"], "start the broker" in away["mend"]) == ("problem", False, True)
    assert _bus(sqlite_project, "carrier://pigeon")["level"] == "problem"
    named = Terminal(sqlite_project.directory, sqlite_project.url).run("doctor", "--bus", "carrier://pigeon", "--json")
    [found] = [finding for finding in named.data["findings"] if finding["check"] == "bus"]
    assert "'carrier://pigeon' is no bus" in found["text"]


def _bus(project: Project, url: str) -> dict[str, Any]:
    return _finding(project, "bus", HEADWAY_BUS=url)


def _finding(project: Project, check: str, **environment: str) -> dict[str, Any]:
    done = Terminal(project.directory, project.url, **environment).run("doctor", "--json")
    [found] = [finding for finding in done.data["findings"] if finding["check"] == check]
    told: dict[str, Any] = found
    return told


def test_the_place_for_output_is_written_and_read(sqlite_project: Project) -> None:
    asyncio.run(migrate(sqlite_project.url))
    assert "in the store" in _output(sqlite_project, "store")["text"]
    directory = sqlite_project.directory / "output"
    found = _output(sqlite_project, f"file://{directory}")
    assert (found["level"], "all machines" in found["text"]) == ("ok", True)
    assert list(directory.iterdir()) == []
    (sqlite_project.directory / "file").touch()
    away = _output(sqlite_project, f"file://{sqlite_project.directory}/file/output")
    assert (away["level"], "HEADWAY_OUTPUT" in away["mend"]) == ("problem", True)


def _output(project: Project, url: str) -> dict[str, Any]:
    return _finding(project, "output", HEADWAY_OUTPUT=url)
