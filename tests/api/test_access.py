"""Who may, and what the table demands of its routes."""

from __future__ import annotations

import pytest
from starlette.responses import Response

from headway.api.call import Call, nothing
from headway.api.routes import all_routes
from headway.api.table import Route, check
from headway.model.errors import ConfigurationError
from tests.api.conftest import Site


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
