"""Queues, workers, functions, health, and what the service says of itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from headway import Headway
from headway.api.openapi import document
from headway.api.readiness import stalled
from headway.api.routes import all_routes
from headway.kinds import load_kinds
from headway.model.limits import QueueSettings
from headway.model.overview import QueueStats
from tests.api.conftest import Site, serving
from tests.flow.waiting import until


async def test_queues_are_limited_and_paused(site: Site) -> None:
    await site.submit(queue="mail")
    changed = await site.ask("PATCH", "/queues/mail", json={"max_running": 10, "rate": "100/m", "keep_completed": 60})
    assert changed.status_code == 200, changed.text
    assert (changed.json()["max_running"], changed.json()["rate"], changed.json()["due"]) == (10, "100/60s", 1)
    lifted = await site.ask("PATCH", "/queues/mail", json={"rate": None})
    assert (lifted.json()["rate"], lifted.json()["max_running"]) == (None, 10)
    paused = (await site.post("/queues/mail/pause")).json()
    assert (paused["paused"], paused["paused_by"]) == (True, "token:admin")
    assert (await site.post("/queues/mail/resume")).json()["paused"] is False
    assert [queue["name"] for queue in (await site.get("/queues")).json()["items"]] == ["mail"]
    assert (await site.get("/queues/mail")).json()["waiting"] == 1
    assert (await site.get("/queues/nothing")).status_code == 404
    for wrong in ({}, {"rate": "fast"}, {"max_running": 0}, {"colour": "red"}):
        assert (await site.ask("PATCH", "/queues/mail", json=wrong)).status_code == 422
    stats = (await site.get("/stats")).json()
    assert (stats["jobs"]["due"], stats["workers"]) == (1, 0)


async def test_workers_and_functions_are_listed(store_url: str) -> None:
    app = Headway(store_url)

    @app.job(name="mail.welcome", queue="mail")
    async def welcome(user_id: int) -> None: ...

    async with serving(app) as site, app.worker(queues=["mail"]):

        async def workers() -> Any:
            return (await site.get("/workers")).json()["items"]

        [worker] = await until(workers, "the worker's first sign of life")
        assert (worker["queues"], worker["alive"]) == (["mail"], True)
        [function] = (await site.get("/functions")).json()["items"]
        assert (function["name"], function["queue"]) == ("mail.welcome", "mail")
        wrong = await site.post("/jobs", {"kind": "call", "function": "mail.welcome", "args": ["x"]})
        assert (wrong.status_code, wrong.json()["field"]) == (422, "args[0]")
        ready = await site.client.get("/readyz")
        assert (ready.status_code, ready.json()) == (200, {"ready": True, "reasons": []})


def test_claiming_stalls_when_due_jobs_wait_and_nothing_runs() -> None:
    def queue(**rest: object) -> QueueStats:
        fields = {"settings": QueueSettings(name="mail"), "workers": ("one",), "due": 5, "oldest_due": 61.0, **rest}
        return QueueStats(name="mail", **fields)  # type: ignore[arg-type]

    assert stalled(queue())
    assert not stalled(queue(oldest_due=59.0))
    assert not stalled(queue(running=1))
    assert not stalled(queue(workers=()))
    assert not stalled(queue(settings=QueueSettings(name="mail", paused=True)))


async def test_a_service_that_is_ending_is_not_ready(memory_site: Site) -> None:
    assert (await memory_site.client.get("/readyz")).status_code == 200
    memory_site.api.service.closing.set()
    assert (await memory_site.client.get("/readyz")).status_code == 503
    assert (await memory_site.client.get("/healthz")).status_code == 200


async def test_every_answer_is_guarded(memory_site: Site) -> None:
    for path in ("/healthz", "/api/v1/jobs", "/nothing", "/api/docs"):
        headers = (await memory_site.client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"] or path == "/nothing"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


async def test_the_docs_page_needs_no_script_and_nothing_from_elsewhere(memory_site: Site) -> None:
    page = await memory_site.client.get("/api/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src" not in page.headers["content-security-policy"]
    for forbidden in ("<script", "style=", "onclick", "http://", "//cdn"):
        assert forbidden not in page.text
    assert "POST" in page.text
    assert (await memory_site.client.get("/api/docs.css")).headers["content-type"].startswith("text/css")


def test_the_document_tells_the_kinds_apart_and_has_examples_everywhere() -> None:
    made = document(all_routes(), load_kinds())
    assert made["openapi"] == "3.1.0"
    union = made["components"]["schemas"]["JobBody"]
    assert union["discriminator"]["propertyName"] == "kind"
    assert {"call", "http", "fetch"} <= union["discriminator"]["mapping"].keys()
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {})
            assert all(each.get("examples") for each in body.values()), f"{method} {path}: no example of a body"
            for status, answer in operation["responses"].items():
                for kind, content in answer.get("content", {}).items():
                    if kind == "application/json":
                        assert "example" in content, f"{method} {path}: no example of answer {status}"


async def test_past_and_future_find_jobs(memory_site: Site) -> None:
    now = datetime.now(UTC)
    job = await memory_site.submit(run_at=(now + timedelta(hours=2)).isoformat())
    inside = {
        "time": "run",
        "from": (now + timedelta(hours=1)).isoformat(),
        "to": (now + timedelta(hours=3)).isoformat(),
    }
    assert [each["id"] for each in (await memory_site.get("/jobs", params=inside)).json()["items"]] == [job["id"]]
    outside = {"time": "run", "from": (now + timedelta(hours=3)).isoformat()}
    assert (await memory_site.get("/jobs", params=outside)).json()["items"] == []
