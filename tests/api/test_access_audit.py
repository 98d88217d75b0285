"""Every change over HTTP leaves a line in the audit log; and tokens with limits stay within them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from headway import Headway
from headway.api.auditing import SAFE, action, when
from headway.api.call import Call, nothing
from headway.api.routes import all_routes
from headway.api.table import Audit, Route
from headway.model.access import Permission, Role
from tests.api.entrance import QUICK, Entrance, entrance
from tests.flow.waiting import until

CALL = {"kind": "call", "function": "nobody.knows"}
HTTP = {"kind": "http", "callback_url": "https://e.example/"}
CANARY = "canary-canary-canary"
UNCHANGING = {"POST /api/v1/schedules/preview"}
"""Requests that change nothing, although they are no GET."""


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.access.passwords.default_hasher", lambda: QUICK)


@pytest.fixture
async def door() -> AsyncIterator[Entrance]:
    async with entrance(Headway("sqlite://")) as made:
        yield made


def test_every_route_that_changes_something_is_audited() -> None:
    """One that isn't: remove its `audit=Audit.NEVER`, or, if it changes nothing, name it in UNCHANGING."""
    changing = [route for route in all_routes() if route.method not in SAFE]
    silent = {f"{route.method} {route.full_path}" for route in changing if when(route) is Audit.NEVER}
    assert silent == UNCHANGING
    assert all(action(route).count(".") == 1 for route in changing)


async def test_lines_tell_what_was_done_to_what_and_from_where(door: Entrance) -> None:
    async with await door.admin() as admin:
        job = (await admin.post("/jobs", json=CALL)).json()["id"]
        assert (await admin.post(f"/jobs/{job}/cancel")).status_code < 300
        assert (await admin.post("/queues/mail/pause")).status_code < 300
        body = {
            "name": "nightly",
            "schedule": "0 3 * * *",
            "job": {"kind": "http", "callback_url": "https://e.example/"},
        }
        made = await admin.post("/schedules", json=body)
        assert made.status_code == 201, made.text
        assert (await admin.post("/users", json={"name": "ann", "role": "viewer"})).status_code == 201
        await until(lambda: lines(admin, action="jobs.create"), "the line of the submit")
        told = {line["action"]: line for line in await lines(admin)}
    assert told["jobs.create"]["object"] == f"jobs/{job}"
    assert told["jobs.cancel"]["object"] == f"jobs/{job}/cancel"
    assert told["queues.pause"]["object"] == "queues/mail/pause"
    assert told["schedules.create"]["object"].startswith("schedules/")
    assert told["users.create"]["detail"] == {"role": "viewer"}
    assert {line["actor"] for line in told.values()} == {"token:admin", "test"}
    assert {line["address"] for line in told.values() if line["actor"] != "test"} == {"127.0.0.1"}


async def test_a_change_that_is_refused_is_told_as_refused(door: Entrance) -> None:
    async with await door.admin() as admin:
        assert (await admin.post("/schedules/nosuch/pause")).status_code == 404
        refused, asked = await lines(admin, action="schedules.pause")
    assert asked["detail"] == {}
    assert refused["detail"] == {"refused": "not_found"}


async def test_who_may_not_leaves_no_line(door: Entrance) -> None:
    viewer = (await door.token(Role.VIEWER)).secret
    async with door.client(viewer) as client, await door.admin() as admin:
        assert (await client.post("/queues/mail/pause")).status_code == 403
        assert await lines(admin, action="queues.") == []


async def test_no_secret_is_ever_shown_again(door: Entrance) -> None:
    """Not by any list, nor by the audit log, nor by what is said about errors."""
    async with await door.admin() as admin:
        await admin.post("/users", json={"name": "ann", "role": "viewer", "password": CANARY})
        token = (await admin.post("/tokens", json={"name": "ci", "role": "viewer"})).json()["token"]
        await admin.patch("/users/ann", json={"password": f"{CANARY}-2", "nam": "x"})
        await admin.post("/session", json={"name": "ann", "password": f"{CANARY}-wrong"})
        crawled = [await admin.get(path) for path in ("/users", "/users/ann", "/tokens", "/audit", "/session", "/jobs")]
        crawled += [await admin.patch("/users/ann", json={"password": "short", "role": CANARY})]
    for answer in crawled[:-1]:
        assert answer.status_code == 200
    for answer in crawled:
        assert CANARY not in answer.text
        assert token not in answer.text
        assert "$argon2" not in answer.text


@pytest.mark.parametrize(
    ("limits", "body", "status"),
    [
        ({"kinds": ["http"]}, HTTP, 201),
        ({"kinds": ["call"]}, HTTP, 403),
        ({"queues": ["mail"]}, HTTP, 403),
        ({"queues": ["mail"]}, {**HTTP, "queue": "mail"}, 201),
        ({"queues": ["mail"], "kinds": ["call"]}, {**HTTP, "queue": "mail"}, 403),
    ],
)
async def test_a_token_with_limits_stays_within_them(
    door: Entrance, limits: dict[str, list[str]], body: dict[str, Any], status: int
) -> None:
    async with await door.admin() as admin:
        made = (await admin.post("/tokens", json={"name": "ci", "role": "operator", **limits})).json()
    async with door.client(made["token"]) as program:
        assert (await program.post("/jobs", json=body)).status_code == status
        batch = await program.post("/jobs/batch", json={"jobs": [body]})
        assert batch.status_code == status
        schedule = {"name": "often", "schedule": "* * * * *", "job": body}
        assert (await program.post("/schedules", json=schedule)).status_code == status


