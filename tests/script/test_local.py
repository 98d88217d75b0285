"""The worker's own machine as a target."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from headway import Headway
from headway.executors.script.local import LocalFiles, LocalLink
from headway.model.errors import TargetInUse
from headway.model.target import Target, TargetKind
from tests.flow.waiting import until
from tests.script.far import PATIENCE


async def test_a_script_there_is_not_given_the_workers_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """They hold the vault's key, the administrator's token and the passwords of store and broker."""
    for name in ("HEADWAY_SECRET_KEY", "HEADWAY_ADMIN_TOKEN", "HEADWAY_STORE", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "a canary")
    said, over = bytearray(), asyncio.Event()

    def hear(data: bytes) -> None:
        said.extend(data)
        if b"that is all" in said:
            over.set()

    link = LocalLink()
    channel = await link.shell(hear, lambda: None)
    channel.write(b"env; echo that is all\n")
    await asyncio.wait_for(over.wait(), 60)
    await link.close()
    assert b"PATH=" in said
    assert b"canary" not in said


async def test_a_worker_runs_nothing_on_its_own_machine_unless_that_is_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    app = Headway(f"sqlite:///{tmp_path / 'headway.db'}")
    here = Target(id=uuid4(), name="here", kind=TargetKind.LOCAL, directory=str(tmp_path / "far"))
    await app.vault.create_target(here, None, by="test")
    async with app.worker():
        job = await app.asubmit("script", {"target": "here", "script": f"touch {tmp_path}/ran"}, name="local")
        ended = await app.await_ended(job.id, PATIENCE)
    assert ended.state == "failed"
    assert ended.error is not None
    assert "HEADWAY_LOCAL_TARGET=true" in ended.error.message
    assert not (tmp_path / "ran").exists()
    await app.aclose()


async def test_a_link_to_nowhere_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "kept.log").write_text("x")
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere")
    found = [path async for path, _ in LocalFiles().glob([f"{tmp_path}/*.log"])]
    assert found == [f"{tmp_path}/kept.log"]


@pytest.mark.parametrize("other", ["machine", "directory"])
async def test_a_script_is_not_begun_again_where_it_cannot_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Its worker leaves, and the next one looks at another place."""
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HEADWAY_LOCAL_TARGET", "true")
    app = Headway(f"sqlite:///{tmp_path / 'headway.db'}")
    here = Target(id=uuid4(), name="here", kind=TargetKind.LOCAL, directory=str(tmp_path / "far"))
    await app.vault.create_target(here, None, by="test")
    script = f"echo x >>{tmp_path}/runs; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    first = app.worker()
    await first.start()
    job = await app.asubmit("script", {"target": "here", "script": script}, name="local")
    await until((tmp_path / "runs").exists, "the script to begin")
    await first.stop(grace=0)
    if other == "machine":
        monkeypatch.setattr("headway.executors.script.hosts.socket.gethostname", lambda: "another")
    else:
        changed = msgspec.structs.replace(here, directory=str(tmp_path / "other"))
        await app.vault.change_target(changed, by="test")
    async with app.worker():
        ended = await app.await_ended(job.id, PATIENCE)
    assert (ended.state, ended.outcome) == ("failed", "unknown")
    assert ended.error is not None
    assert "may still be running" in ended.error.message
    assert (tmp_path / "runs").read_text() == "x\n"
    (tmp_path / "go").touch()
    await app.aclose()


async def test_a_target_stays_until_what_was_begun_there_has_ended_or_its_server_is_said_to_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could see a script stopped whose target is gone: its job would be `cancelling` for ever."""
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HEADWAY_LOCAL_TARGET", "true")
    app = Headway(f"sqlite:///{tmp_path / 'headway.db'}")
    here = Target(id=uuid4(), name="here", kind=TargetKind.LOCAL, directory=str(tmp_path / "far"))
    await app.vault.create_target(here, None, by="test")
    script = f"touch {tmp_path}/begun; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    first = app.worker()
    await first.start()
    job = await app.asubmit("script", {"target": "here", "script": script}, name="local")
    await until((tmp_path / "begun").exists, "the script to begin")
    await first.stop(grace=0)
    await app.acancel(job.id)
    with pytest.raises(TargetInUse, match=str(job.id)):
        await app.client.call(lambda store: store.delete_target(here.id))
    await app.client.call(lambda store: store.delete_target(here.id, force=True))
    async with app.worker():
        ended = await app.await_ended(job.id, PATIENCE)
    assert ended.state == "cancelled"
    assert ended.error is not None
    assert "may still be running" in ended.error.message
    (tmp_path / "go").touch()
    await app.aclose()
