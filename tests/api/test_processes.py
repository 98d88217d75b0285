"""The service as processes: `headway api`, `headway up`, signals, ports, `--reload`."""

from __future__ import annotations

import re
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from headway.access.doorkeeper import PER_ACCOUNT, WRONG_TOKENS
from tests.api.conftest import TOKEN
from tests.flow.processes import Process, Processes, Project
from tests.flow.waiting import block_until

PATIENCE = 60.0
RELOAD_LIMIT = 3.0
JOBS = """
@app.job(name="answer")
async def answer() -> int:
    return 1


@app.job(name="endless")
async def endless() -> None:
    note("begun")
    await asyncio.Event().wait()
"""


@contextmanager
def client(process: Process) -> Iterator[httpx.Client]:
    """A client of the API that this process has told the address of."""

    def address() -> str | None:
        assert process.running, process.text()
        found = re.search(r"the API of \S+ at (http://\S+)", process.text())
        return found[1] if found else None

    url = block_until(address, "the API's address", PATIENCE)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60) as made:
        block_until(lambda: _answers(made), "the first answer", PATIENCE)
        yield made


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def submit(client: httpx.Client, function: str) -> dict[str, Any]:
    job: dict[str, Any] = client.post("/api/v1/jobs", json={"kind": "call", "function": function}).json()
    return job


def result(client: httpx.Client, job: dict[str, Any]) -> Any:
    ended = client.get(f"/api/v1/jobs/{job['id']}?wait=60").json()
    assert ended["state"] == "completed", ended
    return client.get(f"/api/v1/jobs/{job['id']}/result").json()


def answers(client: httpx.Client, number: int) -> bool:
    """Whether the code says so. What is asked while the old one ends may come to nothing, but for a moment."""
    try:
        job = submit(client, "answer")
        ended = client.get(f"/api/v1/jobs/{job['id']}?wait=30").json()
        return bool(ended["state"] == "completed" and result(client, job) == number)
    except httpx.TransportError:
        return False


def test_api_and_worker_may_be_processes_of_their_own(tmp_path: Path, store_url: str, processes: Processes) -> None:
    with Project(tmp_path, store_url, processes) as project:
        project.write(JOBS)
        api = processes.headway("api", "--store", store_url, HEADWAY_ADMIN_TOKEN=TOKEN)
        with client(api) as asking:
            waiting = submit(asking, "answer")
            project.worker()
            assert result(asking, waiting) == 1
        assert api.stop() == 0