async def test_local_targets_are_for_administrators_alone(door: Entrance) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFrBoDKCnmXmGiVxVGYLbBPpxDVJqTVCFXMbvwFbSKwc"
    async with await door.admin() as admin:
        token = (await admin.post("/tokens", json={"name": "ci", "role": "operator"})).json()["token"]
        made = await admin.post("/targets", json={"name": "here", "kind": "local"})
        assert made.status_code == 201, made.text
        async with door.client(token) as operator:
            answers = [
                await operator.post("/targets", json={"name": "other", "kind": "local"}),
                await operator.patch("/targets/here", json={"description": "x"}),
                await operator.post("/targets/here/trust", json={"host_key": key}),
                await operator.delete("/targets/here"),
            ]
        assert [answer.status_code for answer in answers] == [403] * 4
        assert (await admin.delete("/targets/here")).status_code == 204


async def test_a_token_with_limits_reaches_no_other_job_by_changing_it(door: Entrance) -> None:
    mine, others = (
        {**HTTP, "queue": "mail", "delay": 60},
        {"kind": "call", "function": "f", "queue": "mail", "delay": 60},
    )
    limits = {"kinds": ["http"], "queues": ["mail"]}
    async with await door.admin() as admin:
        made = (await admin.post("/tokens", json={"name": "ci", "role": "operator", **limits})).json()
        foreign = (await admin.post("/jobs", json=others)).json()["id"]
        aside = {"name": "aside", "schedule": "0 0 1 1 *", "job": {**HTTP, "queue": "aside"}}
        assert (await admin.post("/schedules", json=aside)).status_code == 201
    async with door.client(made["token"]) as program:
        own = (await program.post("/jobs", json=mine)).json()["id"]
        assert (await program.patch(f"/jobs/{own}", json={"priority": 3})).status_code == 200
        for path, change in (
            (own, {"queue": "aside"}),
            (foreign, {"priority": 3}),
            (foreign, {"payload": {"function": "g"}}),
        ):
            assert (await program.patch(f"/jobs/{path}", json=change)).status_code == 403, change
        for verb in ("cancel", "retry", "schedule"):
            assert (await program.post(f"/jobs/{foreign}/{verb}")).status_code == 403, verb
        assert (await program.delete(f"/jobs/{foreign}")).status_code == 403
        bulk = {"action": "cancel", "filter": {"queue": "mail"}}
        done = (await program.post("/jobs/bulk", json=bulk)).json()
        assert (done["matched"], done["done"], done["refused"]) == (2, 1, 1)
        assert [(each["job_id"], each["error"]["code"]) for each in done["errors"]] == [(foreign, "forbidden")]
        assert (await program.post(f"/jobs/{own}/retry")).status_code == 200
        for verb in ("run", "pause", "resume"):
            assert (await program.post(f"/schedules/aside/{verb}")).status_code == 403, verb
        assert (await program.delete("/schedules/aside")).status_code == 403
        moved = await program.patch("/schedules/aside", json={"job": {**HTTP, "queue": "other"}})
        assert moved.status_code == 403


async def test_a_token_that_has_expired_is_refused_and_one_in_the_past_is_not_made(door: Entrance) -> None:
    async with await door.admin() as admin:
        body = {"name": "ci", "role": "viewer", "expires_at": "2020-01-01T00:00:00Z"}
        refused = await admin.post("/tokens", json=body)
        assert refused.status_code == 422
        assert refused.json()["field"] == "expires_at"


async def lines(client: httpx.AsyncClient, **wanted: str) -> list[dict[str, Any]]:
    answer = await client.get("/audit", params=wanted)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_who_reads_a_script_is_written_down() -> None:
    async def handler(_call: Call) -> Response:
        return nothing()

    permission = Permission.READ_SCRIPTS
    route = Route(method="GET", path="/jobs/{id}/script", handler=handler, permission=permission, summary="Read it")
    assert when(route) is Audit.FIRST
    assert action(route) == "jobs.script"
    assert route.sensitive


async def test_lines_tell_which_jobs_were_meant_and_what_was_changed(door: Entrance) -> None:
    secret = {**HTTP, "headers": {"Authorization": f"Bearer {CANARY}"}}
    async with await door.admin() as admin:
        job = (await admin.post("/jobs", json={**CALL, "queue": "mail", "delay": 60})).json()["id"]
        await admin.patch(f"/jobs/{job}", json={"priority": 7})
        bulk = {"action": "cancel", "filter": {"queue": "mail"}}
        assert (await admin.post("/jobs/bulk", json=bulk)).json()["done"] == 1
        made = await admin.post("/schedules", json={"name": "n", "schedule": "0 3 * * *", "job": HTTP})
        assert made.status_code == 201, made.text
        change = {"schedule": "0 4 * * *", "tags": ["a"], "job": secret}
        assert (await admin.patch("/schedules/n", json=change)).status_code == 200
        [edited] = await lines(admin, action="jobs.change")
        done, asked = await lines(admin, action="jobs.bulk")
        changed, _ = await lines(admin, action="schedules.change")
        everything = (await admin.get("/audit")).text
    assert edited["detail"] == {"priority": 7}
    assert asked["detail"] == {**bulk, "dry_run": False}
    assert done["detail"] == {"matched": 1, "done": 1, "refused": 0}
    assert changed["detail"] == {
        "changed": {"schedule": ["0 3 * * *", "0 4 * * *"], "tags": [[], ["a"]], "job": []},
    }
    assert CANARY not in everything
