"""Digests: how the latest jobs of schedules ended, and what fails most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway import Headway
from tests.api.conftest import Site
from tests.flow.waiting import until

HOOK = {"schedule": "0 6 * * *", "job": {"callback_url": "https://example.com/hook"}}


async def test_strips_tell_the_jobs_of_each_schedule_in_the_order_asked_for(site: Site) -> None:
    quiet, busy = [(await site.post("/schedules", {**HOOK, "name": name})).json()["id"] for name in ("quiet", "busy")]
    job = (await site.post(f"/schedules/{busy}/run")).json()
    answer = await site.get("/stats/strips", params={"schedule": [busy, quiet]})

    strips = answer.json()["items"]
    assert [strip["schedule"] for strip in strips] == [busy, quiet]
    assert [[mark["id"] for mark in strip["jobs"]] for strip in strips] == [[job["id"]], []]
    assert set(strips[0]["jobs"][0]) == {"id", "state", "at"}
    assert (await site.get("/stats/strips")).status_code == 422


async def test_failures_are_counted_by_name_without_their_tracebacks(
    sites: Callable[[Headway], Any], store_url: str
) -> None:
    app = Headway(store_url)

    @app.job(name="breaks")
    async def breaks(reason: str) -> None:
        raise ValueError(reason)

    site = await sites(app)
    async with app.worker():
        for name in ("often", "often", "once"):
            body = {"kind": "call", "function": "breaks", "name": name, "args": [f"{name} broken"]}
            await site.post("/jobs", body)
        await until(lambda: _failed(site, 3), "the failures")
    answer = await site.get("/stats/failures")

    told = answer.json()
    assert [(each["name"], each["count"], each["message"]) for each in told["items"]] == [
        ("often", 2, "often broken"),
        ("once", 1, "once broken"),
    ]
    assert not told["more"]
    assert "Traceback" not in answer.text
    assert (await site.get("/stats/failures?from=2100-01-01T00:00:00Z")).json()["items"] == []


async def _failed(site: Site, count: int) -> bool:
    return len((await site.get("/jobs?state=failed")).json()["items"]) == count
