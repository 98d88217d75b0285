"""The command line, each command as a user types it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from headway.cli import TREE
from headway.cli.tree import Branch
from tests.flow.conftest import sqlite_url
from tests.flow.processes import Processes, Project
from tests.flow.terminal import Terminal
from tests.flow.waiting import block_until

SHOP = """
@app.job(name="shop.sell", queue="sales", timeout=30)
async def sell(product: str, count: int = 1) -> str:
    return f"{count} x {product}"
"""


def test_every_command_explains_itself(tmp_path: Path) -> None:
    words = list(commands(TREE))
    terminal = Terminal(tmp_path, None, COLUMNS="120")
    for command, shown in zip(words, terminal.each(*(f"{each} --help" for each in words)), strict=True):
        assert shown.status == 0
        assert "Usage:" in shown.out
        for flag in re.findall(r"--[a-z-]+", shown.out):
            line = next(line for line in shown.out.splitlines() if flag in line)
            assert len(line.split()) > 2, f"{flag} of {command} is not explained"


def commands(what: str | Branch, *before: str) -> Iterator[str]:
    """The command and all below it."""
    yield " ".join(before)
    if isinstance(what, Branch):
        for name, inner in what.below.items():
            yield from commands(inner, *before, name)


def test_a_command_loads_no_other(tmp_path: Path) -> None:
    code = "import sys; from headway.cli import main; sys.argv = ['headway', 'jobs', 'why', '--help']; "
    code += "import atexit; atexit.register(lambda: print(*sys.modules)); main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "headway.cli.jobs" in loaded
    assert not {"headway.cli.worker", "headway.cli.up", "headway.cli.bench"} & loaded


def test_the_version_is_told(tmp_path: Path) -> None:
    assert Terminal(tmp_path, None).fine("--version").out == f"headway {version('headway')}\n"


def test_the_command_is_installed(processes: Processes) -> None:
    process = processes.headway("--help", COLUMNS="120", NO_COLOR="1")
    assert process.ended() == 0
    for name in ("worker", "jobs", "queues", "workers", "doctor"):
        assert f" {name} " in process.text()


def test_without_a_command_there_is_help_and_a_wrong_one_is_named(processes: Processes) -> None:
    nothing, wrong = processes.headway(), processes.headway("wrok")
    assert nothing.ended() == 2
    assert "worker" in nothing.text()
    assert wrong.ended() == 2
    assert "No such command 'wrok'" in wrong.text()


def test_a_worker_serves_the_queues_it_is_told(project: Project) -> None:
    app = project.app(SHOP)
    worker = project.worker("--queue", "sales=3", "-q", "other")
    [started] = worker.lines("worker.started")
    assert started["queues"] == {"sales": 3, "other": 100}
    assert app.function("shop.sell").submit("tea", count=2).wait(60).result == "2 x tea"
    elsewhere = app.function("shop.sell").options(queue="default").submit("tea")
    app.function("shop.sell").submit("tea").wait(60)
    assert elsewhere.refresh().state == "scheduled"
    assert worker.stop() == 0
    [stopped] = worker.lines("worker.stopped")
    assert stopped["ended"] == 2
    console = project.processes.headway("worker", "--app", "jobs:app", "--log-console")
    block_until(lambda: "worker.started" in console.text(), "the worker to start")
    assert console.stop() == 0


def test_the_demo_runs_jobs_and_shows_how_they_end(processes: Processes) -> None:
    demo = processes.headway("demo", "--jobs", "20", COLUMNS="120")
    assert demo.ended() == 0, demo.text()
    text = demo.text()
    assert "Headway demo" in text
    assert len(re.findall(r"attempt \d+\s+(completed|failed)", text)) == 20
    assert "The last jobs" in text
    assert "Traceback" not in text


def test_the_demo_ends_on_request(processes: Processes) -> None:
    demo = processes.headway("demo")
    block_until(lambda: "completed" in demo.text(), "a job of the demo to complete")
    assert demo.stop() in (0, 130, -15, 143)
    assert "Traceback" not in demo.text()


def test_migrate_makes_the_schema_once(processes: Processes, postgres_url: str, tmp_path: Path) -> None:
    for url in (postgres_url, sqlite_url(tmp_path)):
        first = processes.headway("migrate", "--store", url)
        assert first.ended() == 0, first.text()
        assert "applied 0001_core" in first.text()
        again = processes.headway("migrate", HEADWAY_STORE=url)
        assert again.ended() == 0
        assert again.text().strip() == "the schema is up to date"


def test_functions_are_listed_once_a_worker_has_announced_them(postgres_project: Project) -> None:
    postgres_project.app(SHOP)
    before = postgres_project.processes.headway("functions", "--store", postgres_project.url)
    assert before.ended() == 0
    assert "no worker has announced a function yet: start one with `headway worker`" in " ".join(before.text().split())
    assert postgres_project.worker().stop() == 0
    table = postgres_project.processes.headway("functions", "--store", postgres_project.url, COLUMNS="160")
    assert table.ended() == 0
    assert re.search(r"shop\.sell.*sales.*product, count", table.text())
    listed = postgres_project.processes.headway("functions", "--json", HEADWAY_STORE=postgres_project.url)
    assert listed.ended() == 0
    [info] = json.loads(listed.text())
    assert (info["name"], info["queue"], info["defaults"]["timeout"]) == ("shop.sell", "sales", 30.0)
    assert info["parameters"]["required"] == ["product"]


def test_check_tells_which_waiting_jobs_the_code_can_not_run(sqlite_project: Project) -> None:
    app = sqlite_project.app(SHOP)
    good = app.function("shop.sell").submit("tea")
    sqlite_project.write("", module="without")
    sqlite_project.write(SHOP.replace("product: str", "product: int"), module="changed")
    fine = sqlite_project.processes.headway("check", "--app", "jobs:app")
    assert fine.ended() == 0, fine.text()
    assert "1 waiting jobs looked at, 0 that this code can't run" in fine.text()
    missing = sqlite_project.processes.headway("check", "--app", "without:app")
    assert missing.ended() == 1
    assert f"{good.id}  shop.sell: the function is not part of this code" in missing.text()
    changed = sqlite_project.processes.headway("check", "--app", "changed:app")
    assert changed.ended() == 1
    assert "the argument 'product' must be int" in changed.text()
    assert "Traceback" not in changed.text()


def test_a_store_that_is_not_there_is_said_in_one_sentence(processes: Processes) -> None:
    for command in ("migrate", "functions"):
        process = processes.headway(command, "--store", "sqlite:////nosuch/headway.db")
        assert process.ended() == 2
        assert "there is no directory /nosuch: create it first" in process.text()
        assert "Traceback" not in process.text()
