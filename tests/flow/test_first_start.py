"""The first start of the service and of a worker, as people see it."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import httpx
import pytest

from headway import Headway
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
