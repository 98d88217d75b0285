"""Scripts over HTTP: the service and the worker share nothing but the store."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headway import Headway
from tests.api.conftest import Site, serving
from tests.script.far import PATIENCE
from tests.servers import Postgres
from tests.sshd import SshServer


@pytest.fixture(params=["store", "files"])
async def site(
    request: pytest.FixtureRequest,
    postgres: Postgres,
    migrated: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sshd: SshServer,
) -> AsyncIterator[Site]:
    """The service on PostgreSQL, with a target `box`; output in the store, or in files."""
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    if request.param == "files":
        monkeypatch.setenv("HEADWAY_OUTPUT", f"file://{tmp_path}/output")
    url = await asyncio.to_thread(postgres.create_database, migrated)
    worker = Headway(url)
    async with serving(Headway(url)) as site, worker.worker(queues=["default"]):
        await site.app.vault.create_target(sshd.target(), sshd.by_key, by="test")
        yield site
    await worker.aclose()
    await asyncio.to_thread(postgres.drop_database, url)


async def submitted(site: Site, **body: Any) -> str:
    answer = await site.post("/jobs", {"kind": "script", "target": "box", "probe": False, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def ended(site: Site, job: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        while True:
            told: dict[str, Any] = (await site.get(f"/jobs/{job}", params={"wait": 20})).json()
            if told["state"] in {"completed", "failed", "cancelled"}:
                return told


async def test_a_script_is_uploaded_run_and_looked_at(site: Site) -> None:
    script = b"#!/bin/sh\necho hello $1\nhead -c 200000 /dev/zero > zeros.bin\nmkdir d; echo x > 'd/a b.txt'\n"
    answer = await site.ask("POST", "/uploads", files={"script": ("deploy.sh", script)})
    assert answer.status_code == 201, answer.text
    [upload] = answer.json()["items"]
    assert upload["sha256"] == hashlib.sha256(script).hexdigest()
    collect = ["*.bin", "d/*"]
    job = await submitted(site, name="one", script={"upload": upload["id"]}, args=["you"], collect=collect)
    shown = await ended(site, job)
    assert shown["state"] == "completed"
    assert (shown["script_sha256"], shown["script_size"]) == (upload["sha256"], len(script))
    place = os.environ.get("HEADWAY_OUTPUT")
    assert shown["output_location"] == (f"{place.removeprefix('file://')}/{job}" if place else None)
    assert place is None or (Path(shown["output_location"]) / "1" / "output").read_text() == "hello you\n"
    output = await site.get(f"/jobs/{job}/output")
    assert output.text == "hello you\n"
    assert output.headers["x-content-type-options"] == "nosniff"
    assert (await site.get(f"/jobs/{job}/output", headers={"Range": "bytes=6-8"})).text == "you"
    assert (await site.get(f"/jobs/{job}/output", params={"stream": "stderr"})).text == ""
    files = {each["name"]: each for each in (await site.get(f"/jobs/{job}/artifacts")).json()["items"]}
    assert set(files) == {"zeros.bin", "d/a b.txt"}
    zeros = await site.client.get(files["zeros.bin"]["url"])
    assert zeros.content == bytes(200_000)
    assert "attachment" in zeros.headers["content-disposition"]
    part = await site.client.get(files["zeros.bin"]["url"], headers={"Range": "bytes=199990-"})
    assert (part.status_code, part.content) == (206, bytes(10))
    assert (await site.client.get(files["d/a b.txt"]["url"])).text == "x\n"
    for name in ("../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/x", "nothing"):
        assert (await site.get(f"/jobs/{job}/artifacts/{name}")).status_code in {400, 404}
    assert (await site.get(f"/jobs/{job}/script")).content == script
    audit = (await site.get("/audit", params={"action": "scripts.read"})).json()["items"]
    assert [each["object"] for each in audit] == [f"jobs/{job}"]


async def test_output_is_followed_while_the_script_runs(site: Site, sshd: SshServer) -> None:
    go = sshd.place() / "go"
    job = await submitted(site, name="two", script=f"echo first; while [ ! -e {go} ]; do sleep 0.05; done; echo last")
    said, first_alone = "", False
    async with site.client.stream("GET", f"/api/v1/jobs/{job}/output", params={"follow": "true"}) as stream:
        async for line in stream.aiter_lines():
            said += line
            if "first" in said and not first_alone:
                first_alone = "last" not in said
                go.touch()
    assert first_alone
    assert "last" in said


async def test_a_target_that_no_worker_reaches_is_refused_unless_that_is_wanted(site: Site, sshd: SshServer) -> None:
    target = {"host": "127.0.0.1", "port": 1, "user": "x", "host_key": sshd.host_key}
    body = {"kind": "script", "name": "three", "target": target, "script": "true"}
    refused = await site.post("/jobs", body)
    assert refused.status_code == 422, refused.text
    told = refused.json()
    assert "step connect" in told["detail"]
    assert "the worker" in told["detail"]
    assert (await site.post("/jobs", {**body, "probe": False})).status_code == 201
    reached = {**body, "target": "box", "name": "reached"}
    async with asyncio.timeout(PATIENCE):
        # Five seconds may be little on a machine that has much to do.
        while (await site.post("/jobs", reached)).status_code != 201:
            await asyncio.sleep(0.5)
    batch = {"jobs": [{**body, "name": f"batch {number}"} for number in range(2)], "partial": True}
    items = (await site.post("/jobs/batch", batch)).json()["items"]
    assert [item["status"] for item in items] == [422, 422]
    assert "step connect" in items[1]["error"]["detail"]
    assert items[1]["error"]["field"] == "jobs[1].target"
    nobody = await site.post("/jobs", {**body, "target": "box", "name": "four", "queue": "lonely"})
    assert "no worker took the probe" in nobody.json()["detail"]


async def test_uploads_that_are_no_scripts_are_refused(site: Site) -> None:
    async def status(**parts: bytes) -> int:
        return (await site.ask("POST", "/uploads", files=parts)).status_code

    assert await status(script=b"") == 422
    assert await status(script=b"a\0b") == 422
    assert await status(script=b"x" * (1024 * 1024 + 1)) in {413, 422}
    assert await status(script=b"# " + b"x" * (1024 * 1024 - 2)) == 201
    assert await status(other=b"x") == 422
    assert (await site.post("/uploads", {"script": "x"})).status_code in {400, 415}
    assert (
        await site.ask("POST", "/uploads", content=b"--x", headers={"content-type": "multipart/form-data"})
    ).status_code in {400, 415}
