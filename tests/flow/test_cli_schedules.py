"""`headway schedules …`, `headway scheduler` and `headway up`, as people type them, on both stores."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flow.conftest import sqlite_url
from tests.flow.processes import Process, Processes, Project
from tests.flow.terminal import WIDTH, Terminal
from tests.flow.waiting import block_until

REPORTS = """
@app.job(name="reports.monthly", queue="reports")
def monthly(month: int, *, draft: bool = False) -> int:
    note(f"{month}")
    return month
"""
TICKING = """
from headway import Schedule, cron, every

@app.job(name="tick", schedule=every(0.5))
async def tick() -> None:
    note("tick")

@app.job(name="nightly", schedule=cron("0 3 * * *", tz="Europe/Berlin"))
async def nightly() -> None: ...
"""
BODY = {
    "name": "from a file",
    "schedule": {"every": 60},
    "tags": ["a"],
    "job": {"kind": "call", "function": "reports.monthly", "args": [3], "priority": 5},
}


@pytest.fixture
def terminal(project: Project) -> Terminal:
    return Terminal(project.directory, project.url)


def announced(project: Project) -> None:
    """Its functions are known: a worker has been there."""
    project.write(REPORTS)
    assert project.worker("--queue", "nothing").stop() == 0


def test_a_schedule_is_made_by_flags_and_lives_its_life(project: Project, terminal: Terminal) -> None:
    announced(project)
    [made, listed, shown, preview, ran, again, paused, listed_paused, resumed, refused, deleted, empty] = terminal.each(
        "schedules create monthly --cron '0 6 1 * *' --tz Europe/Berlin --gap skip --fold both"
        " --function reports.monthly --args '[5]'"
        " --kwargs '{\"draft\": true}' --overlap skip --misfire run_all --jitter 5m --tag books --description 'all'",
        "schedules list",
        "schedules show monthly",
        "schedules preview monthly -n 2 --after 2030-02-15T00:00:00Z",
        "schedules run monthly",
        "schedules run monthly",
        "schedules pause monthly --reason holidays",
        "schedules list --paused --json",
        "schedules resume monthly",
        "schedules delete monthly",
        "schedules delete monthly --yes",
        "schedules list",
    )
    assert made.status == 0, made.err
    assert made.out.startswith("the schedule monthly is made; it fires next at ")
    assert "monthly 0 6 1 * * Europe/Berlin in" in listed.words
    assert "reports.monthly" in listed.words
    assert max(map(len, (listed.out + shown.out + preview.out).splitlines())) <= WIDTH
    for words in ("description all", "Europe/Berlin", "run_all", "300 s", "books", "by cli:ann", "no scheduler runs"):
        assert words in shown.words
    assert "2030-03-01 06:00:00 +0100 2030-03-01 05:00:00" in preview.words
    job = ran.words.split()[1]
    assert ran.words == f"job {job} is scheduled"
    assert again.words == f"an earlier job has not ended and stands for it: {job}"
    assert paused.words == "the schedule monthly is paused; to let it fire: headway schedules resume monthly"
    [item] = listed_paused.data["items"]
    assert (item["gap"], item["fold"]) == ("skip", "both")
    assert (item["name"], item["paused"], item["pause_reason"], item["job"]["kwargs"]) == (
        "monthly",
        True,
        "holidays",
        {"draft": True},
    )
    assert resumed.words.startswith("the schedule monthly is resumed; it fires next at")
    assert (refused.status, "add --yes" in refused.err) == (2, True)
    assert deleted.words == "the schedule monthly is removed"
    assert empty.words == "no schedule matches"


def test_a_schedule_is_made_from_a_body_in_a_file_or_on_standard_input(project: Project, terminal: Terminal) -> None:
    announced(project)
    (project.directory / "body.json").write_text(json.dumps(BODY))
    made = terminal.json("schedules", "create", "--from", "body.json", "--overlap", "wait")
    assert (made["name"], made["overlap"], made["schedule"], made["tags"]) == (
        "from a file",
        "wait",
        {"every": 60},
        ["a"],
    )
    assert made["job"]["priority"] == 5
    piped = subprocess.run(
        [sys.executable, "-m", "headway", "schedules", "create", "other", "--from", "-", "--store", project.url],
        input=json.dumps(BODY),
        text=True,
        capture_output=True,
        check=True,
    )
    assert "the schedule other is made" in piped.stdout
    assert "is taken" not in piped.stderr
    changed = terminal.json("schedules", "create", "--from", "body.json", "--replace", "--every", "2m")
    assert (changed["id"], changed["version"], changed["schedule"]) == (made["id"], 2, {"every": 120})
    page = terminal.json("schedules", "list", "--limit", "1")
    assert ([item["name"] for item in page["items"]], page["cursor"]) == (["from a file"], "from a file")
    [rest] = terminal.json("schedules", "list", "--cursor", page["cursor"])["items"]
    assert rest["name"] == "other"


def test_what_can_not_be_is_refused_in_one_sentence(sqlite_project: Project) -> None:
    announced(sqlite_project)
    terminal = Terminal(sqlite_project.directory, sqlite_project.url)
    call = "--function reports.monthly --args '[1]'"
    said = terminal.all_refused(
        [
            "schedules create",
            f"schedules create x --cron '61 * * * *' {call}",
            f"schedules create x --cron '* * 31 2 *' {call}",
            f"schedules create x --every 0 {call}",
            f"schedules create x --every 5m --tz Europe/Berln {call}",
            f"schedules create x --every 5m --start +2h --end +1h {call}",
            "schedules create x --every 5m --function nobody.knows",
            "schedules create x --every 5m --function reports.monthly",
            f"schedules create x --every 5m --cron '* * * * *' {call}",
            "schedules create x --every 5m --function reports.monthly --job '{}'",
            "schedules create x --every 5m --job '{'",
            "schedules create x --every 5m --args '[1]'",
            f"schedules create x --at -1h {call}",
            f"schedules create x --every 5m --overlap reject {call}",
            "schedules create x --from nowhere.json",
            "schedules show nobody",
            "schedules preview",
            "schedules preview monthly --cron '* * * * *'",
        ]
    )
    expected = [
        "name is missing",
        "the minute of '61 * * * *' is wrong",
        "never fires",
        "every must be seconds",
        "did you mean 'Europe/Berlin'",
        "later than start",
        "no worker has announced a function 'nobody.knows'",
        "the argument 'month' must be given",
        "--cron and --every contradict each other",
        "--function and --job contradict each other",
        "--job must be JSON such as",
        "--args and --kwargs go with --function",
        "would never fire",
        "overlap must be one of allow, skip, wait, replace",
        "--from nowhere.json: No such file",
        "there is no schedule nobody",
        "by its name, or say when",
        "by its name, or say when",
    ]
    for words, sentence in zip(expected, said, strict=True):
        assert words in sentence
    assert terminal.json("schedules", "list")["items"] == []


def test_a_preview_needs_no_store_and_marks_where_clocks_jump(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, None)
    shown = terminal.fine(
        "schedules",
        "preview",
        "--cron",
        "30 2 * * *",
        "--tz",
        "Europe/Berlin",
        "--after",
        "2030-03-30T12:00:00Z",
        "-n",
        "2",
    )
    assert "2030-03-31 03:00:00 +0200 2030-03-31 01:00:00" in shown.words
    assert "clocks go forward" in shown.words
    assert max(map(len, shown.out.splitlines())) <= WIDTH
    told = terminal.json("schedules", "preview", "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "3")
    assert len(told["items"]) == 3
    night = "schedules preview --cron '30 2 * * *' --tz Europe/Berlin"
    skipped, both = terminal.each(
        f"{night} --gap skip --after 2030-03-30T12:00:00Z -n 1 --json",
        f"{night} --fold both --after 2030-10-26T12:00:00Z --end 2030-10-28T00:00:00Z --json",
    )
    assert [fire["local"] for fire in skipped.data["items"]] == ["2030-04-01T02:30:00+02:00"]
    assert [fire["local"][11:] for fire in both.data["items"]] == ["02:30:00+02:00", "02:30:00+01:00"]


def scheduler(project: Project, *arguments: str) -> Process:
    process = project.processes.headway("scheduler", "--log-json", *arguments)
    process.wait_for("scheduler.started")
    return process


def test_a_scheduler_and_a_worker_apart_do_it_together(project: Project, terminal: Terminal) -> None:
    project.app(TICKING)
    worker = project.start_worker()
    worker.wait_for("schedules.no_scheduler")
    assert project.notes() == []
    clock = scheduler(project, "--app", "jobs:app")
    block_until(lambda: len(project.notes()) >= 2, "two runs")
    found = {info["pid"]: info for info in terminal.json("workers")["items"]}
    assert (found[clock.pid]["fires"], found[clock.pid]["queues"]) == (True, [])
    assert (found[worker.pid]["fires"], found[worker.pid]["queues"]) == (False, ["default"])
    assert "(schedules)" in terminal.fine("workers").out
    assert "1 scheduler" in terminal.run("doctor").words
    shown = terminal.fine("schedules", "occurrences", "tick", "-n", "3")
    assert "completed" in shown.words
    assert max(map(len, shown.out.splitlines())) <= WIDTH
    assert clock.stop() == 0
    assert clock.lines("scheduler.stopped")[0]["jobs"] >= 2
    assert [info["pid"] for info in terminal.json("workers")["items"]] == [worker.pid]
    assert "nobody fires them" in terminal.run("doctor").words
    assert worker.stop() == 0


def test_a_worker_fires_as_well_when_it_is_told_to(project: Project) -> None:
    project.write(TICKING)
    worker = project.worker("--scheduler")
    block_until(lambda: len(project.notes()) >= 3, "three runs")
    assert worker.stop() == 0
    assert worker.lines("schedules.no_scheduler") == []


def test_up_is_everything_in_one_process(project: Project, terminal: Terminal) -> None:
    project.write(TICKING + REPORTS)
    everything = project.processes.headway("up", "--app", "jobs:app", "--log-json")
    [started] = everything.wait_for("worker.started")
    assert started["queues"] == {"default": 100, "reports": 100}
    block_until(lambda: "tick" in project.notes(), "a run")
    terminal.fine("schedules", "create", "once", "--every", "1", "--function", "reports.monthly", "--args", "[7]")
    block_until(lambda: "7" in project.notes(), "a run of the new schedule")
    assert everything.stop() == 0
    assert "Traceback" not in everything.text()


def test_up_needs_no_app_and_makes_its_store(tmp_path: Path, processes: Processes) -> None:
    url = sqlite_url(tmp_path)
    everything = processes.headway("up", "--store", url, "--log-json")
    everything.wait_for("worker.started")
    assert f"a worker for default and a scheduler on {url}" in everything.text()
    assert everything.stop() == 0


def test_up_brings_a_new_database_up_to_date(postgres_url: str, processes: Processes) -> None:
    everything = processes.headway("up", "--store", postgres_url, "--log-json")
    everything.wait_for("worker.started")
    assert everything.stop() == 0


def test_a_scheduler_on_a_store_that_is_not_up_to_date_says_how_to_mend_it(
    postgres_url: str, processes: Processes
) -> None:
    wrong = processes.headway("scheduler", "--store", postgres_url)
    assert wrong.ended() == 2
    assert "run `headway migrate`" in wrong.text()


def test_an_app_and_another_store_contradict_each_other(sqlite_project: Project) -> None:
    sqlite_project.write(REPORTS)
    wrong = sqlite_project.processes.headway("scheduler", "--app", "jobs:app", "--store", "sqlite:///other.db")
    assert wrong.ended() == 2
    assert "leave the one out" in wrong.text()
