"""What is asked before a script is accepted, at a command line too; and what is refused, or left to others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from headway import Headway
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies, Origin
from headway.model.errors import InvalidJob, SecretNotFound
from headway.model.sealed import FILE, Attachment, Enclosed, Shared
from headway.model.target import Probed, Target, TargetKind
from tests.api.conftest import Site, serving
from tests.api.entrance import QUICK, entrance
from tests.flow.conftest import sqlite_url
from tests.flow.terminal import Terminal
from tests.flow.waiting import until

FROM_AFAR = {"X-Forwarded-For": "198.51.100.1"}
"""As from beyond this machine, by plain HTTP."""
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFrBoDKCnmXmGiVxVGYLbBPpxDVJqTVCFXMbvwFbSKwc"
PASSWORD = "correct horse battery"
INLINE = {"host": "db.example", "user": "ops", "host_key": HOST_KEY, "credential": {"password": PASSWORD}}
SCRIPT = {"kind": "script", "name": "n", "target": "box", "script": "echo canary-of-a-script", "probe": False}


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HEADWAY_LOCAL_TARGET", "true")


def here(tmp_path: Path) -> Target:
    return Target(id=uuid4(), name="box", kind=TargetKind.LOCAL, directory=str(tmp_path / "runs"))


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with serving(Headway(sqlite_url(tmp_path))) as site:
        await site.app.vault.create_target(here(tmp_path), None, by="test")
        yield site


def test_a_command_line_asks_a_worker_first_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("true\n")
    terminal = Terminal(tmp_path, sqlite_url(tmp_path))
    terminal.fine("migrate")
    made, refused, taken = terminal.each(
        "targets create box --host 127.0.0.1 --user nobody",
        "submit script job.sh --target box --name one",
        "submit script job.sh --target box --name one --field probe=false",
    )
    assert made.status == 0, made.err
    assert refused.status == 1
    assert "no worker took the probe" in refused.err
    assert taken.status == 0, taken.err


@pytest.mark.parametrize("body", [SCRIPT, {**SCRIPT, "files": {"a": "b"}}, {**SCRIPT, "target": INLINE}])
async def test_what_is_private_is_not_taken_by_plain_http_from_afar(site: Site, body: dict[str, Any]) -> None:
    refused = await site.post("/jobs", body, headers=FROM_AFAR)
    assert refused.status_code == 422, refused.text
    assert "not encrypted" in refused.json()["detail"]
    first = (await site.post("/jobs", SCRIPT)).json()["id"]
    rest = {name: value for name, value in body.items() if name not in {"script", "files"}}
    again = {**rest, "script_from": first, "name": "again"}
    status = (await site.post("/jobs", again, headers=FROM_AFAR)).status_code
    assert status == (422 if isinstance(body["target"], dict) else 201)


@pytest.mark.parametrize("probe", [True, False])
async def test_a_job_that_its_name_keeps_out_is_refused_before_its_target_is_looked_at(
    site: Site, monkeypatch: pytest.MonkeyPatch, probe: bool
) -> None:
    looks: list[Any] = []

    async def look(asking: object, target: Any, **_: Any) -> Probed:
        looks.append(target)
        return Probed(ok=True)

    monkeypatch.setattr("headway.components.targets.probe", look)
    first = await site.post("/jobs", {**SCRIPT, "probe": False})
    body = {**SCRIPT, "probe": probe}
    refused = await site.post("/jobs", body)
    assert (refused.status_code, refused.json()["conflicting_job_id"]) == (409, first.json()["id"])
    batch = await site.post("/jobs/batch", {"jobs": [body, {**body, "name": "other"}], "partial": True})
    assert [item["status"] for item in batch.json()["items"]] == [409, 201]
    assert looks == (["box"] if probe else [])
    # One that may wait, and one that is this very job, are no others.
    assert (await site.post("/jobs", {**body, "on_conflict": "wait"})).status_code == 201
    own = {**body, "name": "own", "id": str(uuid7())}
    assert [(await site.post("/jobs", own)).status_code for _ in range(2)] == [201, 200]


IN_SCRIPTS: list[dict[str, Any]] = [{"secrets": ["nobody"]}, {"env": {"TOKEN": {"secret": "nobody"}}}]
HTTP = {"kind": "http", "callback_url": "https://example.com/x"}
FETCH = {"kind": "fetch", "url": "https://example.com/x"}
IN_HEADERS = {"headers": {"Authorization": {"secret": "nobody", "prefix": "Bearer "}}}
NAMING = [
    *({**SCRIPT, **each} for each in IN_SCRIPTS),
    {**HTTP, **IN_HEADERS},
    {**HTTP, "sign": [{"secret": "known"}, {"secret": "nobody"}]},
    {**FETCH, **IN_HEADERS},
]


@pytest.mark.parametrize("body", NAMING)
async def test_a_secret_that_is_not_there_is_told_at_once(site: Site, body: dict[str, Any]) -> None:
    await site.app.vault.set_secret("known", b"a value", by="test")
    template = {name: value for name, value in body.items() if name != "probe"}
    schedule = {"name": "hourly", "schedule": "0 * * * *", "job": template}
    own = {name: value for name, value in body.items() if name not in {"kind", "name"}}
    for path, sent in (("/jobs", body), ("/schedules", schedule)):
        refused = await site.post(path, sent)
        assert (refused.status_code, refused.json()["code"]) == (422, "secret_not_found"), refused.text
        assert "no secret 'nobody': make it with `headway secrets set nobody`" in refused.json()["detail"]
    with pytest.raises(SecretNotFound, match="nobody"):
        await site.app.asubmit(body["kind"], own, name="by the library")
    assert (await site.get("/jobs")).json()["items"] == []
    await site.app.vault.set_secret("nobody", b"a value", by="test")
    assert (await site.post("/jobs", body)).status_code == 201
    assert (await site.post("/schedules", schedule)).status_code == 201


@pytest.mark.parametrize(("body", "reads"), [(NAMING[0], 1), (NAMING[3], 1), (SCRIPT, 0), (HTTP, 0), (FETCH, 0)])
async def test_who_names_no_secret_asks_for_none(body: dict[str, Any], reads: int) -> None:
    asked: list[Sequence[str]] = []

    class Counting:
        async def require_target(self, named: str) -> None: ...

        async def attach(self, asked: Enclosed | Shared) -> Attachment:
            return Attachment(id=uuid4(), role=asked.role, name=asked.name, size=0, sha256="")

        async def content(self, attachment: Attachment) -> bytes:
            return b""

        async def require_secrets(self, names: Sequence[str]) -> None:
            asked.append(names)

    await Bodies(load_kinds(), None, Counting()).read(body, Origin())  # type: ignore[arg-type] # nobody asks for one
    assert len(asked) == reads


@pytest.mark.parametrize("origin", [Origin(broker=True), Origin(exposed=True)])
async def test_an_inline_credential_is_not_taken_where_others_could_read_it(origin: Origin) -> None:
    bodies = Bodies(load_kinds(), None, None)  # type: ignore[arg-type] # nothing here comes so far
    body = {"kind": "script", "name": "n", "target": INLINE, "script_from": str(uuid4())}
    with pytest.raises(InvalidJob, match="others could read it") as refused:
        await bodies.read(body, origin)
    assert refused.value.field == "target"
    assert PASSWORD not in str(refused.value)


async def test_the_script_of_a_schedule_is_sealed_and_not_taken_from_afar(site: Site) -> None:
    job = {name: value for name, value in SCRIPT.items() if name != "probe"}
    schedule = {"name": "hourly", "schedule": "0 * * * *", "job": job}
    refused = await site.post("/schedules", schedule, headers=FROM_AFAR)
    assert refused.status_code == 422, refused.text
    assert "not encrypted" in refused.json()["detail"]
    made = await site.post("/schedules", schedule)
    assert made.status_code == 201, made.text
    shown = await site.get(f"/schedules/{made.json()['id']}")
    assert "canary" not in made.text + shown.text


async def test_the_files_of_a_job_are_named_by_reference_and_go_along_with_another(site: Site) -> None:
    body = {**SCRIPT, "files": {"conf/app.ini": "a canary of a file"}}
    first = (await site.post("/jobs", body)).json()["id"]
    told = await site.get(f"/jobs/{first}/payload")
    assert "canary" not in told.text
    again = {**SCRIPT, "name": "again", "files": told.json()["files"]}
    second = await site.post("/jobs", again)
    assert second.status_code == 201, second.text
    attached = await site.app.vault.attachments(UUID(second.json()["id"]))
    [file] = [each for each in attached if each.role == FILE]
    assert (file.name, await site.app.vault.content(file)) == ("conf/app.ini", b"a canary of a file")


async def test_a_token_probes_for_its_own_queues_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.access.passwords.default_hasher", lambda: QUICK)
    app = Headway(sqlite_url(tmp_path))
    async with entrance(app) as door:
        await app.vault.create_target(here(tmp_path), None, by="test")
        async with await door.admin() as admin:
            body = {"name": "ci", "role": "operator", "queues": ["mail"]}
            token = (await admin.post("/tokens", json=body)).json()["token"]
        async with door.client(token) as program, app.worker(queues=["mail"]):
            assert (await program.post("/targets/box/probe", json={})).status_code == 403
            own = await program.post("/targets/box/probe", json={"queue": "mail"})
            assert own.status_code == 200, own.text
            assert (await program.post("/jobs", json={**SCRIPT, "probe": True})).status_code == 403


async def test_a_worker_without_the_key_leaves_scripts_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Headway(sqlite_url(tmp_path))
    await app.vault.create_target(here(tmp_path), None, by="test")
    job = await app.asubmit("script", {"target": "box", "script": "true"}, name="sealed")
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("HEADWAY_SECRET_KEY", "bm8gb25lIGhhcyBldmVyIHNlYWxlZCBhbnl0aGluZyE=")
    other = Headway(sqlite_url(tmp_path))

    @other.job(name="plain")
    async def plain() -> int:
        return 1

    async with other.worker():
        assert (await (await plain.asubmit()).finished(60)).result == 1
        await until(lambda: _parked(other, job.id), "the script to be parked")
    left = await app.aget(job.id)
    assert (left.state, left.attempt) == ("scheduled", 0)
    await other.aclose()
    await app.aclose()


async def _parked(app: Headway, job_id: Any) -> bool:
    return (await app.aget(job_id)).wait_reason == "no_code"
