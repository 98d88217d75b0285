"""The way into the compose stack: the real proxy with its shipped settings, before a real API."""

from __future__ import annotations

import os
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from headway.access.origin import Origin, Proxies
from headway.bench.server import free_port
from tests.api.conftest import TOKEN
from tests.api.entrance import PASSWORD, SAME
from tests.api.test_processes import client
from tests.flow.processes import Processes
from tests.flow.waiting import block_until

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
ANN = {"name": "ann", "role": "viewer", "password": PASSWORD}


def edge() -> str:
    """The network in which the proxy speaks to the API, unless somebody names another."""
    [config] = yaml.safe_load((ROOT / "compose.yaml").read_text())["networks"]["edge"]["ipam"]["config"]
    variable, _, subnet = config["subnet"].removeprefix("${").removesuffix("}").partition(":-")
    assert variable == "HEADWAY_EDGE"
    return str(subnet)


@contextmanager
def caddy(directory: Path, upstream: str) -> Iterator[httpx.Client]:
    """A client of the proxy that trusts its authority and nobody else."""
    port = free_port()
    environment = {**os.environ, "PROXY_PORT": str(port), "PROXY_TO": upstream, "HOME": str(directory)}
    environment |= {"XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
    command = ["caddy", "run", "--config", str(ROOT / "deploy/caddy/Caddyfile"), "--adapter", "caddyfile"]
    with (directory / "caddy.log").open("wb") as log:
        running = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        authority = directory / "caddy/pki/authorities/local/root.crt"
        block_until(authority.exists, "the proxy's authority", PATIENCE)
        trust = ssl.create_default_context(cafile=str(authority))
        with httpx.Client(
            base_url=f"https://localhost:{port}/api/v1", verify=trust, trust_env=False, timeout=60
        ) as made:
            block_until(lambda: _answers(made), "the proxy to answer", PATIENCE)
            yield made
    finally:
        running.terminate()
        running.wait(PATIENCE)


def _answers(through: httpx.Client) -> Any:
    try:
        return through.get("/session").status_code == 401
    except httpx.TransportError:
        return False


def test_people_log_in_through_the_proxy_and_their_cookie_is_for_tls_only(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        trusting = {"HEADWAY_TRUSTED_PROXIES": "127.0.0.1,::1", "HEADWAY_ADMIN_TOKEN": TOKEN}
        store = f"sqlite:///{tmp_path / 'headway.db'}"
        assert processes.headway("migrate", "--store", store).ended() == 0
        api = processes.headway("api", "--store", store, **trusting)
        with client(api) as direct, caddy(tmp_path, f"127.0.0.1:{direct.base_url.port}") as through:
            admin = {"Authorization": f"Bearer {TOKEN}"}
            assert through.post("/users", json=ANN, headers=admin).status_code == 201
            login = {"name": "ann", "password": PASSWORD}
            opened = through.post("/session", json=login, headers=SAME)
            assert opened.headers["set-cookie"].startswith("__Host-")
            assert through.get("/session", headers=SAME).json()["name"] == "user:ann"
            # What a caller says of itself doesn't pass the proxy.
            forged = {**admin, "X-Forwarded-For": "198.51.100.1", "X-Forwarded-Proto": "http"}
            assert through.post("/users", json={**ANN, "name": "bob"}, headers=forged).status_code == 201
            lines = direct.get("/api/v1/audit", params={"action": "users.create"}).json()["items"]
            assert not [line for line in lines if line["address"] == "198.51.100.1"]
        assert api.stop() == 0


def test_within_the_stack_only_the_proxy_may_speak_for_others() -> None:
    proxies = Proxies([edge()])
    by_proxy = {"x-forwarded-for": "172.16.254.1", "x-forwarded-proto": "https"}
    assert proxies.origin("172.16.254.3", "http", by_proxy) == Origin("172.16.254.1", secure=True, encrypted=True)
    # A container of the stack's other network, and the gateway by which Docker hands requests of the host on.
    for peer in ("172.18.0.7", "172.18.0.1"):
        assert not proxies.origin(peer, "http", by_proxy).secure
        assert not proxies.origin(peer, "http", {}).secure
