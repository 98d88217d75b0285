"""Logging in, staying logged in, and being logged out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from headway import Headway
from headway.access.first import new_link
from headway.model.access import AuditFilter, Role, Subject
from tests.api.entrance import PASSWORD, QUICK, SAME, TEST, Entrance, entrance
from tests.flow.waiting import until

pytestmark = pytest.mark.usefixtures("quick_passwords")


@pytest.fixture
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashing that takes its time is proven elsewhere."""
    monkeypatch.setattr("headway.access.passwords.default_hasher", lambda: QUICK)


@pytest.fixture
async def door(store_url: str) -> AsyncIterator[Entrance]:
    async with entrance(Headway(store_url)) as made:
        yield made


@pytest.fixture
async def memory_door() -> AsyncIterator[Entrance]:
    async with entrance(Headway("sqlite://")) as made:
        yield made


async def make_ann(door: Entrance, role: str = "operator") -> None:
    async with await door.admin() as admin:
        made = await admin.post("/users", json={"name": "ann", "role": role, "password": PASSWORD})
        assert made.status_code == 201, made.text


async def log_in(client: httpx.AsyncClient, **body: str) -> httpx.Response:
    return await client.post("/session", json=body or {"name": "ann", "password": PASSWORD}, headers=SAME)


async def test_a_user_logs_in_works_and_logs_out(door: Entrance) -> None:
    await make_ann(door)
    async with door.client() as browser:
        assert (await browser.get("/session")).status_code == 401
        opened = await log_in(browser)
        assert opened.status_code == 201
        assert opened.json()["name"] == "user:ann"
        assert opened.json()["role"] == "operator"
        assert "submit" in opened.json()["permissions"]
        assert (await browser.get("/session", headers=SAME)).json()["name"] == "user:ann"
        assert (await browser.get("/users", headers=SAME)).status_code == 403
        job = await browser.post("/jobs", json={"kind": "call", "function": "nobody.knows"}, headers=SAME)
        assert job.json()["created_by"] == "user:ann"
        cookies = dict(browser.cookies)
        assert (await browser.delete("/session", headers=SAME)).status_code == 204
        assert not browser.cookies
    async with door.client(cookies=cookies) as thief:
        assert (await thief.get("/jobs", headers=SAME)).status_code == 401


async def test_the_cookie_is_for_the_browser_and_this_site_only(memory_door: Entrance) -> None:
    await make_ann(memory_door)
    async with memory_door.client() as browser:
        cookie = (await log_in(browser)).headers["set-cookie"]
    parts = {part.strip().lower() for part in cookie.split(";")}
    assert {"httponly", "samesite=strict", "path=/", "max-age=43200"} <= parts
    assert cookie.startswith("headway_session=")
    assert not any(part.startswith("domain") for part in parts)


async def test_every_login_has_a_secret_of_its_own(memory_door: Entrance) -> None:
    await make_ann(memory_door)
    planted = {"Cookie": "headway_session=chosen", **SAME}
    async with memory_door.client() as browser:
        body = {"name": "ann", "password": PASSWORD}
        secrets = [(await browser.post("/session", json=body, headers=planted)).cookies for _ in range(2)]
    assert len({"chosen", *(cookies["headway_session"] for cookies in secrets)}) == 3


FOREIGN: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1"},
]


async def test_another_sites_page_can_not_use_the_session(memory_door: Entrance) -> None:
    await make_ann(memory_door, "admin")
    async with memory_door.client() as browser, await _with_token(memory_door) as program:
        await log_in(browser)
        for headers in FOREIGN:
            for method, path in (("GET", "/jobs"), ("POST", "/jobs"), ("DELETE", "/users/ann"), ("GET", "/events")):
                answer = await browser.request(method, path, headers=headers)
                assert answer.status_code == 403, (method, path)
                assert "another site" in answer.json()["detail"]
            login = await browser.post("/session", json={"name": "ann", "password": PASSWORD}, headers=headers)
            assert login.status_code == 403
            assert (await program.get("/jobs", headers=headers)).status_code == 200


async def test_our_own_page_may(memory_door: Entrance) -> None:
    await make_ann(memory_door)
    async with memory_door.client() as browser:
        await log_in(browser)
        host = memory_door.api.url
        for headers in ({"Sec-Fetch-Site": "none"}, {"Origin": host}, {}):
            assert (await browser.get("/jobs", headers=headers)).status_code == 200


