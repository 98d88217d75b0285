"""Who may use which route: every route, as everybody, compared with what was agreed on in `routes.golden`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from headway import Headway
from headway.api.routes import all_routes
from headway.api.table import Route
from headway.model.access import Role
from tests.api.entrance import Entrance, entrance

GOLDEN = Path(__file__).with_name("routes.golden")
NOBODY = "anonymous"
WHO = (NOBODY, *(role.value for role in Role))
HOW_TO = """
{problem}

Each line of tests/api/routes.golden names a route and who may use it. Think about who should, then put there:

{lines}
"""
ROUTES = [route for route in all_routes() if not route.hidden]
_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")


@pytest.fixture
async def door() -> AsyncIterator[Entrance]:
    async with entrance(Headway("sqlite://")) as made:
        yield made


def title(route: Route) -> str:
    return f"{route.method} {route.full_path}"


def golden() -> dict[str, str]:
    """What was agreed on, by route."""
    lines = [line for line in GOLDEN.read_text().splitlines() if line and not line.startswith("#")]
    return {name.strip(): who.strip() for name, _, who in (line.partition(" : ") for line in lines)}


async def test_every_route_lets_in_whom_it_should_and_nobody_else(door: Entrance) -> None:
    found: dict[str, list[str]] = {title(route): [] for route in ROUTES}
    for who in WHO:
        token = None if who == NOBODY else (await door.token(Role(who))).secret
        async with door.client(token, base_url=door.api.url) as client:
            for route in ROUTES:
                if await lets_in(client, route, who):
                    found[title(route)].append(who)
    told = {name: " ".join(who) for name, who in found.items()}
    agreed = golden()
    differing = [f"{name} : {who}" for name, who in sorted(told.items()) if agreed.get(name) != who]
    assert not differing, HOW_TO.format(
        problem="These routes are new, or let in others than was agreed on:", lines="\n".join(differing)
    )
    gone = sorted(set(agreed) - set(told))
    assert not gone, HOW_TO.format(problem="These routes are no more; remove their lines:", lines="\n".join(gone))


def test_the_page_itself_only_shows() -> None:
    """Its files are the same for everybody; what it shows in them comes by the other routes."""
    assert {route.method for route in all_routes() if route.hidden} <= {"GET"}


def test_what_takes_or_shows_secrets_wants_an_encrypted_line() -> None:
    secret = {title(route) for route in ROUTES if route.secret}
    assert {
        "POST /api/v1/session",
        "POST /api/v1/users",
        "PATCH /api/v1/users/{name}",
        "POST /api/v1/tokens",
        "PUT /api/v1/secrets/{secret}",
        "POST /api/v1/targets",
        "PATCH /api/v1/targets/{target}",
    } <= secret


async def lets_in(client: httpx.AsyncClient, route: Route, who: str) -> bool:
    """Whether the gate opens, whatever comes behind it."""
    path = _PARAMETER.sub(lambda part: str(UUID(int=0)) if part[1].endswith("id") else "nosuch", route.full_path)
    request = client.build_request(route.method, path, json={} if route.body is not None else None)
    answer = await client.send(request, stream=True)
    try:
        assert answer.status_code < 500 or answer.status_code == 503, (title(route), who, answer.status_code)
        if answer.status_code not in (401, 403):
            return True
        problem = await answer.aread()
        # Logging in with nothing is not being turned away at the gate.
        return b"unauthenticated" not in problem and b"forbidden" not in problem
    finally:
        await answer.aclose()
