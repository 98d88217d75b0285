"""Who calls: the seam to access control."""

from __future__ import annotations

import hmac
from typing import Protocol

from headway.access.doorkeeper import Doorkeeper
from headway.access.origin import Origin
from headway.api.call import Call
from headway.model.access import Principal, Role
from headway.model.errors import CrossSite, NotIdentified

BEARER = "bearer "
COOKIE = "headway_session"
OWN_SITE = ("same-origin", "none")
"""What browsers say of requests by our own page, and of addresses that somebody typed."""


class Gatekeeper(Protocol):
    """Turns what a request brings (a token, a session) into the principal who it is."""

    async def identify(self, call: Call) -> Principal:
        """Raises NotIdentified if nobody is shown, or nobody known."""


class AccessGate:
    """Tokens, and sessions of browsers, as the store knows them."""

    def __init__(self, doorkeeper: Doorkeeper) -> None:
        self._doorkeeper = doorkeeper

    async def identify(self, call: Call) -> Principal:
        if "authorization" in call.headers:
            return await self._doorkeeper.by_token(bearer_token(call), call.origin.address)
        secret = session_secret(call)
        if secret is None:
            raise NotIdentified("say who you are: Authorization: Bearer <token>, or log in")
        refuse_cross_site(call)
        return await self._doorkeeper.by_session(secret)


class TokenGate:
    """One token, one administrator: for automation and for tests."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def identify(self, call: Call) -> Principal:
        if hmac.compare_digest(bearer_token(call).encode(), self._token):
            return Principal(name="token:admin", role=Role.ADMIN)
        raise NotIdentified("this token is not known, or no longer: ask an administrator for a new one")


def bearer_token(call: Call) -> str:
    """The token of `Authorization: Bearer <token>`. Raises NotIdentified."""
    given = call.headers.get("authorization", "")
    if given[: len(BEARER)].lower() != BEARER:
        raise NotIdentified("say who you are: Authorization: Bearer <token>")
    return given[len(BEARER) :].strip()


def cookie_name(origin: Origin) -> str:
    """Over TLS a name that browsers accept from this very host only, and send encrypted only."""
    return f"__Host-{COOKIE}" if origin.encrypted else COOKIE


def session_secret(call: Call) -> str | None:
    """What the browser's cookie says."""
    return call.request.cookies.get(cookie_name(call.origin))


def refuse_cross_site(call: Call) -> None:
    """Refuse what another site's page made a browser send: browsers tell, and what is no browser has no cookie."""
    site = call.headers.get("sec-fetch-site")
    if site is not None:
        if site not in OWN_SITE:
            raise CrossSite
        return
    source = call.headers.get("origin")
    if source is not None and source.partition("://")[2] != call.headers.get("host"):
        raise CrossSite
