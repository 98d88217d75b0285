"""`headway jobs …`, as people type it, on both stores and with real workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway import Headway
from tests.flow.conftest import sqlite_url
from tests.flow.processes import Project
from tests.flow.terminal import WIDTH, Done, Terminal
from tests.flow.waiting import block_until

SHOP = """
@app.job(name="shop.sell", queue="sales", tags=("daily",))
async def sell(product: str) -> str:
    return f"sold {product}"

@app.job(name="shop.break", queue="sales", retry=Retry(max_attempts=2, wait=0.01))
async def fall(text: str) -> None:
    current().log.warning(f"about to break [{text}] in attempt {current().attempt}")
    raise ValueError(text)

@app.job(name="shop.wait", queue="sales")
async def wait() -> None:
    current().log.warning("waiting")
    while not (here / "go").exists():
        await asyncio.sleep(0.01)
    current().log.warning("gone")
"""


@pytest.fixture
def terminal(project: Project) -> Terminal:
    return Terminal(project.directory, project.url)


@pytest.fixture
def app(project: Project) -> Headway:
    return project.app(SHOP)


@pytest.fixture
def sqlite_terminal(tmp_path: Path) -> Iterator[tuple[Headway, Terminal]]:
    """For what does not depend on the store."""
    app = Headway(sqlite_url(tmp_path))
    app.job(name="shop.sell", queue="sales", tags=("daily",))(_sell)
    app.jobs()
    yield app, Terminal(tmp_path, app.url)
    app.close()


def _sell(product: str) -> str:
    return product


def names(done: Done) -> list[str]:
    """The product of each job that is listed."""
    return [job["metadata"]["product"] for job in done.data["items"]]


def sell(app: Headway, product: str, **options: Any) -> str:
    submitted = app.function("shop.sell").options(metadata={"product": product}, **options).submit(product)
    return str(submitted.id)


# Looking


FILTERS = {
    "": ["vip", "held", "later", "tea"],
    "--state PENDING": ["vip", "tea"],
    "--state creating,Scheduled": ["vip", "held", "later", "tea"],
    "-s creating -s pending --queue sales": ["held", "tea"],
    "--tag daily --tag vip": ["vip"],
    "--name shop.vip": ["vip"],
    "--name shop.* --kind call --limit 2": ["vip", "held"],
    "--kind http": [],
    "--time run --from +1h": ["later"],
    "--from -1h": ["vip", "held", "later", "tea"],
    "--from -1h --to -30m": [],
    "--from 2001-01-01T00:00:00Z --time finished": [],
}


def test_jobs_are_listed_by_every_filter(app: Headway, terminal: Terminal) -> None:
    sell(app, "tea")
    sell(app, "later", delay=7200)
    sell(app, "held", hold=True)
    sell(app, "vip", tags=("vip", "daily"), queue="vip", name="shop.vip")
    listed = terminal.each(*(f"jobs list --json {flags}" for flags in FILTERS))
    assert dict(zip(FILTERS, map(names, listed), strict=True)) == FILTERS
    assert terminal.fine("jobs", "list", "--queue", "nosuch").out == "no job matches\n"


def test_a_list_is_read_page_by_page(sqlite_terminal: tuple[Headway, Terminal]) -> None:
    app, terminal = sqlite_terminal
    jobs = [sell(app, f"p{number}") for number in range(5)]
    first = terminal.json("jobs", "list", "--limit", "3")
    assert [job["id"] for job in first["items"]] == jobs[:1:-1]
    second = terminal.json("jobs", "list", "--limit", "3", "--cursor", first["cursor"])
    assert [job["id"] for job in second["items"]] == jobs[1::-1]
    assert second["cursor"] is None
    shown = terminal.fine("jobs", "list", "--limit", "3")
    assert f"there are more: --cursor {jobs[2]}" in shown.err


def test_a_list_fits_into_a_hundred_columns(sqlite_terminal: tuple[Headway, Terminal]) -> None:
    app, terminal = sqlite_terminal
    jobs = [
        sell(app, "tea", delay=3600 * number, name=f"a.module.with.a.long.path.{number}", queue="a-rather-long-queue")
        for number in range(3)
    ]
    lines = terminal.fine("jobs", "list").out.splitlines()
    assert lines[0].split() == ["id", "state", "name", "queue", "when", "tries"]
    assert max(map(len, lines)) <= WIDTH
    assert [line.split()[0] for line in lines[2:]] == jobs[::-1]
    for line in lines[2:]:
        assert "…" in line
        assert line.endswith("0")


def test_a_job_is_shown_whole(project: Project, app: Headway, terminal: Terminal) -> None:
    with_worker = project.worker("--queue", "sales")
    job = app.function("shop.break").options(tags=["vip"], created_by="bob").submit("no [stock]").wait(60)
    text = terminal.fine("jobs", "show", str(job.id))
    for words in (
        f"shop.break failed {job.id}",
        "The job ended as failed, outcome failed, at",
        f"To run it again: headway jobs retry {job.id}",
        "tries 2/2, 2 failed",
        "tags vip",
        "created by bob",
        '"no [stock]"',
        "raise ValueError(text) ValueError: no [stock]",
        "1 failed",
        "2 failed",
        "running attempt 2",
        "failed failed: no [stock]",
    ):
        assert words in text.words, words
    assert max(map(len, text.out.splitlines())) <= WIDTH
    shown = terminal.json("jobs", "show", str(job.id))
    assert (shown["id"], shown["state"], shown["max_attempts"], shown["failures"]) == (str(job.id), "failed", 2, 2)
    assert shown["error"]["message"] == "no [stock]"
    assert shown["payload"]["function"] == "shop.break"
    assert [attempt["outcome"] for attempt in shown["attempts"]] == ["failed", "failed"]
    assert [line["what"] for line in shown["history"]] == ["scheduled", "running", "scheduled", "running", "failed"]
    assert (shown["warnings"], shown["why"]["reason"]) == ([], "ended")
    done = app.function("shop.sell").submit("tea").wait(60)
    assert terminal.json("jobs", "show", str(done.id))["result"] == "sold tea"
    assert with_worker.stop() == 0


def test_a_job_is_named_by_the_beginning_of_its_id(app: Headway, terminal: Terminal) -> None:
    first, second = sell(app, "tea"), sell(app, "tea")
    differs = next(place for place, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1])
    assert terminal.json("jobs", "show", second[: differs + 1])["id"] == second
    assert terminal.json("jobs", "why", second[: differs + 1].replace("-", "").upper())["id"] == second
    said = terminal.refused("jobs", "show", first[:6])
    assert "is the beginning of several ids, write more of it" in said
    assert f"{first}  pending  shop.sell" in said
    assert f"{second}  pending  shop.sell" in said
    commands = [f"jobs {verb} 0000" for verb in ("show", "why", "output", "cancel", "retry", "release", "delete")]
    assert set(terminal.all_refused(commands)) == {
        "there is no job whose id begins with 0000: it was never accepted, was deleted, or retention removed it"
    }


def test_why_follows_a_job_through_its_life(project: Project, app: Headway, terminal: Terminal) -> None:
    job = app.function("shop.wait").submit()

    def reason() -> str:
        found: str = terminal.json("jobs", "why", str(job.id))["reason"]
        return found

    text = terminal.fine("jobs", "why", str(job.id)).out
    assert text.startswith("No worker serves the queue sales.\nStart a worker that has the code: headway worker")
    assert "Also: no worker has announced the function shop.wait." in text
    terminal.fine("queues", "pause", "sales")
    assert "The queue sales is paused since" in (paused := terminal.fine("jobs", "why", str(job.id)).out)
    assert "by cli:ann." in paused
    worker = project.worker("--queue", "sales=1")
    assert reason() == "paused"
    terminal.fine("queues", "resume", "sales")
    block_until(lambda: job.refresh().state == "running", "the job to run")
    assert reason() == "running"
    behind = sell(app, "tea")
    said = terminal.fine("jobs", "why", behind).out
    assert "The only slot of the worker that serves the queue sales is busy, and no job is before it." in said
    (project.directory / "go").touch()
    job.wait(60)
    assert reason() == "ended"
    assert worker.stop() == 0


def test_output_is_printed_and_followed(project: Project, app: Headway, terminal: Terminal) -> None:
    worker = project.worker("--queue", "sales")
    broken = app.function("shop.break").submit("no").wait(60)
    assert "about to break [no] in attempt 2" in terminal.fine("jobs", "output", str(broken.id)).out
    assert "in attempt 1" in terminal.fine("jobs", "output", str(broken.id), "--attempt", "1").out
    assert "there is no attempt 3" in terminal.refused("jobs", "output", str(broken.id), "--attempt", "3")
    quiet = app.function("shop.sell").submit("tea").wait(60)
    assert terminal.fine("jobs", "output", str(quiet.id)).err == "the job has written nothing\n"
    job = app.function("shop.wait").submit()
    following = project.processes.headway("jobs", "output", str(job.id), "--follow", "--store", project.url)
    block_until(lambda: "waiting" in following.text(), "the first line")
    assert following.running
    assert "gone" not in following.text()
    (project.directory / "go").touch()
    assert following.ended() == 0
    assert "gone" in following.text()
    assert worker.stop() == 0


def test_output_is_followed_into_the_next_attempt(project: Project, app: Headway) -> None:
    job = app.function("shop.break").submit("no")
    following = project.processes.headway("jobs", "output", str(job.id), "--follow", "--store", project.url)
    worker = project.worker("--queue", "sales")
    assert following.ended() == 0
    assert "in attempt 2" in following.text()
    assert worker.stop() == 0


# Changing


def acts(app: Headway, terminal: Terminal, job_id: str) -> list[tuple[str, str | None]]:
    """What people did to the job, and who."""
    history = terminal.json("jobs", "show", job_id)["history"]
    return [(line["what"], line["by"]) for line in history if line["by"]]


def test_jobs_are_cancelled_and_retried_in_somebodys_name(project: Project, app: Headway, terminal: Terminal) -> None:
    waiting, held = sell(app, "tea"), sell(app, "held", hold=True)
    done = terminal.fine("jobs", "cancel", waiting, held, "--reason", "out of stock")
    assert done.out == f"{waiting}  cancelled\n{held}  cancelled\n"
    assert acts(app, terminal, waiting) == [("cancel", "cli:ann")]
    again = terminal.run("jobs", "cancel", waiting)
    assert (again.status, again.out) == (1, "")
    assert again.err == f"could not cancel: job {waiting} has ended before (cancelled)\n"
    assert terminal.fine("jobs", "retry", waiting, "--by", "bob").out == f"{waiting}  to be run again\n"
    assert acts(app, terminal, waiting) == [("cancel", "cli:ann"), ("retry", "bob")]
    mixed = terminal.run("jobs", "retry", waiting, held, "--json")
    assert mixed.status == 1
    items = {item["id"]: item for item in mixed.data["items"]}
    assert (items[held]["ok"], items[held]["state"], items[waiting]["ok"]) == (True, "scheduled", False)
    assert "only a job that has ended can be retried" in items[waiting]["error"]
    assert (mixed.data["done"], mixed.data["failed"]) == (1, 1)


def test_a_running_job_is_cancelled(project: Project, app: Headway, terminal: Terminal) -> None:
    worker = project.worker("--queue", "sales")
    job = app.function("shop.wait").submit()
    block_until(lambda: job.refresh().state == "running", "the job to run")
    assert terminal.fine("jobs", "cancel", str(job.id)).out == f"{job.id}  being cancelled, its worker is told\n"
    assert job.wait(60).state == "cancelled"
    told = terminal.fine("jobs", "why", str(job.id)).out
    assert "The job was cancelled on request of cli:ann at" in told
    assert worker.stop() == 0


def test_jobs_on_hold_are_released_and_others_moved(sqlite_terminal: tuple[Headway, Terminal]) -> None:
    app, terminal = sqlite_terminal
    held, later, due = sell(app, "held", hold=True), sell(app, "later", delay=7200), sell(app, "tea")
    assert terminal.fine("jobs", "release", held).out == f"{held}  scheduled\n"
    refused = terminal.run("jobs", "release", due)
    assert (refused.status, refused.err) == (1, f"could not release: job {due} is not on hold (scheduled)\n")
    now, pending, _, soon = terminal.each(
        f"jobs release {later} --at now",
        "jobs list --json --state pending",
        f"jobs release {later} --at +1h",
        "jobs list --json --time run --from +30m --to +2h",
    )
    assert now.out == f"{later}  scheduled\n"
    assert names(pending) == ["tea", "later", "held"]
    assert names(soon) == ["later"]
    assert "--at 'soon' is no time" in terminal.refused("jobs", "release", later, "--at", "soon")


def test_a_delete_wants_to_be_confirmed(sqlite_terminal: tuple[Headway, Terminal]) -> None:
    app, terminal = sqlite_terminal
    job = sell(app, "tea")
    assert terminal.refused("jobs", "delete", job) == "to delete 1 job without a terminal to ask at, add --yes"
    no = terminal.typed("jobs", "delete", job, keys="n\n")
    assert no.status == 1
    assert "Delete 1 job? [y/N]" in no.out
    assert "nothing was done" in no.out
    assert [str(job.id) for job in app.jobs()] == [job]
    yes = terminal.typed("jobs", "delete", job, keys="y\n")
    assert yes.status == 0
    assert f"{job}  removed" in yes.out
    assert app.jobs() == []
    other = sell(app, "coffee")
    assert terminal.fine("jobs", "delete", other, "--yes").out == f"{other}  removed\n"


def test_a_running_job_is_removed_once_it_has_stopped(project: Project, app: Headway, terminal: Terminal) -> None:
    worker = project.worker("--queue", "sales")
    job = app.function("shop.wait").submit()
    block_until(lambda: job.refresh().state == "running", "the job to run")
    assert "to be removed when it has stopped" in terminal.fine("jobs", "delete", str(job.id), "--yes").out
    block_until(lambda: not app.jobs(), "the job to be gone")
    assert worker.stop() == 0


def test_many_jobs_are_changed_by_filter(app: Headway, terminal: Terminal) -> None:
    function = app.function("shop.sell")
    app.submit_many([function.options(queue="bulk").call(str(number)) for number in range(1150)])
    other = sell(app, "tea")
    said = terminal.refused("jobs", "cancel", "--queue", "bulk")
    assert said.startswith("to cancel 1,150 jobs (state creating, scheduled, blocked, running; queue bulk) without")
    no = terminal.typed("jobs", "cancel", "--queue", "bulk", keys="n\n")
    assert (no.status, "Cancel 1,150 jobs" in no.words) == (1, True)
    assert terminal.fine("jobs", "cancel", "--queue", "bulk", "--yes").out == "1,150 jobs: cancelled\n"
    assert terminal.fine("jobs", "cancel", "--queue", "bulk", "--yes").out == "no job matches: nothing to do\n"
    assert app.get(app.jobs(queue="sales")[0].id).state == "scheduled"
    with_bar = terminal.typed("jobs", "retry", "--queue", "bulk", "--state", "cancelled", keys="y\n")
    assert with_bar.status == 0
    assert "1,150 jobs: to be run again" in with_bar.out
    assert "1150/1150" in with_bar.out
    report = terminal.json("jobs", "delete", "--queue", "bulk", "--state", "pending", "--yes")
    assert (report["done"], report["failed"], len(report["items"])) == (1150, 0, 1150)
    assert [str(job.id) for job in app.jobs()] == [other]


# Whatever is wrong is said in one sentence, with status 2


WRONG = {
    "jobs list --state sleeping": "unknown state 'sleeping': use one of blocked, cancelled",
    "jobs list --from yesterday": "--from 'yesterday' is no time: write 2030-01-31T06:00:00Z",
    "jobs list --to 2030-01-01T00:00:00": "has no time zone",
    "jobs list --time birth": "--time must be one of created, run, started, finished, not 'birth'",
    "jobs list --limit 0": "limit must be from 1 to 1000, not 0",
    "jobs list --cursor here": "--cursor 'here' is no id",
    "jobs show tea": "'tea' is no id of a job: ids look like",
    "jobs cancel": "nothing to cancel is named: give ids, or --state, --queue and so on",
    "jobs release": "nothing to release is named: give ids of jobs",
    "jobs delete --queue sales --yes": "to delete by filter, say with --state which jobs are meant",
    "jobs cancel 0198 --queue sales": "cancel by id or by filter, not both at once",
    "jobs list --store oracle://x": "'oracle://x' is no store: use sqlite:///path/to/headway.db",
    "jobs list --store sqlite:///nosuch.db": "there is no store",
    "jobs list --store sqlite://": "is the memory of one process, and empty",
    "jobs list --store postgresql://nobody@127.0.0.1:1/x": "can't reach the store postgresql://nobody@127.0.0.1:1/x",
}


def test_wrong_input_is_refused(sqlite_terminal: tuple[Headway, Terminal]) -> None:
    _, terminal = sqlite_terminal
    for command, said in zip(WRONG, terminal.all_refused(list(WRONG)), strict=True):
        assert WRONG[command] in said, command


def test_looking_at_a_store_that_is_not_there_does_not_make_one(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, None)
    for said in terminal.all_refused(["jobs list", "queues list", "workers", "doctor", "queues pause mail"]):
        assert f"there is no store {tmp_path / 'headway.db'}: name one with --store or HEADWAY_STORE" in said
    assert list(tmp_path.iterdir()) == []
    assert terminal.fine("migrate").status == 0
    assert terminal.fine("jobs", "list").out == "there are no jobs\n"
