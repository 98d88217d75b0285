"""`headway queues …` and `headway workers`, on both stores and with real workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.conftest import sqlite_url
from tests.flow.processes import Project
from tests.flow.terminal import WIDTH, Terminal
from tests.flow.waiting import block_until

MAIL = """
@app.job(name="mail.send", queue="mail")
async def send(number: int = 0) -> None:
    while not (here / "go").exists():
        await asyncio.sleep(0.01)
"""


@pytest.fixture
def terminal(project: Project) -> Terminal:
    return Terminal(project.directory, project.url)


def test_queues_and_workers_are_listed_as_they_are(project: Project, terminal: Terminal) -> None:
    app = project.app(MAIL)
    send = app.function("mail.send")
    app.queue("reports", key_max_running=1)
    assert terminal.fine("workers").out == "no worker runs: start one with `headway worker --app module:app`\n"
    worker = project.worker("--queue", "mail=2", "--queue", "other=1")
    jobs = [send.submit(number) for number in range(5)]
    send.options(delay=3600).submit()
    held = send.options(hold=True).submit()
    send.options(after=[held]).submit()
    send.options(queue="nobody").submit()
    block_until(lambda: sum(job.refresh().state == "running" for job in jobs) == 2, "both slots to be taken")

    queues = {queue["name"]: queue for queue in terminal.json("queues", "list")["items"]}
    assert set(queues) == {"mail", "nobody", "other", "reports"}
    figures = ("waiting", "due", "running", "blocked", "on_hold")
    assert [queues["mail"][name] for name in figures] == [4, 3, 2, 1, 1]
    assert [queues["nobody"][name] for name in figures] == [1, 1, 0, 0, 0]
    assert queues["nobody"]["oldest_due"] > 0
    assert queues["nobody"]["workers"] == []
    assert queues["reports"]["key_max_running"] == 1
    assert len(queues["mail"]["workers"]) == 1
    table = terminal.fine("queues", "list").out.splitlines()
    headings = "queue waiting due oldest due running blocked on hold workers paused limits"
    assert " ".join(table[0].split()) == headings
    assert max(map(len, table)) <= WIDTH
    assert next(line for line in table if line.startswith("nobody")).split()[-1] == "none"

    [info] = terminal.json("workers")["items"]
    assert (info["pid"], info["queues"], info["slots"], info["held"]) == (worker.pid, ["mail", "other"], 3, 2)
    assert info["alive"]
    shown = terminal.fine("workers").words
    assert f"{info['name']} {info['host']} {worker.pid} mail, other 2 3" in shown
    (project.directory / "go").touch()
    assert worker.stop() == 0


def test_a_queue_is_paused_and_resumed(project: Project, terminal: Terminal) -> None:
    app = project.app(MAIL)
    app.queue("mail", max_running=10)
    (project.directory / "go").touch()
    said = terminal.fine("queues", "pause", "mail").out
    assert said.startswith(
        "the queue mail is paused; workers start none of its jobs until `headway queues resume mail`"
    )
    worker = project.worker("--queue", "mail", "--queue", "other")
    paused = app.function("mail.send").submit()
    app.function("mail.send").options(queue="other").submit().wait(60)
    assert paused.refresh().state == "scheduled"
    [mail] = [queue for queue in terminal.json("queues", "list")["items"] if queue["name"] == "mail"]
    assert (mail["paused"], mail["paused_by"]) == (True, "cli:ann")
    assert "by cli:ann" in terminal.fine("queues", "list").out
    terminal.fine("queues", "resume", "mail")
    assert paused.wait(60).state == "completed"
    assert worker.stop() == 0


def test_limits_are_set_and_lifted_one_by_one(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, sqlite_url(tmp_path))
    terminal.fine("migrate")
    flags = "--max-running 5 --rate 100/m --key-max-running 1 --key-rate 5/10s --keep-completed 12h --keep-failed 90d"
    every, _, some, listed, none = terminal.each(
        f"queues set mail {flags}",
        "queues set mail --no-rate --no-key-max-running --no-keep-failed",
        "queues set mail --no-key-rate --max-running 7",
        "queues list --json",
        "queues set mail --no-max-running --no-keep-completed --json",
    )
    assert every.out == "mail: max 5, 100/60s, per key max 1, per key 5/10s, keep completed 12 h, keep failed 90 d\n"
    assert some.out == "mail: max 7, keep completed 12 h\n"
    [mail] = listed.data["items"]
    assert (mail["max_running"], mail["rate"], mail["keep_completed"]) == (7, None, 43_200)
    assert (none.data["name"], none.data["max_running"], none.data["keep_completed"]) == ("mail", None, None)
    wrong = {
        "queues set mail": "nothing to set is named",
        "queues set mail --rate 5": "rate must look like '10/s'",
        "queues set mail --rate 5/s --no-rate": "--rate and --no-rate contradict each other",
        "queues set mail --keep-failed long": "--keep-failed 'long' is no length of time",
    }
    for words, said in zip(wrong.values(), terminal.all_refused(list(wrong)), strict=True):
        assert words in said
    assert terminal.run("queues", "set", "mail", "--max-running", "0").status == 2
