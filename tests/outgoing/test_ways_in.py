"""Requests asked for by schedules, messages, the command line and REST bodies, like all other kinds."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from headway import every
from headway.app import Headway
from headway.kinds import load_kinds
from headway.kinds.documentation import body_schema
from headway.model.states import State
from headway.testing import rehearsal
from tests.components.office import Office
from tests.contract.conftest import (  # noqa: F401 - fixtures are found by their names
    clock,
    make_shared_store,
    migrated_url,
    postgres_template,
    shared,
    wipe_clean,
    wiped_url,
)
from tests.contract.house import House
from tests.flow.conftest import processes  # noqa: F401
from tests.flow.processes import Process, Processes
from tests.outgoing.site import Site


async def test_the_body_of_the_first_seed_makes_callbacks_on_a_cron_schedule(site: Site) -> None:
    app = Headway("sqlite://")
    url = f"{site.url}/cron"
    job = {"callback_url": url, "http_method": "post", "payload": {"hello": "world"}}
    async with rehearsal(app) as stage:
        await app.aschedule("CLI", "* * * * *", job, description="From CLI")
        await stage.advance(minutes=3)
        jobs = await app.ajobs(kind="http")
    await app.aclose()
    assert [(each.state, each.attempt) for each in jobs] == [(State.COMPLETED, 1)] * 3
    assert [(asked.method, json.loads(asked.body)) for asked in site.asked("/cron")] == [
        ("POST", {"hello": "world"})
    ] * 3


async def test_a_schedule_fetches_each_time_unless_it_says_otherwise(site: Site) -> None:
    app = Headway("sqlite://")
    async with rehearsal(app) as stage:
        await app.aschedule("news", every(600), {"kind": "fetch", "url": f"{site.url}/news"})
        await app.aschedule("rare", every(600), {"kind": "fetch", "url": f"{site.url}/rare", "dedupe": 3600})
        await stage.advance(hours=1, seconds=1)
    await app.aclose()
    assert len(site.asked("/news")) >= 6
    assert 1 <= len(site.asked("/rare")) <= 2


async def test_a_message_creates_them(shared: House, site: Site) -> None:  # noqa: F811 - pytest's way
    office = Office(shared)
    job = await office.create({"kind": "http", "callback_url": f"{site.url}/m", "payload": {"a": 1}})
    assert (job["kind"], job["state"], job["timeout"], job["max_attempts"]) == ("http", "scheduled", 30, 5)
    first = await office.create({"kind": "fetch", "url": "https://example.com/x"})
    reply = await office.tell("CREATE", {"kind": "fetch", "url": "https://EXAMPLE.com/x#y"})
    assert (reply["job"]["id"], reply["job"]["deduplicated"]) == (first["id"], True)
    error = await office.refuse("CREATE", {"kind": "fetch", "url": "ftp://example.com"})
    assert error["field"] == "url"


async def test_the_command_line_schedules_and_shows_them(
    site: Site,
    processes: Processes,  # noqa: F811
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path / 'headway.db'}"
    body = {"name": "ping", "schedule": {"every": 3600}, "job": {"callback_url": f"{site.url}/ping", "payload": {}}}
    (tmp_path / "body.json").write_text(json.dumps(body))
    app = Headway(store)
    async with app.worker():
        await done(processes.headway("schedules", "create", "--from", "body.json", "--store", store))
        await app.arun_schedule("ping")
        [job] = await app.ajobs(kind="http")
        assert (await app.await_ended(job.id, 60)).state is State.COMPLETED
        picture = await app.asubmit(
            "fetch", {"url": site.say("/png", (200, {"Content-Type": "image/png"}, b"\x89\xff"))}
        )
        await app.await_ended(picture.id, 60)
        shown = await done(processes.headway("jobs", "show", str(picture.id), "--store", store))
    await app.aclose()
    assert len(site.asked("/ping")) == 1
    assert "2 B, image/png" in shown


async def done(process: Process) -> str:
    """What it said, once it has ended well."""
    assert await asyncio.to_thread(process.ended) == 0, process.text()
    return process.text()


@pytest.mark.parametrize(("kind", "needs"), [("http", "callback_url"), ("fetch", "url")])
def test_they_are_documented(kind: str, needs: str) -> None:
    schema = body_schema(load_kinds()[kind])
    assert schema["required"] == ["kind", needs]
    assert all(field.get("description") for name, field in schema["properties"].items() if name != "kind")
