"""A separate package, installed, adds a kind of job: the example of docs/plugins.md."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.conftest import TOKEN
from tests.api.test_processes import client, result
from tests.flow.processes import Processes, Project
from tests.flow.waiting import block_until

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "headway-shout"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built and installed into a directory of its own, without network."""
    source, target = tmp_path_factory.mktemp("source") / "headway-shout", tmp_path_factory.mktemp("installed")
    shutil.copytree(EXAMPLE, source)
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_its_executor_runs_the_contract_suite(installed: Path, tmp_path: Path, processes: Processes) -> None:
    shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    shutil.copy(EXAMPLE / "pyproject.toml", tmp_path)
    run = processes.python("-m", "pytest", "-p", "no:cacheprovider", "-q", "tests", PYTHONPATH=str(installed))
    assert run.ended() == 0, run.text()
    assert "7 passed" in run.text()


def test_the_library_and_a_worker_take_its_jobs(installed: Path, tmp_path: Path, processes: Processes) -> None:
    with Project(tmp_path, f"sqlite:///{tmp_path / 'headway.db'}", processes) as project:
        app = project.app("")
        simple = app.submit("shout", {"text": "hello"}, name="say hello")
        worker = project.worker("--lease", "5", PYTHONPATH=str(installed))
        assert simple.wait(60).result == "HELLO"
        assert (simple.kind, simple.name) == ("shout", "say hello")
        assert app.submit("shout", {"text": "x", "seconds": 0.1}, name="outside").wait(60).result == "X"
        assert app.submit("shout", {"text": "later", "rest": 0.05}, name="later").wait(60).result == "LATER"
        failed = app.submit("shout", {"text": ""}, name="failing").wait(60)
        assert (failed.state, failed.attempt) == ("failed", 3), "the kind's own defaults hold"
        endless = app.submit("shout", {"text": "x", "seconds": 600}, name="endless")
        block_until(lambda: endless.refresh().state == "running", "the endless job to run")
        app.cancel(endless)
        assert endless.wait(60).state == "cancelled"
        assert f"silenced {endless.id}" in worker.text()
        assert worker.stop() == 0

        plain = project.worker()
        parked = app.submit("shout", {"text": "y"}, name="no executor here")
        block_until(lambda: parked.refresh().label == "parked", "the job to be parked")
        assert plain.stop() == 0


def test_rest_and_its_document_take_its_jobs(installed: Path, tmp_path: Path, processes: Processes) -> None:
    store = f"sqlite:///{tmp_path / 'headway.db'}"
    up = processes.headway("up", "--store", store, HEADWAY_ADMIN_TOKEN=TOKEN, PYTHONPATH=str(installed))
    with client(up) as asking:
        made = asking.post("/api/v1/jobs", json={"kind": "shout", "text": "hey", "priority": 5})
        assert (made.status_code, made.json()["name"]) == (201, "shout hey")
        assert result(asking, made.json()) == "HEY"
        refused = asking.post("/api/v1/jobs", json={"kind": "shout", "text": "hey", "seconds": "long"})
        assert (refused.status_code, "seconds" in refused.text) == (422, True)
        bodies = str(asking.get("/api/openapi.json").json())
        assert 'a text to shout, such as "hey"' in bodies
    assert up.stop() == 0
