"""A service whose own access control decides, and people who come to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from argon2 import PasswordHasher

from headway import Headway
from headway.access.managing import Issued, issue_token
from headway.api.process import AppApi, Terms
from headway.model.access import Caller, Role, Token

PASSWORD = "correct horse battery"
SAME = {"Sec-Fetch-Site": "same-origin"}
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""As safe as a test needs it."""
TEST = Caller("test")


class Entrance:
    """A running API; clients come with a token, with a session, or with nothing."""

    def __init__(self, app: Headway, api: AppApi) -> None:
        self.app = app
        self.api = api
        self.reach = app.client.call_patiently

    def client(self, token: str | None = None, **rest: Any) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        base_url = f"{self.api.url}/api/v1"
        options = {"base_url": base_url, "headers": headers, "trust_env": False, "timeout": 60, **rest}
        return httpx.AsyncClient(**options)

    async def token(self, role: Role = Role.ADMIN, name: str | None = None, **limits: Any) -> Issued:
        return await issue_token(self.reach, Token(name=name or role.value, role=role, **limits), TEST)

    async def admin(self) -> httpx.AsyncClient:
        return self.client((await self.token()).secret)


@asynccontextmanager
async def entrance(app: Headway, **terms: Any) -> AsyncIterator[Entrance]:
    api = AppApi(app, terms=Terms(**{"port": 0, **terms}))
    async with api:
        yield Entrance(app, api)
    await app.aclose()