async def test_a_change_of_a_user_ends_their_sessions_in_all_processes(door: Entrance) -> None:
    """Which changes do is the store's contract; here the other process has seen the session just before."""
    await make_ann(door)
    other_app = Headway(door.app.url)
    async with entrance(other_app) as other, door.client() as browser, await _with_token(door, "second") as admin:
        await log_in(browser)
        async with other.client(cookies=dict(browser.cookies)) as elsewhere:
            assert (await elsewhere.get("/jobs", headers=SAME)).status_code == 200
            assert (await admin.patch("/users/ann", json={"role": "viewer"})).status_code == 200
            assert (await browser.get("/jobs", headers=SAME)).status_code == 401
            await until(lambda: _refused(elsewhere), "the session to end in the other process")


async def test_a_token_that_is_taken_back_is_refused_everywhere_and_ends_its_sessions(door: Entrance) -> None:
    issued = await door.token(Role.OPERATOR, "ci")
    other_app = Headway(door.app.url)
    async with entrance(other_app) as other, other.client(issued.secret) as program, other.client() as browser:
        assert (await program.get("/jobs")).status_code == 200
        assert (await log_in(browser, token=issued.secret)).json()["name"] == "token:ci"
        assert (await browser.get("/jobs", headers=SAME)).status_code == 200
        async with await door.admin() as admin:
            assert (await admin.delete("/tokens/ci")).status_code == 204
        await until(lambda: _refused(program), "the token to be refused")
        await until(lambda: _refused(browser), "the session to end")


async def test_a_stream_ends_with_its_session(memory_door: Entrance) -> None:
    await make_ann(memory_door)
    async with memory_door.client() as browser, await _with_token(memory_door) as admin:
        await log_in(browser)
        async with browser.stream("GET", "/events", headers=SAME) as stream:
            assert stream.status_code == 200
            pieces = stream.aiter_raw()
            assert await anext(pieces)
            assert (await admin.delete("/users/ann")).status_code == 204
            async with asyncio.timeout(60):
                async for _ in pieces:
                    pass


async def test_a_login_link_logs_in_once(door: Entrance) -> None:
    await make_ann(door)
    code = await new_link(door.reach, Subject(user="ann"), TEST)
    async with door.client() as browser:
        assert (await log_in(browser, code=code)).json()["name"] == "user:ann"
    async with door.client() as late:
        answer = await log_in(late, code=code)
        assert answer.status_code == 401
        assert "used already" in answer.json()["detail"]


async def test_wrong_logins_look_all_the_same(memory_door: Entrance) -> None:
    await make_ann(memory_door)
    async with await _with_token(memory_door) as admin:
        assert (await admin.post("/users", json={"name": "bob", "role": "viewer"})).status_code == 201
    async with memory_door.client() as browser:
        answers = [
            await log_in(browser, name=name, password=password)
            for name, password in (("ann", "wrong password"), ("nobody", PASSWORD), ("bob", PASSWORD))
        ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1


async def test_a_login_that_is_none_is_refused(memory_door: Entrance) -> None:
    bodies: list[dict[str, object]] = [{}, {"name": "ann"}, {"password": "x"}, {"code": "x", "token": "y"}]
    async with memory_door.client() as browser:
        for body in [*bodies, {"nam": "ann"}, {"name": 1}]:
            assert (await browser.post("/session", json=body, headers=SAME)).status_code == 422, body


async def test_throttling_counts_for_all_processes_together(door: Entrance) -> None:
    await make_ann(door)
    async with entrance(Headway(door.app.url)) as other, door.client() as here, other.client() as there:
        wrong = [await log_in(client, name="ann", password="wrong") for _ in range(5) for client in (here, there)]
        assert {answer.status_code for answer in wrong} == {401}
        for client in (here, there):
            refused = await log_in(client)
            assert refused.status_code == 429
            assert 0 < int(refused.headers["retry-after"]) <= 900
        code = await new_link(door.reach, Subject(user="ann"), TEST)
        assert (await log_in(there, code=code)).status_code == 201


async def test_one_address_can_not_try_many_names(memory_door: Entrance) -> None:
    async with memory_door.client() as browser:
        answers = await asyncio.gather(
            *(log_in(browser, name=f"user-{number}", password="wrong password") for number in range(55))
        )
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(401) == 50
    assert statuses.count(429) == 5


async def test_logins_and_changes_stand_in_the_audit_log(memory_door: Entrance) -> None:
    await make_ann(memory_door)
    async with memory_door.client() as browser:
        await log_in(browser)
        await browser.delete("/session", headers=SAME)
    lines = await memory_door.reach(lambda store: store.audit(AuditFilter(actor="user:ann")))
    assert [line.action for line in lines] == ["sessions.delete", "sessions.create"]
    assert {line.address for line in lines} == {"127.0.0.1"}


async def _with_token(door: Entrance, name: str = "first") -> httpx.AsyncClient:
    return door.client((await door.token(Role.ADMIN, name)).secret)


async def _refused(client: httpx.AsyncClient) -> bool:
    return (await client.get("/jobs", headers=SAME)).status_code == 401
