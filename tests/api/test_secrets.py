"""Secrets and targets over HTTP: they go in, and never come out."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from headway.api.gate import TokenGate
from headway.api.process import AppApi
from headway.components import targets
from headway.model.errors import ConfigurationError, VaultLocked
from tests.api.conftest import Site

VALUE = "correct horse battery"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFrBoDKCnmXmGiVxVGYLbBPpxDVJqTVCFXMbvwFbSKwc"
OTHER_KEY = "ssh-ed25519 " + base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()
TARGET = {"name": "db-1", "host": "db.example", "user": "ops", "credential": {"password": VALUE}}


async def make(site: Site, **changes: Any) -> dict[str, Any]:
    answer = await site.post("/targets", {**TARGET, **changes})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    assert VALUE not in answer.text
    return made


async def test_a_secret_is_set_listed_and_deleted_but_never_shown(site: Site) -> None:
    said = await site.ask("PUT", "/secrets/shop", json={"value": VALUE, "note": "the shop's key"})
    assert said.status_code == 200, said.text
    assert (said.json()["name"], said.json()["updated_by"]) == ("shop", "token:admin")
    await site.ask("PUT", "/secrets/another", json={"value": VALUE})
    found = await site.get("/secrets", params={"limit": 1})
    assert [item["name"] for item in found.json()["items"]] == ["another"]
    rest = await site.get("/secrets", params={"cursor": found.json()["cursor"]})
    assert [item["name"] for item in rest.json()["items"]] == ["shop"]
    assert VALUE not in said.text + found.text + rest.text
    assert await site.app.vault.reveal("shop") == VALUE.encode()
    assert (await site.get("/secrets/shop")).status_code == 405
    assert (await site.ask("DELETE", "/secrets/shop")).status_code == 204
    assert (await site.ask("DELETE", "/secrets/shop")).status_code == 404


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("a b", {"value": VALUE}, "name"),
        ("..", {"value": VALUE}, "name"),
        ("shop", {"value": ""}, "value"),
        ("shop", {"value": VALUE * 5000}, "value"),
        ("shop", {"value": [VALUE]}, "value"),
        ("shop", {"valeu": VALUE}, "valeu"),
        ("shop", {}, "value"),
    ],
)
async def test_a_refusal_names_the_field_and_doesnt_quote_the_value(
    memory_site: Site, name: str, body: dict[str, Any], field: str
) -> None:
    said = await memory_site.client.put(f"/api/v1/secrets/{name.replace('..', '%2e%2e')}", json=body)
    assert said.status_code in {404, 422}, said.text
    assert VALUE not in said.text
    if said.status_code == 422:
        assert said.json()["field"] == field


async def test_a_target_is_made_changed_and_deleted_but_its_credential_never_shown(site: Site) -> None:
    made = await make(site, labels={"zone": "a"}, port=2222)
    assert (made["credential"], made["port"], made["fingerprint"]) == ("password", 2222, None)
    by_name, by_id = await site.get("/targets/db-1"), await site.get(f"/targets/{made['id']}")
    assert by_name.json() == by_id.json() == made
    assert (await site.get("/targets")).json()["items"] == [made]
    changed = await site.ask("PATCH", "/targets/db-1", json={"user": "root", "version": made["version"]})
    assert (changed.json()["user"], changed.json()["credential"], changed.json()["labels"]) == (
        *("root", "password"),
        {"zone": "a"},
    )
    late = await site.ask("PATCH", "/targets/db-1", json={"user": "eve", "version": made["version"]})
    assert late.status_code in {409, 412}
    assert (await site.post("/targets", TARGET)).status_code == 409
    bare = await site.ask("PATCH", "/targets/db-1", json={"credential": None})
    assert bare.json()["credential"] is None
    assert (await site.ask("DELETE", "/targets/db-1")).status_code == 204
    assert (await site.get("/targets/db-1")).status_code == 404


async def test_a_target_that_open_jobs_name_is_deleted_by_force_only(memory_site: Site) -> None:
    await make(memory_site)
    body = {"kind": "script", "name": "it", "target": "db-1", "script": "true", "probe": False}
    job = (await memory_site.post("/jobs", body)).json()["id"]
    refused = await memory_site.ask("DELETE", "/targets/db-1")
    assert (refused.status_code, refused.json()["conflicting_job_id"]) == (409, job)
    assert job in refused.json()["detail"]
    assert (await memory_site.ask("PATCH", "/targets/db-1", json={"name": "other"})).status_code == 409
    assert (await memory_site.ask("DELETE", "/targets/db-1", params={"force": "true"})).status_code == 204


@pytest.mark.parametrize("moved", [{"host": "evil.example"}, {"port": 23}, {"host": "evil.example", "port": 23}])
async def test_another_address_has_no_credential_and_no_trust(memory_site: Site, moved: dict[str, Any]) -> None:
    await make(memory_site, host_key=HOST_KEY)
    changed = (await memory_site.ask("PATCH", "/targets/db-1", json=moved)).json()
    assert (changed["credential"], changed["host_key"]) == (None, None)
    entered = await memory_site.ask("PATCH", "/targets/db-1", json={"credential": {"password": VALUE}})
    assert entered.json()["credential"] == "password"


async def test_to_trust_a_host_key_is_an_act_of_its_own(memory_site: Site) -> None:
    await make(memory_site)
    slipped = await memory_site.ask("PATCH", "/targets/db-1", json={"host_key": HOST_KEY})
    assert (slipped.status_code, slipped.json()["field"]) == (422, "host_key")
    trusted = await memory_site.post("/targets/db-1/trust", {"host_key": f"{HOST_KEY} a comment"})
    assert trusted.json()["host_key"] == HOST_KEY
    assert trusted.json()["fingerprint"].startswith("SHA256:")
    assert trusted.json()["credential"] == "password"
    for wrong in ("ssh-ed25519", "ssh-rsa AAAA", f"ssh-rsa {HOST_KEY.split()[1]}", "nonsense here", ""):
        assert (await memory_site.post("/targets/db-1/trust", {"host_key": wrong})).status_code == 422
    assert (await memory_site.post("/targets/db-1/trust", {"host_key": OTHER_KEY})).json()["host_key"] == OTHER_KEY


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"host": "two hosts"}, "host"),
        ({"host": "-oProxyCommand=x"}, "host"),
        ({"host": "db.example:22"}, "host"),
        ({"host": ""}, "host"),
        ({"user": "a b"}, "user"),
        ({"user": "-l"}, "user"),
        ({"port": 0}, "port"),
        ({"name": "../x"}, "name"),
        ({"max_connections": 0}, "max_connections"),
        ({"directory": "a\nb"}, "directory"),
        ({"credential": {}}, "credential"),
        ({"credential": {"password": VALUE, "private_key": VALUE}}, "credential"),
        ({"credential": {"password": VALUE, "passphrase": VALUE}}, "credential.passphrase"),
        ({"credential": {"password": ""}}, "credential.password"),
        ({"credential": {"passwort": VALUE}}, "credential.passwort"),
        ({"host_key": "nonsense"}, "host_key"),
        ({"kind": "telnet"}, "kind"),
    ],
)
async def test_what_is_no_target_is_refused(memory_site: Site, wrong: dict[str, Any], field: str) -> None:
    said = await memory_site.post("/targets", {**TARGET, **wrong})
    assert (said.status_code, said.json()["field"]) == (422, field), said.text
    assert VALUE not in said.text


async def test_a_probe_that_no_worker_takes_says_so(memory_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "PROBE_PATIENCE", 0.2)
    await make(memory_site)
    said = await memory_site.post("/targets/db-1/probe", {"queue": "scripts"})
    assert said.status_code == 200, said.text
    assert (said.json()["ok"], said.json()["failed"]) == (False, "worker")
    assert "--queue scripts" in said.json()["message"]
    assert (await memory_site.post("/targets/nobody/probe")).status_code == 404


async def test_an_api_without_the_key_doesnt_start(memory_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    await memory_site.app.vault.set_secret("shop", VALUE.encode(), by=None)

    async def locked(vault: object) -> None:
        raise VaultLocked("sealed with the key 1234")

    monkeypatch.setattr("headway.vault.vault.Vault.sealing_key", locked)
    with pytest.raises(VaultLocked):
        await AppApi(memory_site.app, TokenGate("another"), port=0).start()


async def test_an_api_whose_vault_doesnt_lock_doesnt_start(memory_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.vault.envelope._encrypt", lambda lock, content, bound: b"n" * 12 + content)
    monkeypatch.setattr("headway.vault.envelope._decrypt", lambda lock, data, bound, content_id: data[12:])
    with pytest.raises(ConfigurationError, match="self-test"):
        await AppApi(memory_site.app, TokenGate("another"), port=0).start()
