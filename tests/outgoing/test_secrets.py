"""Secrets in requests: put in when they are sent, kept nowhere; and signatures made with them."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from headway.model.states import State
from tests.outgoing.conftest import Bench, at_work, result_of
from tests.outgoing.site import Site

CANARY = b"open sesame 42"
OLD, NEW = (f"whsec_{base64.b64encode(bytes([number]) * 24).decode()}" for number in (1, 2))


@pytest.fixture
async def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """An app whose vault has secrets."""
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path))
    async with at_work(f"sqlite:///{tmp_path / 'headway.db'}") as bench:
        for name, value in {"api": CANARY, "old": OLD.encode(), "new": NEW.encode(), "odd": b"not base64!"}.items():
            await bench.app.vault.set_secret(name, value, by="ann")
        yield bench


async def test_a_secret_goes_into_the_header_and_nowhere_else(keeper: Bench, site: Site, tmp_path: Path) -> None:
    async def parrot(request: web.Request) -> web.Response:
        said = request.headers["Authorization"]
        return web.Response(text=f"you said {said}", headers={"X-Echo": said})

    url = site.on("/parrot", parrot)
    headers = {"Authorization": {"secret": "api", "prefix": "Bearer "}}
    called = await keeper.http(url, headers=headers)
    fetched = await keeper.fetch(url, headers=headers)
    assert [asked.headers["Authorization"] for asked in site.asked("/parrot")] == ["Bearer open sesame 42"] * 2
    assert (result_of(called)["body"], fetched.result) == ("you said Bearer ***", b"you said Bearer ***")
    assert result_of(called)["headers"]["x-echo"] == "Bearer ***"
    failed = await keeper.http(url, headers=headers, expected_status=[204])
    assert failed.state is State.FAILED
    assert all(CANARY not in file.read_bytes() for file in tmp_path.glob("headway.db*"))


async def test_a_secret_that_is_gone_is_named_and_not_tried_again(keeper: Bench, site: Site) -> None:
    app = keeper.app
    asked = {"callback_url": f"{site.url}/x", "headers": {"X": {"secret": "api"}}}
    held = await app.asubmit("http", asked, hold=True)
    await app.client.call(lambda store: store.delete_secret("api"))
    await app.arelease(held)
    job = await app.await_ended(held.id, 60)
    assert job.error is not None
    assert (job.state, job.attempt, job.error.type) == (State.FAILED, 1, "SecretNotFound")
    assert "'api'" in job.error.message
    assert site.asked("/x") == []


async def test_a_signed_callback_is_verified_by_its_receiver(keeper: Bench, site: Site) -> None:
    job = await keeper.http(f"{site.url}/signed", payload={"paid": True}, sign={"secret": "old"})
    [asked] = site.asked("/signed")
    headers = {name.lower(): value for name, value in asked.headers.items()}
    assert Webhook(OLD).verify(asked.body, headers) == {"paid": True}
    assert headers["webhook-id"] == str(job.id)
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(asked.body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(json.dumps({"paid": False}), headers)


async def test_while_a_secret_is_replaced_both_sign(keeper: Bench, site: Site) -> None:
    await keeper.http(f"{site.url}/both", payload=[], sign=[{"secret": "old"}, {"secret": "new"}])
    [asked] = site.asked("/both")
    headers = {name.lower(): value for name, value in asked.headers.items()}
    for secret in (OLD, NEW):
        Webhook(secret).verify(asked.body, headers)


async def test_each_attempt_is_signed_anew_under_the_same_id(keeper: Bench, site: Site) -> None:
    url = site.say("/twice", (500, {}, b""), (200, {}, b""))
    await keeper.http(url, payload={}, sign={"secret": "old"})
    first, second = (dict(asked.headers) for asked in site.asked("/twice"))
    assert first["webhook-id"] == second["webhook-id"]


async def test_a_secret_that_can_not_sign_is_told_so(keeper: Bench, site: Site) -> None:
    job = await keeper.http(f"{site.url}/odd", payload={}, sign={"secret": "odd"})
    assert job.error is not None
    assert (job.attempt, "must be base64" in job.error.message) == (1, True)
    assert "not base64!" not in job.error.message
