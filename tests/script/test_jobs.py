"""Script jobs as users have them: submitted, run by a worker, with the vault, targets, output and artifacts."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headway import Headway
from headway.jobs import Job
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies, Origin
from headway.model.access import AuditFilter
from headway.model.errors import AttachmentNotFound, Conflict, InvalidJob, TargetNotFound, TooLarge
from headway.model.job import Artifact, Chunk
from headway.model.sealed import Enclosed
from headway.output.stored import StoredOutputs
from tests.flow.waiting import until
from tests.script.far import PATIENCE
from tests.script.memory import MOST, grown
from tests.servers import Postgres
from tests.sshd import SshServer

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFrBoDKCnmXmGiVxVGYLbBPpxDVJqTVCFXMbvwFbSKwc"


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Headway]:
    """An app on each kind of store."""
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    url = f"sqlite:///{tmp_path / 'headway.db'}"
    postgres: Postgres | None = None
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres")
        url = postgres.create_database(request.getfixturevalue("migrated"))
    app = Headway(url)
    yield app
    app.close()
    if postgres is not None:
        postgres.drop_database(url)


@pytest.fixture
async def office(app: Headway, sshd: SshServer) -> AsyncIterator[Headway]:
    """With a target `box`, a secret `key`, and a worker."""
    await app.vault.create_target(sshd.target(), sshd.by_password, by="test")
    await app.vault.set_secret("key", b"s3cret-value", by="test")
    async with app.worker():
        yield app


async def run(app: Headway, script: str, name: str = "job", **more: Any) -> Job[Any]:
    options = {key: more.pop(key) for key in ("on_conflict", "timeout", "delay", "run_at") if key in more}
    job = await app.asubmit("script", {"target": "box", "script": script, **more}, name=name, **options)
    return await app.await_ended(job.id, PATIENCE)


def result(job: Job[Any]) -> dict[str, Any]:
    assert isinstance(job.result, dict), job.error
    return job.result


async def chunks(app: Headway, job: Job[Any]) -> list[Chunk]:
    return await app.client.call(lambda store: store.chunks(job.id, 1))


async def artifacts(app: Headway, job: Job[Any]) -> list[Artifact]:
    return await app.client.call(lambda store: store.artifacts(job.id))


async def test_a_script_job_runs_and_keeps_what_it_says(office: Headway, sshd: SshServer) -> None:
    place = sshd.place()
    wait = f"while [ ! -e {place}/$1 ]; do sleep 0.05; done"
    script = f"wait() {{ {wait}; }}; echo out; wait 1; echo err >&2; wait 2; echo more"
    submitted = await office.asubmit("script", {"target": "box", "script": script, "args": ["a"]}, name="job")
    for count in (1, 2):
        async with asyncio.timeout(PATIENCE):
            while len(await chunks(office, submitted)) < count:
                await asyncio.sleep(0.02)
        (place / str(count)).touch()
    job = await office.await_ended(submitted.id, PATIENCE)
    assert job.state == "completed"
    assert result(job)["exit_code"] == 0
    kept = await chunks(office, job)
    assert [(chunk.stream, chunk.data) for chunk in kept] == [
        ("stdout", b"out\n"),
        ("stderr", b"err\n"),
        ("stdout", b"more\n"),
    ]
    times = [chunk.at for chunk in kept if chunk.at]
    assert times == sorted(times)
    assert len(set(times)) == 3


async def test_a_failed_script_job_tells_its_exit_code(office: Headway) -> None:
    job = await run(office, "exit 5")
    assert job.state == "failed"
    assert job.error is not None
    assert "exit code 5" in job.error.message
    stored = await office.client.call(lambda store: store.result(job.id))
    assert stored is not None
    assert b'"exit_code":5' in (stored.data or b"")


async def test_secrets_reach_the_script_and_not_its_output(office: Headway) -> None:
    script = """
    cat "$HEADWAY_SECRETS/key"; echo; printf %s "$TOKEN"; echo; printf s3cr; sleep 0.4; echo et-value
    printf %s "$TOKEN" | base64; echo done
    """
    job = await run(office, script, secrets=["key"], env={"TOKEN": {"secret": "key", "prefix": "Bearer "}, "A": "b"})
    said = await office.aoutput(job.id)
    assert job.state == "completed", said
    assert b"done" in said
    assert b"s3cret" not in said
    assert b"value" not in said
    assert b"***" in said


async def test_a_secret_is_not_shown_without_its_prefix_either(office: Headway) -> None:
    script = 'echo "${TOKEN#Bearer }"; printf %s "$TOKEN" | base64; echo "$TOKEN"'
    job = await run(office, script, env={"TOKEN": {"secret": "key", "prefix": "Bearer "}})
    first, second, third = (await office.aoutput(job.id)).splitlines()
    assert (first, third) == (b"***", b"Bearer ***")
    assert b"***" in second
    assert b"s3cret" not in base64.b64decode(second.replace(b"***", b""))


async def test_files_are_brought_and_collected(office: Headway) -> None:
    content = bytes(range(256)) * 300
    upload = await office.vault.upload(Enclosed(role="file", name="big", content=content))
    job = await run(
        office,
        "cat note.txt; mkdir sub; cp data.bin sub/copy.bin; ln -s nowhere sub/a; echo x > 'odd: name'",
        files={"note.txt": "hello\n", "data.bin": {"upload": str(upload.id)}},
        collect=["sub/*", "odd*", "nothing*", "/etc/hostname"],
    )
    assert await office.aoutput(job.id) == b"hello\n"
    found = {artifact.name: artifact for artifact in await artifacts(office, job)}
    assert set(found) == {"sub/copy.bin", "odd_ name", "etc/hostname"}
    assert found["sub/copy.bin"].sha256 == hashlib.sha256(content).hexdigest()

    async def read(store: Any) -> bytes:
        return b"".join([piece async for piece in StoredOutputs(store).load(job.id, 1, "sub/copy.bin", 100)])

    assert await office.client.call(read) == content[100:]


async def test_files_beyond_the_most_that_are_kept_are_told(office: Headway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.executors.script.collecting.MOST_FILES", 2)
    job = await run(office, "touch a b c d", collect=["?"])
    found = await artifacts(office, job)
    [told] = [artifact.note for artifact in found if artifact.note is not None]
    assert "2 files were kept" in told
    assert len(found) == 3
    assert result(job)["artifacts"] == 2


async def test_a_file_whose_name_is_no_text_is_collected_with_the_others(office: Headway) -> None:
    job = await run(office, "echo 1 >one.txt; echo 2 >\"$(printf 'bad\\377.txt')\"", collect=["*.txt"])
    assert sorted(artifact.name for artifact in await artifacts(office, job)) == ["bad\ufffd.txt", "one.txt"]


async def test_what_is_collected_is_cleaned_of_secrets(office: Headway) -> None:
    script = """
    head -c 32760 /dev/zero; cat "$HEADWAY_SECRETS/key"; base64 <"$HEADWAY_SECRETS/key"; echo end
    """
    script = f"{{ {script.strip()}; }} >kept"
    job = await run(office, script, secrets=["key"], collect=["kept"])
    [artifact] = await artifacts(office, job)

    async def read(store: Any) -> bytes:
        return b"".join([piece async for piece in StoredOutputs(store).load(job.id, 1, "kept")])

    kept = await office.client.call(read)
    assert b"s3cret" not in kept
    assert b"czNjcmV0" not in kept
    assert kept.startswith(bytes(32760) + b"***")
    assert kept.endswith(b"end\n")
    assert (artifact.size, artifact.sha256) == (len(kept), hashlib.sha256(kept).hexdigest())


async def test_much_output_costs_a_worker_little(
    sshd: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gibibyte in `make prove`."""
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    more, kept = await grown(sshd, tmp_path, 80_000_000)
    assert more <= MOST
    assert 10 * 1024**2 - 65536 <= kept <= 11 * 1024**2


