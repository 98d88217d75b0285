"""Redirects: how far they are followed, and what goes along."""

from __future__ import annotations

from aiohttp import web

from headway import Job
from headway.model.states import State
from tests.outgoing.conftest import Bench, result_of
from tests.outgoing.site import Site


def to(status: int, location: str) -> tuple[int, dict[str, str], bytes]:
    return status, {"Location": location}, b"elsewhere"


def error_of(job: Job) -> tuple[str, str]:
    assert job.error is not None
    return job.error.type, job.error.message


async def test_a_callback_follows_none_unless_told(bench: Bench, site: Site) -> None:
    url = site.say("/old", to(302, "/new"))
    kind, message = error_of(await bench.http(url))
    assert kind == "Refused"
    assert "answered 302 Found to /new, not 2xx" in message
    assert site.asked("/new") == []
    job = await bench.http(url, max_redirects=1)
    assert (result_of(job)["url"], result_of(job)["redirects"]) == (f"{site.url}/new", 1)


async def test_a_fetch_follows_five(bench: Bench, site: Site) -> None:
    for number in range(1, 7):
        site.say(f"/{number}", to(301, f"/{number - 1}"))
    job = await bench.fetch(f"{site.url}/5")
    meta = await bench.app.aresult_meta(job.id)
    assert meta is not None
    assert (job.result, meta["redirects"], meta["url"]) == (b"here", 5, f"{site.url}/0")
    kind, message = error_of(await bench.fetch(f"{site.url}/6"))
    assert (kind, "after 5 redirects" in message) == ("TooManyRedirects", True)


async def test_a_circle_ends(bench: Bench, site: Site) -> None:
    kind, _ = error_of(await bench.fetch(site.say("/round", to(302, "/round"))))
    assert kind == "TooManyRedirects"
    assert len(site.asked("/round")) == 6


async def test_method_and_body_change_as_http_has_it(bench: Bench, site: Site) -> None:
    for status, method, body in (
        (301, "GET", b""),
        (302, "GET", b""),
        (303, "GET", b""),
        (307, "POST", b"7"),
        (308, "POST", b"7"),
    ):
        url = site.say(f"/from{status}", to(status, f"/to{status}"))
        assert (await bench.http(url, payload=7, max_redirects=1)).state is State.COMPLETED
        [asked] = site.asked(f"/to{status}")
        assert (asked.method, asked.body) == (method, body)
        assert ("Content-Type" in asked.headers) is bool(body)


async def test_headers_stay_with_the_server_they_were_meant_for(bench: Bench, site: Site) -> None:
    headers = {"Authorization": "Bearer mine", "X-Api-Key": "mine", "Accept": "text/html", "Cookie": "mine=1"}
    with Site() as other:
        url = site.say("/away", to(307, f"{other.url}/there"))
        near = site.say("/near", to(307, "/here"))
        for each in (url, near):
            assert (await bench.fetch(each, headers=headers)).state is State.COMPLETED
        [there], [here] = other.asked("/there"), site.asked("/here")
    assert there.headers["Accept"] == here.headers["Accept"] == "text/html"
    for name in ("Authorization", "X-Api-Key", "Cookie"):
        assert (name in there.headers, here.headers[name]) == (False, headers[name])


async def test_a_cookie_is_not_kept(bench: Bench, site: Site) -> None:
    async def sweet(request: web.Request) -> web.Response:
        return web.Response(headers={"Set-Cookie": "a=b", "Location": "/taste"}, status=302)

    await bench.fetch(site.on("/sweet", sweet))
    [asked] = site.asked("/taste")
    assert "Cookie" not in asked.headers


async def test_a_redirect_leads_to_no_other_scheme_and_no_private_place(bench: Bench, site: Site) -> None:
    for location, kind in (
        ("file:///etc/passwd", "InvalidTarget"),
        ("ftp://127.0.0.1/", "InvalidTarget"),
        ("gopher://127.0.0.1/", "InvalidTarget"),
        ("javascript:alert(1)", "InvalidTarget"),
        ("http://ann:pw@127.0.0.1/", "InvalidTarget"),
        ("http://[::1", "InvalidTarget"),
        (f"http://127.0.0.2:{site.port}/inner", "AddressRefused"),
        ("http://169.254.169.254/latest/meta-data", "AddressRefused"),
        ("//10.0.0.1/inner", "AddressRefused"),
    ):
        url = site.say("/out", to(302, location))
        job = await bench.ended("fetch", {"url": url}, dedupe=None)
        assert (error_of(job)[0], job.attempt) == (kind, 1), location
    assert site.asked("/inner") == []
