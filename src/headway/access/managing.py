"""Making and changing users and tokens, for the API and the command line alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from uuid_utils.compat import uuid7

from headway.access.passwords import Passwords
from headway.access.secrets import new_token
from headway.access.trail import Reach, entry
from headway.model.access import Caller, Fingerprint, Role, Token, User
from headway.model.errors import InvalidRequest

NAME = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$"
"""Of users and tokens: what reads well in logs and needs no escaping in addresses."""


class Issued(msgspec.Struct, frozen=True):
    """A new token, and its secret, which nobody can be shown again."""

    token: Token
    secret: str


def check_name(name: str) -> None:
    """Raises InvalidRequest."""
    if not re.match(NAME, name):
        raise InvalidRequest(
            f"{name!r} can't be a name: use up to 100 letters, digits and . _ @ -, a letter or digit first",
            field="name",
        )


async def create_user(reach: Reach, name: str, role: Role, password: str | None, caller: Caller) -> User:
    """Raises NameTaken, InvalidRequest."""
    kept = None if password is None else await Passwords().hash(password)
    user = User(id=uuid7(), name=name, role=role, password=kept)
    line = entry(caller, "users.create", f"users/{name}")
    return await reach(lambda store: store.create_user(user, line))


async def change_user(reach: Reach, name: str, changes: Mapping[str, Any], caller: Caller) -> User:
    """Role, password (None: none any more) or disabled. Raises UserNotFound, InvalidRequest."""
    if not changes:
        raise InvalidRequest("nothing to change is named: role, password or disabled")
    kept = dict(changes)
    if kept.get("password") is not None:
        kept["password"] = await Passwords().hash(kept["password"])
    line = entry(caller, "users.change", f"users/{name}")
    return await reach(lambda store: store.change_user(name, kept, line))


async def issue_token(reach: Reach, token: Token, caller: Caller) -> Issued:
    """Raises NameTaken."""
    secret = new_token()
    line = entry(caller, "tokens.create", f"tokens/{token.name}")
    made = await reach(lambda store: store.create_token(token, Fingerprint.of(secret), line))
    return Issued(made, secret)