async def test_a_script_of_an_earlier_job_and_an_uploaded_one_run(office: Headway) -> None:
    first = await run(office, "#!/bin/sh\necho $1", args=["one"])
    again = await office.asubmit("script", {"target": "box", "script_from": str(first.id), "args": ["two"]}, name="b")
    await office.await_ended(again.id, PATIENCE)
    assert await office.aoutput(again.id) == b"two\n"
    upload = await office.vault.upload(Enclosed(role="script", name="script", content=b"echo uploaded"))
    third = await office.asubmit("script", {"target": "box", "script": {"upload": str(upload.id)}}, name="c")
    await office.await_ended(third.id, PATIENCE)
    assert await office.aoutput(third.id) == b"uploaded\n"


async def test_uploads_are_looked_at_and_count_like_what_comes_with_the_body(office: Headway) -> None:
    file = await office.vault.upload(Enclosed(role="file", name="f", content=bytes(700_000)))
    with pytest.raises(InvalidJob, match="NUL"):
        await office.asubmit("script", {"target": "box", "script": {"upload": str(file.id)}}, name="a")
    odd = await office.vault.upload(Enclosed(role="script", name="script", content=b"if"))
    body = {"target": "box", "script": {"upload": str(odd.id)}, "check_syntax": True}
    with pytest.raises(InvalidJob, match="can't be parsed"):
        await office.asubmit("script", body, name="a")
    files = {name: {"upload": str(file.id)} for name in ("one", "two")}
    with pytest.raises(TooLarge, match="files take 1,400,000 bytes"):
        await office.asubmit("script", {"target": "box", "script": "true", "files": files}, name="b")


