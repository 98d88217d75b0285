"""The first start of the service and of a worker, as people see it."""

from __future__ import annotations

import re
import socket
import stat
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from headway import Headway
from headway.demo.warehouse import HOST, PORT
from headway.model.states import State
from tests.flow.conftest import sqlite_url
from tests.flow.processes import Process, Processes
from tests.flow.waiting import block_until

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/#code=(\S+)")


def test_the_first_example_of_the_readme_is_run_by_its_command(processes: Processes, tmp_path: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    example = re.search(r"```python\n(.*?)```\n\n```console\n\$ headway (.*?)\n", readme, re.DOTALL)
    assert example is not None
    code, command = example.groups()
    (tmp_path / "mymodule.py").write_text(code)
    worker = processes.headway(*command.split())
    app = Headway(sqlite_url(tmp_path))
    done = block_until(lambda: app.jobs(state="completed"), f"the job of the example\n{worker.text()}")
    app.close()
    assert [(job.name, job.queue, job.state) for job in done] == [("mymodule.welcome", "mail", State.COMPLETED)]
    assert worker.stop() == 0


def test_the_demo_shows_jobs_that_call_send_and_fetch_also_after_a_new_start(
    processes: Processes, tmp_path: Path
) -> None:
    def completed(kind: str) -> set[UUID]:
        return {job.id for job in app.jobs(state="completed", kind=kind)}

    def everywhere(before: dict[str, set[UUID]]) -> bool:
        return all(completed(kind) - ids for kind, ids in before.items())

    app = Headway(sqlite_url(tmp_path))
    first = processes.headway("up", "--demo", "--grace", "2", "--store", app.url)
    none: dict[str, set[UUID]] = {"call": set(), "http": set(), "fetch": set()}
    block_until(lambda: everywhere(none), f"a job of each kind\n{first.text()}", patience=120)
    assert first.stop() == 0
    before = {kind: completed(kind) for kind in none}
    with socket.socket() as taken:
        # Its place is somebody else's now: the schedules are told where the warehouse has gone to.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # taken by the demo of another test
            taken.bind((HOST, PORT))
            taken.listen()
        second = processes.headway("up", "--grace", "2", "--store", app.url)
        block_until(lambda: everywhere(before), f"another job of each kind\n{second.text()}", patience=120)
        assert second.stop() == 0
    app.close()


@pytest.fixture
def service(processes: Processes) -> Process:
    return processes.headway("api", "--store", "sqlite:///headway.db")


def entrance(process: Process) -> tuple[str, str]:
    """The address and the code of the link that is printed."""
    found = block_until(lambda: LINK.search(process.text()), "a login link", patience=60)
    block_until(lambda: "api.started" in process.text(), "the API to start", patience=60)
    return found[1], found[2]


def test_the_first_start_prints_a_link_that_logs_in_once(service: Process, tmp_path: Path) -> None:
    url, code = entrance(service)
    file = tmp_path / "headway.data" / "admin-token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"the administrator's token is in {file.relative_to(tmp_path)}" in service.text()
    token = file.read_text().strip()
    assert token not in service.text()
    same = {"Sec-Fetch-Site": "same-origin"}
    with httpx.Client(base_url=f"{url}/api/v1", trust_env=False, timeout=60) as browser:
        assert browser.get("/jobs").status_code == 401
        assert browser.post("/session", json={"code": code}, headers=same).status_code == 201
        assert browser.get("/users", headers=same).status_code == 200
        assert browser.post("/session", json={"code": code}, headers=same).status_code == 401
    with httpx.Client(base_url=f"{url}/api/v1", trust_env=False, timeout=60) as program:
        headers = {"Authorization": f"Bearer {token}"}
        assert program.get("/session", headers=headers).json()["name"] == "token:admin"
    assert service.stop() == 0
    assert token.encode() not in (tmp_path / "headway.db").read_bytes()
