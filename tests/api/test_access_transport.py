"""TLS, proxies, CORS, headers; and what is refused where others could read it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from headway import Headway
from headway.api.server import Tls
from headway.model.errors import ConfigurationError
from tests.api.entrance import PASSWORD, QUICK, SAME, Entrance, entrance
from tests.authority import Authority

SECRETIVE = [
    ("POST", "/session", {"name": "ann", "password": PASSWORD}),
    ("POST", "/users", {"name": "ann", "role": "viewer", "password": PASSWORD}),
    ("POST", "/tokens", {"name": "ci", "role": "viewer"}),
]
OUTSIDE = {"X-Forwarded-For": "192.0.2.7"}


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.access.passwords.default_hasher", lambda: QUICK)


@pytest.fixture
async def door() -> AsyncIterator[Entrance]:
    async with entrance(Headway("sqlite://")) as made:
        yield made


async def test_over_tls_with_a_private_authority_the_cookie_is_secure(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.certify("127.0.0.1")
    async with entrance(Headway("sqlite://"), tls=Tls(str(cert), str(key))) as door:
        assert door.api.url.startswith("https://127.0.0.1:")
        token = (await door.token()).secret
        async with door.client(token, verify=authority.context()) as admin:
            assert (await admin.post("/users", json=SECRETIVE[1][2])).status_code == 201
        async with door.client(verify=authority.context()) as browser:
            opened = await browser.post("/session", json=SECRETIVE[0][2], headers=SAME)
            cookie = opened.headers["set-cookie"]
            assert cookie.startswith("__Host-headway_session=")
            assert "secure" in {part.strip().lower() for part in cookie.split(";")}
            assert (await browser.get("/session", headers=SAME)).json()["name"] == "user:ann"
        async with door.client(token) as stranger:
            with pytest.raises(httpx.ConnectError, match="certificate"):
                await stranger.get("/jobs")


def test_a_certificate_that_can_not_be_used_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, _ = authority.certify("127.0.0.1", name="one")
    _, key = authority.certify("127.0.0.1", name="two")
    with pytest.raises(ConfigurationError, match="HEADWAY_TLS_CERT"):
        Tls(str(cert), str(key))
    with pytest.raises(ConfigurationError, match="can't be used"):
        Tls(str(tmp_path / "missing.pem"), str(key))


async def test_secrets_are_refused_over_plain_http_from_elsewhere(door: Entrance) -> None:
    """A proxy on this machine that nobody has named may speak for anybody."""
    async with await door.admin() as admin:
        for method, path, body in SECRETIVE:
            answer = await admin.request(method, path, json=body, headers=OUTSIDE)
            assert answer.status_code == 403, path
            assert "not encrypted" in answer.json()["detail"]
        assert (await admin.get("/jobs", headers=OUTSIDE)).status_code == 200


async def test_what_a_trusted_proxy_says_of_the_origin_counts() -> None:
    async with entrance(Headway("sqlite://"), proxies=("127.0.0.1",)) as door, await door.admin() as admin:
        tls = {**OUTSIDE, "X-Forwarded-Proto": "https"}
        assert (await admin.post("/users", json=SECRETIVE[1][2], headers=tls)).status_code == 201
        plain = {**OUTSIDE, "X-Forwarded-Proto": "http"}
        assert (await admin.post("/tokens", json=SECRETIVE[2][2], headers=plain)).status_code == 403
        [line] = (await admin.get("/audit", params={"action": "users.create"})).json()["items"]
        assert line["address"] == "192.0.2.7"
        async with door.client() as browser:
            opened = await browser.post("/session", json=SECRETIVE[0][2], headers={**tls, **SAME})
            assert opened.headers["set-cookie"].startswith("__Host-")


async def test_what_others_say_of_the_origin_does_not_count(door: Entrance) -> None:
    async with await door.admin() as admin:
        forged = {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "https"}
        assert (await admin.post("/tokens", json=SECRETIVE[2][2], headers=forged)).status_code == 403
        assert (await admin.post("/schedules/nosuch/pause", headers=forged)).status_code == 404
        lines = (await admin.get("/audit", params={"action": "schedules."})).json()["items"]
        assert {line["address"] for line in lines} == {"127.0.0.1"}


async def test_pages_of_other_origins_may_not_call_unless_they_are_named(door: Entrance) -> None:
    asks = {"Origin": "https://other.example", "Access-Control-Request-Method": "GET"}
    async with await door.admin() as admin:
        assert not _cors(await admin.options("/jobs", headers=asks))
        assert not _cors(await admin.get("/jobs", headers={"Origin": "https://other.example"}))


async def test_pages_of_named_origins_may_call_with_a_token() -> None:
    named = "https://other.example"
    async with entrance(Headway("sqlite://"), cors_origins=(named,)) as door, await door.admin() as admin:
        allowed = _cors(await admin.get("/jobs", headers={"Origin": named}))
        assert allowed["access-control-allow-origin"] == named
        assert "access-control-allow-credentials" not in allowed
        answer = await admin.get("/jobs", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in _cors(answer)


async def test_every_answer_has_the_security_headers(door: Entrance) -> None:
    async with door.client(base_url=door.api.url) as client:
        for path in ("/healthz", "/api/openapi.json", "/api/v1/jobs", "/api/v1/nosuch", "/nosuch"):
            headers = (await client.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff", path
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "no-referrer"
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert "server" not in headers


def _cors(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}