async def test_an_inline_target_is_for_its_job_alone(office: Headway, sshd: SshServer) -> None:
    target = {
        "host": "127.0.0.1",
        "port": sshd.port,
        "user": sshd.user,
        "host_key": sshd.host_key,
        "credential": {"private_key": sshd.key},
    }
    job = await office.asubmit("script", {"target": target, "script": "id -un"}, name="inline")
    await office.await_ended(job.id, PATIENCE)
    assert (await office.aoutput(job.id)).decode().strip() == sshd.user
    record = await office.client.call(lambda store: store.get([job.id]))
    assert record[0] is not None
    assert "PRIVATE" not in record[0].payload


async def test_the_same_name_is_rejected_waits_or_is_allowed(office: Headway, sshd: SshServer) -> None:
    go = sshd.place() / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.05; done"
    fields = {"target": "box", "script": script}
    first = await office.asubmit("script", fields, name="nightly")
    with pytest.raises(Conflict) as refused:
        await office.asubmit("script", fields, name="nightly")
    assert str(first.id) in str(refused.value)
    waiting = await office.asubmit("script", fields, name="nightly", on_conflict="wait")
    allowed = await office.asubmit("script", fields, name="nightly", on_conflict="allow")
    assert waiting.state == "blocked"
    assert any(str(first.id) in warning or "nightly" in warning for warning in allowed.warnings)
    go.touch()
    ended = [await office.await_ended(job.id, PATIENCE) for job in (first, waiting, allowed)]
    assert [job.state for job in ended] == ["completed"] * 3
    started, finished = ended[1].started_at, ended[0].finished_at
    assert started is not None
    assert finished is not None
    assert started >= finished
    history = await office.client.call(lambda store: store.history(waiting.id))
    told = [change.what for change in history]
    assert told.index("blocked") < told.index("scheduled") < told.index("running") < told.index("completed")
    assert all(change.at is not None for change in history)
    assert history[-1].what == "completed"


async def test_a_cancelled_script_job_is_cancelled_when_it_is_dead(office: Headway, sshd: SshServer) -> None:
    job = await office.asubmit("script", {"target": "box", "script": "trap '' TERM; sleep 6001"}, name="long")
    async with asyncio.timeout(PATIENCE):
        while (await office.aget(job.id)).state != "running":
            await asyncio.sleep(0.02)
    await office.acancel(job.id)
    ended = await office.await_ended(job.id, PATIENCE)
    assert ended.state == "cancelled"
    assert [command for command in sshd.commands() if "6001" in command] == []


