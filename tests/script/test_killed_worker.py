"""A worker process is killed in mid-script: the far side shows one run, and the next worker tells its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from headway import Headway
from tests.flow.processes import Processes
from tests.flow.waiting import until
from tests.script.far import PATIENCE
from tests.sshd import SshServer


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as started:
        yield started


async def test_a_worker_killed_in_mid_script_leaves_one_run(
    processes: Processes, tmp_path: Path, sshd: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    url = f"sqlite:///{tmp_path / 'headway.db'}"
    app = Headway(url)
    await app.vault.create_target(sshd.target(), sshd.by_key, by="test")
    place = sshd.place()
    script = f"echo begun; echo x >> {place}/runs; while [ ! -e {place}/go ]; do sleep 0.05; done; echo end; exit 3"
    settings = {"HEADWAY_LEASE": "2", "HEADWAY_DATA": str(tmp_path / "data")}
    worker = processes.headway("worker", "--store", url, "--log-json", **settings)
    job = await app.asubmit("script", {"target": "box", "script": script}, name="once")
    async with asyncio.timeout(PATIENCE):
        while not (place / "runs").exists():
            await asyncio.sleep(0.05)
    worker.kill()
    processes.headway("worker", "--store", url, "--log-json", **settings)
    async with asyncio.timeout(PATIENCE):
        while (await app.aget(job.id)).attempt < 2:
            await asyncio.sleep(0.05)
    (place / "go").touch()
    ended = await app.await_ended(job.id, PATIENCE)
    assert ended.state == "failed"
    assert ended.error is not None
    assert "exit code 3" in ended.error.message
    assert await app.aoutput(job.id) == b"begun\nend\n"
    assert (place / "runs").read_text() == "x\n"
    await app.aclose()


async def test_a_worker_killed_in_mid_cancel_leaves_it_to_the_next(
    processes: Processes, tmp_path: Path, sshd: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that ignores SIGTERM is given five seconds. Its job is not cancelled before it is seen dead."""
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    url = f"sqlite:///{tmp_path / 'headway.db'}"
    app = Headway(url)
    await app.vault.create_target(sshd.target(), sshd.by_key, by="test")
    place = sshd.place()
    script = f"trap 'touch {place}/asked' TERM; touch {place}/begun; while :; do sleep 0.1 || :; done"
    settings = {"HEADWAY_LEASE": "2", "HEADWAY_DATA": str(tmp_path / "data")}
    worker = processes.headway("worker", "--store", url, "--log-json", **settings)
    job = await app.asubmit("script", {"target": "box", "script": script}, name="stubborn")
    await until((place / "begun").exists, "the script to begin")
    await app.acancel(job.id)
    await until((place / "asked").exists, "the script to be asked to end")
    worker.kill()
    assert (await app.aget(job.id)).state == "cancelling"
    assert _running(sshd, job.id), "the script has outlived its worker"
    processes.headway("worker", "--store", url, "--log-json", **settings)
    ended = await app.await_ended(job.id, PATIENCE)
    assert _running(sshd, job.id) == []
    assert (ended.state, ended.attempt) == ("cancelled", 2)
    await app.aclose()


def _running(sshd: SshServer, job_id: UUID) -> list[list[str]]:
    return [command for command in sshd.commands() if any(str(job_id) in word for word in command)]
