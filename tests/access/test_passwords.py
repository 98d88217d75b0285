"""Passwords are kept by argon2, compared in even time, and kept better when we know how."""

from __future__ import annotations

from typing import Literal

import pytest
from argon2 import PasswordHasher

from headway.access.passwords import LONGEST, SHORTEST, Passwords, default_hasher
from headway.model.errors import InvalidRequest
from tests.api.entrance import PASSWORD, QUICK


async def test_a_password_is_known_again_and_never_kept_as_it_is() -> None:
    passwords = Passwords(QUICK)
    kept = await passwords.hash(PASSWORD)
    assert kept.startswith("$argon2id$")
    assert PASSWORD not in kept
    assert kept != await passwords.hash(PASSWORD)
    assert await passwords.verify(kept, PASSWORD)
    assert not await passwords.verify(kept, "other")
    assert not await passwords.verify("no hash at all", PASSWORD)


async def test_where_there_is_no_password_one_is_compared_all_the_same() -> None:
    class Counting(PasswordHasher):
        compared = 0

        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 - the library's name
            type(self).compared += 1
            return super().verify(hash, password)

    passwords = Passwords(Counting(time_cost=1, memory_cost=8, parallelism=1))
    assert not await passwords.verify(None, PASSWORD)
    assert Counting.compared == 1


async def test_a_hash_that_is_too_quick_is_outdated() -> None:
    kept = await Passwords(QUICK).hash(PASSWORD)
    assert Passwords(default_hasher()).outdated(kept)
    assert not Passwords(QUICK).outdated(kept)


@pytest.mark.parametrize("password", ["", "x" * (SHORTEST - 1), "x" * (LONGEST + 1)])
async def test_a_password_too_short_or_too_long_is_refused(password: str) -> None:
    with pytest.raises(InvalidRequest, match="characters"):
        await Passwords(QUICK).hash(password)