async def test_a_stopping_worker_leaves_the_script_to_the_next(app: Headway, sshd: SshServer) -> None:
    """The same attempt goes on: the script runs once, and its output is whole."""
    await app.vault.create_target(sshd.target(), sshd.by_key, by="test")
    place = sshd.place()
    script = f"echo begun; echo x >> {place}/runs; while [ ! -e {place}/go ]; do sleep 0.05; done; echo end"
    worker = app.worker()
    await worker.start()
    job = await app.asubmit("script", {"target": "box", "script": script}, name="moving")
    async with asyncio.timeout(PATIENCE):
        while not await chunks(app, job):
            await asyncio.sleep(0.02)
    await worker.stop(grace=0)
    assert (await app.aget(job.id)).state == "scheduled"
    async with app.worker():
        (place / "go").touch()
        ended = await app.await_ended(job.id, PATIENCE)
    assert ended.state == "completed"
    assert ended.attempt == 1
    assert await app.aoutput(job.id) == b"begun\nend\n"
    assert (place / "runs").read_text() == "x\n"


async def test_a_secret_that_was_replaced_meanwhile_is_not_shown_by_the_next_worker(
    app: Headway, sshd: SshServer
) -> None:
    """Which knows the new value only, and reads the output from its beginning."""
    await app.vault.create_target(sshd.target(), sshd.by_key, by="test")
    await app.vault.set_secret("key", b"the-old-value", by="test")
    place = sshd.place()
    script = (
        f'cat "$HEADWAY_SECRETS/key" | tee file; touch {place}/begun; while [ ! -e {place}/go ]; do sleep 0.05; done'
    )
    worker = app.worker()
    await worker.start()
    body = {"target": "box", "script": script, "secrets": ["key"], "collect": ["file"]}
    job = await app.asubmit("script", body, name="moving")
    await until((place / "begun").exists, "the script to begin")
    await worker.stop(grace=0)
    await app.vault.set_secret("key", b"the-new-value", by="test")
    async with app.worker():
        (place / "go").touch()
        ended = await app.await_ended(job.id, PATIENCE)
    assert ended.state == "completed"
    said = await app.aoutput(job.id)
    assert b"old-value" not in said
    assert b"withheld" in said
    assert await artifacts(app, ended) == []


async def test_a_probe_tells_how_far_it_came(office: Headway, sshd: SshServer) -> None:
    async def probe(**changes: Any) -> dict[str, Any]:
        target = {"host": "127.0.0.1", "port": sshd.port, "user": sshd.user, "host_key": sshd.host_key} | changes
        return await tried(target)

    async def tried(target: Any) -> dict[str, Any]:
        """A machine that has much to do may not make it in five seconds."""
        while True:
            job = await office.asubmit("probe", {"target": target})
            ended = await office.await_ended(job.id, PATIENCE)
            assert ended.state == "completed", ended.error
            found = result(ended)
            if "longer than" not in (found["message"] or ""):
                return found

    found = await tried("box")
    assert found["ok"], found
    assert found["trusted"]
    assert found["worker"]
    assert (await probe(credential={"password": "no"}))["failed"] == "login"
    assert (await probe(port=1))["failed"] == "connect"
    other = sshd.host_key[:-8] + "AAAAAAAA"
    changed = await probe(host_key=other)
    assert changed["failed"] == "host_key"
    assert changed["host_key"] == sshd.host_key
    assert changed["fingerprint"].startswith("SHA256:")


async def test_a_probe_of_a_server_that_keeps_silent_says_so_within_its_time(office: Headway) -> None:
    """It never came to show a key, so none is claimed."""
    calls: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: calls.append(writer), "127.0.0.1", 0)
    target = {"host": "127.0.0.1", "port": server.sockets[0].getsockname()[1], "user": "u", "host_key": HOST_KEY}
    job = await office.asubmit("probe", {"target": target})
    found = result(await office.await_ended(job.id, PATIENCE))
    server.close()
    for call in calls:
        call.transport.abort()
        await call.wait_closed()
    assert (found["failed"], found["host_key"], found["trusted"]) == ("host_key", None, False)
    assert "did not answer within 4 s" in found["message"]


