"""Passwords, kept by argon2. Its home: nothing else knows the library."""

from __future__ import annotations

import asyncio
import secrets
from functools import cache
from typing import TYPE_CHECKING

from headway.model.errors import ConfigurationError, InvalidRequest

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST = 10
LONGEST = 1024
"""Characters. The upper bound is for our own sake: whoever likes may send us work."""
AT_ONCE = 2
"""Passwords looked at together: each takes 64 MiB and a core for a while."""


class Passwords:
    """Hashes and compares, on threads: the loop has other things to do."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or default_hasher()
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def hash(self, password: str) -> str:
        check(password)
        async with self._turn:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def verify(self, kept: str | None, password: str) -> bool:
        """Whether it is the one. Takes the same time where there is none to compare with."""
        async with self._turn:
            same = await asyncio.to_thread(self._same, kept or _decoy(self._hasher), password)
        return same and kept is not None

    def outdated(self, kept: str) -> bool:
        """Whether it should be kept in a better way now."""
        return self._hasher.check_needs_rehash(kept)

    def _same(self, kept: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            return self._hasher.verify(kept, password)
        except (VerificationError, InvalidHashError):
            return False


def default_hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ModuleNotFoundError:
        raise ConfigurationError("passwords need the package 'argon2-cffi': pip install 'headway[server]'") from None
    return PasswordHasher()


def check(password: str) -> None:
    """Whether it may be somebody's. Raises InvalidRequest."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidRequest(f"a password has {SHORTEST} to {LONGEST:,} characters", field="password")


@cache
def _decoy(hasher: PasswordHasher) -> str:
    return hasher.hash(secrets.token_urlsafe())
