"""Who may, and what the table demands of its routes."""

from __future__ import annotations

import pytest
from starlette.responses import Response

from headway import Headway
from headway.api.call import Call, nothing
from headway.api.routes import all_routes
from headway.api.table import Route, check
from headway.model.access import Role
from headway.model.errors import ConfigurationError
from tests.api.conftest import Site
from tests.api.entrance import entrance


async def test_without_a_token_only_public_routes_answer(memory_site: Site) -> None:
    for token in ("", "Bearer wrong", "Basic eDp5"):
        answer = await memory_site.get("/jobs", headers={"Authorization": token})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["code"] == "unauthenticated"
    assert (await memory_site.client.get("/healthz", headers={"Authorization": ""})).json() == {"status": "ok"}


def test_a_route_without_a_permission_stops_the_process() -> None:
    async def handler(_call: Call) -> Response:
        return nothing()

    with pytest.raises(ConfigurationError, match="GET /api/v1/secretive declares no permission"):
        check([Route(method="GET", path="/secretive", handler=handler, summary="Forgotten")])
    check(all_routes())


async def test_the_flood_of_one_token_is_held_back_and_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_SUBMIT_RATE", "3/h")
    body = {"kind": "call", "function": "nobody.knows"}
    async with entrance(Headway("sqlite://")) as door:
        flood, other = [door.client((await door.token(Role.OPERATOR, name)).secret) for name in ("flood", "other")]
        async with flood, other:
            assert (await flood.post("/jobs/batch", json={"jobs": [body] * 2})).status_code == 201
            assert (await flood.post("/jobs", json=body)).status_code == 201
            for path, asked in (("/jobs", body), ("/jobs/batch", {"jobs": [body]})):
                refused = await flood.post(path, json=asked)
                assert (refused.status_code, refused.json()["code"]) == (429, "throttled"), refused.text
                assert int(refused.headers["retry-after"]) > 600
            assert (await flood.get("/jobs")).status_code == 200
            assert (await other.post("/jobs", json=body)).status_code == 201