def test_failed_attempts_are_counted_by_all_processes_together(store_url: str, processes: Processes) -> None:
    apis = [processes.headway("api", "--store", store_url, "--port", "0", HEADWAY_ADMIN_TOKEN=TOKEN) for _ in range(2)]
    with client(apis[0]) as one, client(apis[1]) as other:
        login = {"name": "ann", "password": "a guess"}
        for asking in (one, other) * (PER_ACCOUNT // 2):
            assert asking.post("/api/v1/session", json=login, headers={"Authorization": ""}).status_code == 401
        refused = one.post("/api/v1/session", json=login, headers={"Authorization": ""})
        assert (refused.status_code, int(refused.headers["retry-after"]) > 0) == (429, True), refused.text

        wrong = {"Authorization": "Bearer guess"}
        for asking in (one, other) * (WRONG_TOKENS // 2):
            assert asking.get("/api/v1/jobs", headers=wrong).status_code == 401
        refused = other.get("/api/v1/jobs", headers=wrong)
        assert (refused.status_code, int(refused.headers["retry-after"]) > 0) == (429, True), refused.text
        for asking in (one, other):
            block_until(lambda asking=asking: asking.get("/api/v1/jobs").status_code == 200, "the good token", PATIENCE)  # type: ignore[misc]
    for api in apis:
        assert api.stop() == 0


def test_up_takes_its_port_before_it_runs_anything(tmp_path: Path, processes: Processes) -> None:
    url = f"sqlite:///{tmp_path / 'headway.db'}"
    first = processes.headway("up", "--store", url, HEADWAY_ADMIN_TOKEN=TOKEN)
    with client(first) as asking:
        port = str(asking.base_url.port)
    second = processes.headway("up", "--store", f"sqlite:///{tmp_path / 'other.db'}", "--port", port)
    assert second.ended() == 2
    assert "another process has it" in second.text()
    assert not (tmp_path / "other.db").exists()
    assert first.stop() == 0


def test_a_signal_ends_streams_and_gives_jobs_back(tmp_path: Path, processes: Processes) -> None:
    with Project(tmp_path, f"sqlite:///{tmp_path / 'headway.db'}", processes) as project:
        project.write(JOBS)
        everything = processes.headway("up", "--app", "jobs:app", "--grace", "0.1", HEADWAY_ADMIN_TOKEN=TOKEN)
        with client(everything) as asking:
            job = submit(asking, "endless")
            block_until(lambda: "begun" in project.notes(), "the job to begin", PATIENCE)
            with asking.stream("GET", "/api/v1/events") as stream:
                everything.send(signal.SIGTERM)
                for _ in stream.iter_lines():
                    pass
        assert everything.ended() == 0
        assert "Traceback" not in everything.text()
        given_back = project.app(JOBS).get(UUID(job["id"]))
        assert (given_back.state.value, given_back.failures) == ("scheduled", 0)


def test_a_changed_file_changes_what_jobs_do(tmp_path: Path, processes: Processes) -> None:
    with Project(tmp_path, f"sqlite:///{tmp_path / 'headway.db'}", processes) as project:
        project.write(JOBS)
        watching = processes.headway("up", "--app", "jobs:app", "--reload", HEADWAY_ADMIN_TOKEN=TOKEN)
        with client(watching) as asking:
            assert result(asking, submit(asking, "answer")) == 1
            begun = submit(asking, "endless")
            block_until(lambda: "begun" in project.notes(), "the job to begin", PATIENCE)
            project.write(JOBS.replace("return 1", "return 2"))

            block_until(lambda: answers(asking, 2), "the new behaviour", PATIENCE)
            shown = asking.get(f"/api/v1/jobs/{begun['id']}").json()
            assert (shown["failures"], shown["losses"]) == (0, 0)
            project.write("this is no Python")
            block_until(lambda: not _answers(asking), "the old code to end", PATIENCE)
            project.write(JOBS.replace("return 1", "return 3"))
            block_until(lambda: _answers(asking), "the service to come back", PATIENCE)
            assert result(asking, submit(asking, "answer")) == 3
        assert watching.stop() == 0


def test_api_scheduler_and_worker_start_afresh_each_on_its_own(tmp_path: Path, processes: Processes) -> None:
    """As `make local` runs them, with the app that a variable names."""
    with Project(tmp_path, f"sqlite:///{tmp_path / 'headway.db'}", processes) as project:
        project.write(JOBS)
        assert processes.headway("migrate", "--store", project.url).ended() == 0
        variables = {"HEADWAY_APP": "jobs:app", "HEADWAY_ADMIN_TOKEN": TOKEN, "HEADWAY_METRICS": "false"}
        api, *others = [
            processes.headway(name, "--reload", "--log-json", **variables) for name in ("api", "scheduler", "worker")
        ]
        with client(api) as asking:
            assert result(asking, submit(asking, "answer")) == 1
            project.write(JOBS.replace("return 1", "return 2"))
            for process in (api, *others):
                process.wait_for("reload.changed")
            block_until(lambda: answers(asking, 2), "the new behaviour", PATIENCE)
        assert [process.stop() for process in (api, *others)] == [0, 0, 0]


@pytest.mark.prove
def test_a_change_is_at_work_within_three_seconds(tmp_path: Path, processes: Processes) -> None:
    """On a machine that is busy with other things, within the time that a start takes there, and half as much again."""
    with Project(tmp_path, f"sqlite:///{tmp_path / 'headway.db'}", processes) as project:
        project.write(JOBS)
        began, took = time.monotonic(), []
        watching = processes.headway("up", "--app", "jobs:app", "--reload", HEADWAY_ADMIN_TOKEN=TOKEN)
        with client(watching) as asking:
            assert result(asking, submit(asking, "answer")) == 1
            started = time.monotonic() - began
            for number in (2, 3, 4):
                project.write(JOBS.replace("return 1", f"return {number}"))
                began = time.monotonic()
                block_until(partial(answers, asking, number), "the new behaviour", PATIENCE)
                took.append(time.monotonic() - began)
        assert watching.stop() == 0
    told = ", ".join(f"{seconds:.1f}" for seconds in took)
    print(f"--reload: new behaviour {told} s after the edit; the first start took {started:.1f} s")
    assert statistics.median(took) <= max(RELOAD_LIMIT, 1.5 * started)