async def test_a_pinned_key_that_is_none_is_told(office: Headway, sshd: SshServer) -> None:
    short = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x04abcd").decode()
    target = {"host": "127.0.0.1", "port": sshd.port, "user": "u", "host_key": f"ssh-ed25519 {short}"}
    job = await office.asubmit("script", {"target": target, "script": "true"}, name="n")
    ended = await office.await_ended(job.id, PATIENCE)
    assert ended.error is not None
    assert "pinned for inline can't be used" in ended.error.message
    assert "step host_key" in ended.error.message
    cut = {**target, "host_key": HOST_KEY[:-12]}
    with pytest.raises(InvalidJob, match="host_key"):
        await office.asubmit("script", {"target": cut, "script": "true"}, name="n")


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"script": "  \n"}, "script", "empty"),
        ({"script": "a\0b"}, "script", "NUL"),
        ({"script": "#!bash\n"}, "script", "whole path"),
        ({"script": "#!/bin/sh\r\necho"}, "script", "Windows"),
        ({"script": "x" * (1024 * 1024 + 1)}, "script", "limit"),
        ({}, "script", "either script or script_from"),
        ({"script": "x", "interpreter": "$(id)"}, "interpreter", "must be a program"),
        ({"script": "x", "args": ["a\0"]}, "args[0]", "NUL"),
        ({"script": "x", "env": {"1A": "x"}}, "env.1A", "letters"),
        ({"script": "x", "env": {"HEADWAY_X": "x"}}, "env.HEADWAY_X", "HEADWAY_"),
        ({"script": "x", "files": {"../a": "x"}}, "files.../a", "relative"),
        ({"script": "x", "collect": ["../*"]}, "collect", "without '..'"),
        ({"script": "x", "cwd": "here"}, "cwd", "absolute"),
        ({"script": "if", "check_syntax": True}, "script", "can't be parsed"),
        ({"script": "#!/usr/bin/env python3\ndef", "check_syntax": True}, "script", "can't be parsed"),
        ({"script": "x", "secrets": ["../a"]}, "secrets", "no name"),
        ({"script": "x", "target": {"host": "a b", "user": "u", "host_key": "k"}}, "target.host", "server"),
    ],
)
async def test_what_is_wrong_with_a_body_is_told(fields: dict[str, Any], field: str, words: str) -> None:
    bodies = Bodies(load_kinds(), None, None)  # type: ignore[arg-type] # nothing here comes so far
    with pytest.raises(InvalidJob) as refused:
        await bodies.read({"kind": "script", "name": "n", "target": "box", **fields}, Origin())
    assert refused.value.field == field
    assert words in str(refused.value)


async def test_a_script_at_the_cap_and_a_good_one_pass(office: Headway) -> None:
    script = "# " + "x" * (1024 * 1024 - 10) + "\ntrue\n"
    assert (await run(office, script, check_syntax=True)).state == "completed"


async def test_what_may_be_an_attack_is_written_into_the_audit_log(office: Headway, sshd: SshServer) -> None:
    """A server that shows another key than the one that is pinned."""
    other = msgspec.structs.replace(sshd.target("other"), host_key=sshd.host_key[:-8] + "AAAAAAAA")
    await office.vault.create_target(other, sshd.by_key, by="test")
    job = await office.asubmit("script", {"target": "other", "script": "true"}, name="n")
    assert (await office.await_ended(job.id, PATIENCE)).state == "failed"
    [line] = await office.client.call(lambda store: store.audit(AuditFilter(action="target.host_key_changed")))
    assert (line.actor, line.object) == ("worker", "target other")
    assert str(job.id) in line.detail


async def test_unknown_targets_and_scripts_are_refused(office: Headway) -> None:
    with pytest.raises(TargetNotFound):
        await office.asubmit("script", {"target": "nowhere", "script": "x"}, name="n")
    with pytest.raises(AttachmentNotFound):
        await office.asubmit(
            "script", {"target": "box", "script": {"upload": "0199c5e2-7a1b-7c3d-9e4f-0123456789ab"}}, name="n"
        )
    with pytest.raises(InvalidJob, match="needs a name"):
        await office.asubmit("script", {"target": "box", "script": "x"})


async def test_a_script_is_not_taken_from_a_broker() -> None:
    bodies = Bodies(load_kinds(), None, None)  # type: ignore[arg-type] # nothing here comes so far
    with pytest.raises(InvalidJob, match="broker"):
        await bodies.read({"kind": "script", "name": "n", "target": "box", "script": "x"}, Origin(broker=True))
