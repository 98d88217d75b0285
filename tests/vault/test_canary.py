"""No secret leaves the vault but to where it is meant to go: not by any route, file, table, message, log or process."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from headway.vault.redaction import forms
from tests.bus.client import Client
from tests.flow.conftest import migrate
from tests.flow.processes import Process, Processes
from tests.flow.waiting import block_until
from tests.rabbit import Rabbit
from tests.sshd import SshServer
from tests.vault.canary import (
    CANARY,
    PLANTED,
    TOKEN,
    Tap,
    dump,
    echo,
    files,
    found_in,
    get_routes,
    kept,
    processes,
    reference,
    tables,
)

pytestmark = pytest.mark.timeout(300)
"""Several processes start, and a broker: on a machine that has much to do this takes its time."""

KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{CANARY}\n-----END OPENSSH PRIVATE KEY-----\n"
PREFIX = "/api/v1"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as running:
        yield running


class Service:
    """A service of several processes, and what is kept by them."""

    def __init__(self, api: Process, pids: list[int]) -> None:
        url = block_until(lambda: _address(api), "the API to say where it is", 60)
        self.pids = pids
        self.client = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60, trust_env=False
        )
        block_until(self._answers, "the API to answer", 60)

    def _answers(self) -> bool:
        try:
            return self.client.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.client.request(method, f"{PREFIX}{path}", json=body)
        assert answer.status_code < 300, answer.text
        assert found_in(answer.text) == []
        return answer.json()

    def plant(self, site: str) -> dict[str, list[str]]:
        """A canary in a secret and in credentials, and jobs that use it: well, badly, and again and again."""
        self.ask("PUT", "/secrets/canary", {"value": CANARY})
        target = {"host": "db.example", "user": "ops"}
        self.ask("POST", "/targets", {"name": "by-password", **target, "credential": {"password": CANARY}})
        key = {"private_key": KEY, "passphrase": CANARY}
        self.ask("POST", "/targets", {"name": "by-key", **target, "credential": key})
        self.ask("PATCH", "/targets/by-password", {"user": "root"})
        header = {"Authorization": reference("Bearer ")}
        http: dict[str, Any] = {
            "kind": "http",
            "http_method": "POST",
            "headers": header,
            "payload": {"a": 1},
            "retry": None,
        }
        bodies: list[dict[str, Any]] = [
            {**http, "callback_url": f"{site}/fine"},
            {**http, "callback_url": f"{site}/broken"},
            {**http, "callback_url": "http://127.0.0.1:1/nobody"},
            {**http, "callback_url": f"{site}/later", "delay": 3600},
        ]
        jobs = [self.ask("POST", "/jobs", body)["id"] for body in bodies]
        template = {name: value for name, value in bodies[0].items() if name != "retry"}
        schedule = self.ask("POST", "/schedules", {"name": "hourly", "schedule": "0 * * * *", "job": template})
        ran = self.ask("POST", f"/schedules/{schedule['id']}/run")
        jobs.append(ran.get("job_id") or ran["id"])
        block_until(lambda: all(map(self.over, (*jobs[:3], jobs[-1]))), "the jobs to end", 60)
        return {"job_id": jobs, "schedule": [schedule["id"]], "target": ["by-password", "by-key"], "queue": ["default"]}

    def over(self, job: str) -> bool:
        return self.ask("GET", f"/jobs/{job}")["state"] in {"completed", "failed"}

    def refusals(self) -> Iterator[tuple[str, str]]:
        """What is said to those who get something wrong about a secret."""
        wrong = [
            ("PUT", "/secrets/canary", {"value": [CANARY]}),
            ("PUT", "/secrets/canary", {"vlaue": CANARY}),
            ("PUT", "/secrets/no name", {"value": CANARY}),
            ("POST", "/targets", {"name": "x", "host": "h", "user": "u", "credential": {"pasword": CANARY}}),
            ("POST", "/targets", {"name": "x", "host": "h", "user": "u", "credential": CANARY}),
            ("POST", "/targets", {"name": "by-key", "host": "h", "user": "u", "credential": {"password": CANARY}}),
            ("PATCH", "/targets/by-key", {"port": "x", "credential": {"password": CANARY}}),
        ]
        for method, path, body in wrong:
            answer = self.client.request(method, f"{PREFIX}{path}", json=body)
            assert 400 <= answer.status_code < 500, answer.text
            yield f"{method} {path}", answer.text

    def leaks(self, values: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
        """Where the canary is, over HTTP and in processes."""
        return kept([*get_routes(self.client, values), *self.refusals(), *processes(self.pids)])


def _address(api: Process) -> str | None:
    told = [line for line in api.text().splitlines() if "the API of" in line]
    return told[0].rpartition(" at ")[2].strip() if told else None


def _environment(data: Path, **more: str) -> dict[str, str]:
    return {
        "HEADWAY_ADMIN_TOKEN": TOKEN,
        "HEADWAY_ALLOW_PRIVATE": "127.0.0.1",
        "HEADWAY_DATA": str(data),
        "HEADWAY_LOG_LEVEL": "debug",
        "HEADWAY_LOG_JSON": "true",
        **more,
    }


def test_nothing_of_a_secret_is_left_by_all_in_one_on_sqlite(started: Processes, tmp_path: Path) -> None:
    environment = _environment(tmp_path / "data", HEADWAY_STORE=f"sqlite:///{tmp_path / 'headway.db'}")
    up = started.headway("up", **environment)
    with echo() as (site, seen):
        service = Service(up, [up.pid])
        values = service.plant(site)
        assert len(kept(("echo", said) for said in seen)) >= 3, "the secret has gone where it was meant to go"
        assert service.leaks(values) == []
        service.client.close()
    assert kept(files(tmp_path)) == []
    assert up.stop() == 0
    assert kept(files(tmp_path)) == []


def test_nothing_of_a_secret_is_left_by_processes_on_postgresql_and_rabbitmq(
    started: Processes, tmp_path: Path, postgres_url: str, rabbit: Rabbit
) -> None:
    tap = Tap(rabbit.url)
    environment = _environment(tmp_path / "data", HEADWAY_STORE=postgres_url, HEADWAY_BUS=tap.url)
    asyncio.run(migrate(postgres_url))
    (tmp_path / "jobs.py").write_text(f"from headway import Headway\napp = Headway({postgres_url!r})\n")
    api = started.headway("api", **environment)
    worker = started.headway("worker", "--app", "jobs:app", "--scheduler", **environment)
    with echo() as (site, seen):
        service = Service(api, [api.pid, worker.pid])
        values = service.plant(site)
        with Client(Rabbit(tap.url)) as client:
            body = {"kind": "http", "callback_url": f"{site}/by-command", "headers": {"X-Key": reference()}}
            made = client.ask({"type": "CREATE", "payload": body})
            assert made["ok"], made
            values["job_id"].append(made["job"]["id"])
            block_until(lambda: service.over(made["job"]["id"]), "the job of a command to end", 60)
            assert client.ask({"type": "STATUS", "payload": {"all": True}})["ok"]
        assert len(kept(("echo", said) for said in seen)) >= 4, "the secret has gone where it was meant to go"
        assert service.leaks(values) == []
        service.client.close()
    assert (api.stop(), worker.stop()) == (0, 0)
    tap.close()
    for word in (b"headway.commands", b"headway.dispatch.default", b'"ids":[', b"job.completed", b"by-command"):
        assert word in tap.heard, f"{word!r} went over the broker"
    saved = dump(postgres_url)
    assert b"COPY headway.secret" in saved, "the dump has what is sealed"
    assert kept([*tables(postgres_url), ("dump", saved), *files(tmp_path), ("broker", tap.heard)]) == []


SCRIPT = """#!/bin/sh
printf 'it is '; cat "$HEADWAY_SECRETS/canary"; echo
base64 < "$HEADWAY_SECRETS/canary"
od -An -tx1 < "$HEADWAY_SECRETS/canary" | tr -d ' \\n'; echo
sha256sum < "$HEADWAY_SECRETS/canary"
cp "$HEADWAY_SECRETS/canary" kept.txt
touch begun
while [ ! -e go ]; do sleep 0.05; done
cat "$HEADWAY_SECRETS/canary" >&2
exit 3
"""


def test_nothing_of_a_secret_is_left_by_scripts_on_either_side(started: Processes, tmp_path: Path) -> None:
    """The script prints it in several ways; it is seen neither there, nor on its way, nor in what is kept."""
    environment = _environment(tmp_path / "data", HEADWAY_STORE=f"sqlite:///{tmp_path / 'headway.db'}")
    up = started.headway("up", **environment)
    with SshServer() as sshd:
        PLANTED.update(forms(sshd.password.encode()))
        service = Service(up, [up.pid])
        service.ask("PUT", "/secrets/canary", {"value": CANARY})
        place = {"host": "127.0.0.1", "port": sshd.port, "user": sshd.user}
        credential = {"password": sshd.password}
        service.ask("POST", "/targets", {"name": "by-key", **place, "credential": credential})
        probe = partial(service.ask, "POST", "/targets/by-key/probe")
        # Five seconds may be little on a machine that has much to do.
        block_until(lambda: probe()["host_key"] == sshd.host_key, "a worker to see the host key", 60)
        service.ask("POST", "/targets/by-key/trust", {"host_key": sshd.host_key})
        block_until(lambda: probe()["ok"], "a worker to log in", 60)
        work = sshd.place()
        script = {"kind": "script", "script": SCRIPT, "secrets": ["canary"], "cwd": str(work), "probe": False}
        inline = {**place, "host_key": sshd.host_key, "credential": credential}
        jobs: list[str] = []
        for target in ("by-key", inline):
            job = service.ask("POST", "/jobs", {**script, "name": f"script {len(jobs)}", "target": target})
            jobs.append(job["id"])
            block_until((work / "begun").exists, "the script to begin", 60)
            far = [process.pid for process in sshd.processes()]
            assert far, "the script runs"
            assert kept(processes([*far, up.pid])) == []
            (work / "go").touch()
            block_until(lambda: service.over(jobs[-1]), "the script to end", 60)
            for left in ("begun", "go", "kept.txt"):
                (work / left).unlink()
        shown = service.client.get(f"{PREFIX}/jobs/{jobs[0]}/output").text
        assert hashlib.sha256(CANARY.encode()).hexdigest() in shown, "the script had the secret itself"
        assert shown.count("***") >= 4
        assert service.leaks({"job_id": jobs, "target": ["by-key"], "queue": ["default"]}) == []
        service.client.close()
        block_until(lambda: not kept(files(sshd.home)), "the directories of the runs to be removed", 60)
        assert kept([("sshd", sshd.log())]) == []
    assert up.stop() == 0
    assert kept(files(tmp_path)) == []
