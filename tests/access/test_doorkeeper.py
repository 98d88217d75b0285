"""Who somebody is: remembered for a moment, and never longer."""

from __future__ import annotations

import asyncio
import hmac
import logging

import pytest

from headway.access.doorkeeper import FRESH, LOOK_EVERY, PER_ACCOUNT, PER_ADDRESS, WRONG_TOKENS, Doorkeeper
from headway.access.managing import create_user, issue_token
from headway.access.passwords import Passwords
from headway.access.trail import entry
from headway.model.access import LOGIN_WINDOW, Caller, Fingerprint, Role, Token
from headway.model.errors import NotIdentified, Throttled
from tests.access.conftest import Desk
from tests.api.entrance import PASSWORD, QUICK

TEST = Caller("test", "192.0.2.1")
HERE = "192.0.2.1"


@pytest.fixture(autouse=True)
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.access.passwords.default_hasher", lambda: QUICK)


def doorkeeper(desk: Desk) -> Doorkeeper:
    return Doorkeeper(desk.reach, desk.clock, Passwords(QUICK))


async def test_a_token_is_remembered_for_a_moment_and_forgotten_within_five_seconds(desk: Desk) -> None:
    keeper = doorkeeper(desk)
    secret = (await issue_token(desk.reach, Token(name="ci", role=Role.VIEWER), TEST)).secret
    assert (await keeper.by_token(secret, HERE)).name == "token:ci"
    asked = desk.asked
    await asyncio.gather(*(keeper.by_token(secret, HERE) for _ in range(100)))
    assert desk.asked == asked
    await desk.store.delete_token("ci", entry(TEST, "tokens.delete", "tokens/ci"))
    assert FRESH <= 5
    desk.clock.advance(FRESH)
    with pytest.raises(NotIdentified, match="not known, or no longer"):
        await keeper.by_token(secret, HERE)


async def test_many_who_come_at_once_wait_for_one_answer(desk: Desk) -> None:
    keeper = doorkeeper(desk)
    secret = (await issue_token(desk.reach, Token(name="ci", role=Role.VIEWER), TEST)).secret
    asked = desk.asked
    await asyncio.gather(*(keeper.by_token(secret, HERE) for _ in range(50)))
    # The token itself, and that it was used.
    assert desk.asked == asked + 2


async def test_whoever_tries_tokens_has_to_wait_and_those_who_have_one_don_t(desk: Desk) -> None:
    keeper = doorkeeper(desk)
    secret = (await issue_token(desk.reach, Token(name="ci", role=Role.VIEWER), TEST)).secret
    await keeper.by_token(secret, HERE)
    for number in range(WRONG_TOKENS):
        with pytest.raises(NotIdentified):
            await keeper.by_token(f"guess {number}", HERE)
    with pytest.raises(Throttled, match="too many wrong tokens") as refused:
        await keeper.by_token("one more", HERE)
    assert 0 < refused.value.wait <= LOGIN_WINDOW
    asked = desk.asked
    with pytest.raises(Throttled):
        await keeper.by_token("and another", HERE)
    assert desk.asked == asked, "whoever is shut out costs the store nothing"
    keeper.forget()
    assert (await keeper.by_token(secret, HERE)).name == "token:ci"
    new = (await issue_token(desk.reach, Token(name="new", role=Role.VIEWER), TEST)).secret
    with pytest.raises(Throttled):
        await keeper.by_token(new, HERE)
    desk.clock.advance(LOOK_EVERY)
    assert (await keeper.by_token(new, HERE)).name == "token:new"
    assert (await keeper.by_token(secret, "192.0.2.77")).name == "token:ci"
    with pytest.raises(NotIdentified):
        await keeper.by_token("from elsewhere", "192.0.2.77")
    with pytest.raises(Throttled):
        await doorkeeper(desk).by_token("at another process", HERE)
    desk.clock.advance(LOGIN_WINDOW + 1)
    with pytest.raises(NotIdentified):
        await keeper.by_token("later", HERE)


async def test_wrong_tokens_shut_nobody_out_of_logging_in(desk: Desk) -> None:
    keeper = doorkeeper(desk)
    await create_user(desk.reach, "ann", Role.VIEWER, PASSWORD, TEST)
    for _ in range(WRONG_TOKENS + 1):
        with pytest.raises((NotIdentified, Throttled)):
            await keeper.by_token("an old token", HERE)
    assert (await keeper.log_in("ann", PASSWORD, HERE)).secret


async def test_a_session_ends_within_five_seconds_of_a_change(desk: Desk) -> None:
    keeper = doorkeeper(desk)
    await create_user(desk.reach, "ann", Role.ADMIN, PASSWORD, TEST)
    opened = await keeper.log_in("ann", PASSWORD, HERE)
    assert (await keeper.by_session(opened.secret)).role is Role.ADMIN
    await desk.store.change_user("ann", {"role": Role.VIEWER}, entry(TEST, "users.change", "users/ann"))
    desk.clock.advance(FRESH)
    with pytest.raises(NotIdentified, match="session has ended"):
        await keeper.by_session(opened.secret)


async def test_after_too_many_failures_even_the_right_password_has_to_wait(desk: Desk) -> None:
    keeper = doorkeeper(desk)
    await create_user(desk.reach, "ann", Role.VIEWER, PASSWORD, TEST)
    for _ in range(PER_ACCOUNT):
        with pytest.raises(NotIdentified):
            await keeper.log_in("ann", "wrong", HERE)
    with pytest.raises(Throttled) as refused:
        await keeper.log_in("ann", PASSWORD, "192.0.2.99")
    assert 0 < refused.value.wait <= LOGIN_WINDOW
    desk.clock.advance(LOGIN_WINDOW)
    assert (await keeper.log_in("ann", PASSWORD, HERE)).session.principal.name == "user:ann"


async def test_who_logs_in_often_is_not_throttled(desk: Desk) -> None:
    keeper = doorkeeper(desk)
    await create_user(desk.reach, "ann", Role.VIEWER, PASSWORD, TEST)
    for _ in range(PER_ADDRESS + 5):
        await keeper.log_in("ann", PASSWORD, HERE)


async def test_a_password_kept_in_an_old_way_is_kept_in_the_new_way_after_a_login(desk: Desk) -> None:
    from argon2 import PasswordHasher

    await create_user(desk.reach, "ann", Role.VIEWER, PASSWORD, TEST)
    [before] = await desk.store.users()
    better = Passwords(PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
    await Doorkeeper(desk.reach, desk.clock, better).log_in("ann", PASSWORD, HERE)
    [after] = await desk.store.users()
    assert after.password != before.password
    assert after.password is not None
    assert not better.outdated(after.password)


async def test_secrets_are_never_logged(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    keeper = doorkeeper(desk)
    await create_user(desk.reach, "ann", Role.VIEWER, PASSWORD, TEST)
    opened = await keeper.log_in("ann", PASSWORD, HERE)
    for attempt in (keeper.log_in("ann", "canary-password", HERE), keeper.exchange_token("canary-token", HERE)):
        with pytest.raises(NotIdentified):
            await attempt
    with pytest.raises(NotIdentified):
        await keeper.redeem("canary-code", HERE)
    told = caplog.text
    assert "login_failed" in told
    assert all(secret not in told for secret in (opened.secret, PASSWORD, "canary"))


async def test_fingerprints_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[str, str]] = []

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    mine, other = Fingerprint.of("mine"), Fingerprint.of("other")
    assert mine.matches(mine.digest)
    assert not mine.matches(other.digest)
    assert compared == [(mine.digest, mine.digest), (mine.digest, other.digest)]
