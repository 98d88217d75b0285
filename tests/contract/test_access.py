"""Users, tokens, sessions, links and throttling, on every store."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from headway.client import while_busy
from headway.clock import SystemClock
from headway.model.access import AuditFilter, Entry, Fingerprint, Role, Session, Subject, Token, User
from headway.model.errors import NameTaken, TokenNotFound, UserNotFound
from headway.store.scripts.access import NewSession
from tests.contract.house import House

SECRET = Fingerprint.of("a session")
CODE = Fingerprint.of("a code")


def entry(house: House, action: str, thing: str = "user:ann") -> Entry:
    return Entry(id=house.new_id(), actor="test", action=action, object=thing, address="192.0.2.1")


async def add_user(house: House, name: str = "ann", role: Role = Role.OPERATOR, **options: Any) -> User:
    user = User(id=house.new_id(), name=name, role=role, **options)
    return await house.store.create_user(user, entry(house, "user.create"))


async def add_token(house: House, secret: str, name: str = "ci", **options: Any) -> Token:
    token = Token(**{"name": name, "role": Role.OPERATOR, **options})
    return await house.store.create_token(token, Fingerprint.of(secret), entry(house, "token.create"))


def new_session(fingerprint: Fingerprint = SECRET, ttl: float = 3600) -> NewSession:
    return NewSession(fingerprint=fingerprint, ttl=ttl, address="192.0.2.1")


async def test_a_user_is_kept_as_made(house: House) -> None:
    made = await add_user(house, password="$argon2id$…")
    assert made == await house.store.user("ann")
    assert (made.role, made.created_by, made.created_at, made.disabled) == (Role.OPERATOR, "test", house.now, False)
    assert [user.name for user in await house.store.users()] == ["ann"]
    assert await house.store.user("bob") is None


async def test_the_same_user_made_again_is_the_same_and_another_of_its_name_is_refused(house: House) -> None:
    user = User(id=house.new_id(), name="ann", role=Role.VIEWER)
    line = entry(house, "user.create")
    assert await house.store.create_user(user, line) == await house.store.create_user(user, line)
    assert len(await house.store.audit(AuditFilter())) == 1
    with pytest.raises(NameTaken, match="user 'ann'"):
        await add_user(house)


@pytest.mark.parametrize("change", [{"role": Role.VIEWER}, {"password": "other"}, {"disabled": True}])
async def test_a_change_of_a_user_ends_sessions_and_links(house: House, change: dict[str, Any]) -> None:
    await add_user(house)
    subject = Subject(user="ann")
    assert await house.store.open_session(subject, new_session(), entry(house, "session.open"))
    await house.store.add_link(CODE, subject, 900, entry(house, "link.create"))
    changed = await house.store.change_user("ann", change, entry(house, "user.change"))
    [(name, value)] = change.items()
    assert getattr(changed, name) == value
    assert await house.store.session(SECRET) is None
    assert await house.store.redeem_link(CODE, new_session(), entry(house, "session.open")) is None


async def test_a_better_kept_password_ends_nothing(house: House) -> None:
    await add_user(house, password="old")
    await house.store.open_session(Subject(user="ann"), new_session(), entry(house, "session.open"))
    await house.store.rehash_password("ann", "old", "new")
    await house.store.rehash_password("ann", "old", "newer")
    assert (await house.store.users())[0].password == "new"
    assert await house.store.session(SECRET)


async def test_a_deleted_user_is_gone_with_its_sessions(house: House) -> None:
    await add_user(house)
    await house.store.open_session(Subject(user="ann"), new_session(), entry(house, "session.open"))
    await house.store.delete_user("ann", entry(house, "user.delete"))
    assert await house.store.session(SECRET) is None
    with pytest.raises(UserNotFound, match="no user 'ann'"):
        await house.store.delete_user("ann", entry(house, "user.delete"))
    with pytest.raises(UserNotFound):
        await house.store.change_user("ann", {"role": Role.ADMIN}, entry(house, "user.change"))


async def test_a_token_is_found_by_its_fingerprint_until_it_expires(house: House) -> None:
    made = await add_token(
        house, "s3cret", kinds=frozenset({"http"}), queues=frozenset({"b", "a"}), expires_at=house.now + timedelta(60)
    )
    found = await house.store.token(Fingerprint.of("s3cret"))
    assert found == made
    assert found is not None
    assert found.principal.kinds == frozenset({"http"})
    assert found.principal.queues == frozenset({"a", "b"})
    assert await house.store.token(Fingerprint.of("other")) is None
    # The same place, another digest: a fingerprint is compared as a whole.
    assert await house.store.token(Fingerprint(Fingerprint.of("s3cret").lookup, "0" * 64)) is None
    house.clock.advance(60 * 86_400)
    assert await house.store.token(Fingerprint.of("s3cret")) is None


async def test_a_token_of_a_taken_name_is_refused_or_takes_its_place(house: House) -> None:
    await add_token(house, "one")
    await house.store.open_session(Subject(token="ci"), new_session(), entry(house, "session.open"))
    with pytest.raises(NameTaken, match="token 'ci'"):
        await add_token(house, "two")
    other = Token(name="ci", role=Role.ADMIN)
    await house.store.create_token(other, Fingerprint.of("two"), entry(house, "token.create"), replace=True)
    assert await house.store.token(Fingerprint.of("one")) is None
    assert await house.store.session(SECRET) is None
    found = await house.store.token(Fingerprint.of("two"))
    assert found is not None
    assert found.role is Role.ADMIN


async def test_the_use_of_tokens_is_noted(house: House) -> None:
    await add_token(house, "one")
    house.clock.advance(5)
    await house.store.touch_tokens([Fingerprint.of("one").lookup])
    [token] = await house.store.tokens()
    assert token.used_at == house.now


async def test_a_deleted_token_ends_its_sessions(house: House) -> None:
    await add_token(house, "one")
    await house.store.open_session(Subject(token="ci"), new_session(), entry(house, "session.open"))
    await house.store.delete_token("ci", entry(house, "token.delete"))
    assert await house.store.session(SECRET) is None
    assert await house.store.tokens() == []
    with pytest.raises(TokenNotFound, match="no token 'ci'"):
        await house.store.delete_token("ci", entry(house, "token.delete"))


async def test_a_session_has_the_role_of_its_user_and_ends(house: House) -> None:
    await add_user(house)
    opened = await house.store.open_session(Subject(user="ann"), new_session(ttl=60), entry(house, "session.open"))
    assert opened is not None
    assert (opened.principal.name, opened.principal.role) == ("user:ann", Role.OPERATOR)
    assert opened == await house.store.session(SECRET)
    assert await house.store.session(Fingerprint(SECRET.lookup, "0" * 64)) is None
    house.clock.advance(60)
    assert await house.store.session(SECRET) is None


async def test_a_session_that_is_ended_has_ended(house: House) -> None:
    await add_user(house)
    await house.store.open_session(Subject(user="ann"), new_session(), entry(house, "session.open"))
    assert await house.store.end_session(SECRET, entry(house, "session.end"))
    assert not await house.store.end_session(SECRET, entry(house, "session.end"))
    assert await house.store.session(SECRET) is None


async def test_nobody_gets_a_session_who_is_not_there(house: House) -> None:
    assert await house.store.open_session(Subject(user="bob"), new_session(), entry(house, "session.open")) is None
    assert await house.store.audit(AuditFilter()) == []


async def test_a_session_of_a_token_ends_when_the_token_expires(house: House) -> None:
    await add_token(house, "one", expires_at=house.now + timedelta(seconds=30))
    assert await house.store.open_session(Subject(token="ci"), new_session(), entry(house, "session.open"))
    house.clock.advance(31)
    assert await house.store.session(SECRET) is None


async def test_a_login_link_works_once(shared: House) -> None:
    await add_user(shared)
    await shared.store.add_link(CODE, Subject(user="ann"), 900, entry(shared, "link.create"))
    other = await shared.second()
    sessions = [new_session(Fingerprint.of(f"session {number}")) for number in range(6)]

    async def redeem(house: House, session: NewSession) -> Session | None:
        line = entry(house, "session.open")
        return await while_busy(lambda: house.store.redeem_link(CODE, session, line), SystemClock())

    opened = await asyncio.gather(
        *(redeem(house, session) for house, session in zip([shared, other] * 3, sessions, strict=True))
    )
    assert len([session for session in opened if session]) == 1


async def test_a_login_link_lapses(house: House) -> None:
    await add_user(house)
    await house.store.add_link(CODE, Subject(user="ann"), 900, entry(house, "link.create"))
    house.clock.advance(900)
    assert await house.store.redeem_link(CODE, new_session(), entry(house, "session.open")) is None
    with pytest.raises(UserNotFound):
        await house.store.add_link(CODE, Subject(user="bob"), 900, entry(house, "link.create"))
    with pytest.raises(TokenNotFound):
        await house.store.add_link(CODE, Subject(token="bob"), 900, entry(house, "link.create"))


async def test_an_exchange_of_unknown_outcome_may_be_repeated(house: House) -> None:
    await add_user(house)
    await house.store.add_link(CODE, Subject(user="ann"), 900, entry(house, "link.create"))
    line = entry(house, "session.open")
    first = await house.store.redeem_link(CODE, new_session(), line)
    assert first is not None
    assert await house.store.redeem_link(CODE, new_session(), line) == first
    [opened] = await house.store.audit(AuditFilter(action="session.open"))
    assert opened.actor == "user:ann"


async def test_attempts_are_counted_for_all_processes_together(shared: House) -> None:
    limits = {"user:ann": 5, "address:192.0.2.1": 100}
    other = await shared.second()

    async def attempt(house: House) -> float | None:
        return await while_busy(lambda: house.store.count_attempt(limits, 900), SystemClock())

    waits = await asyncio.gather(*(attempt(house) for house in [shared, other] for _ in range(10)))
    assert len([wait for wait in waits if wait is None]) == 5
    assert {wait for wait in waits if wait is not None} == {900.0}
    shared.clock.advance(600)
    assert await shared.store.count_attempt(limits, 900) == 300.0
    shared.clock.advance(300)
    assert await shared.store.count_attempt(limits, 900) is None


async def test_a_success_forgives_the_account_and_is_not_held_against_the_address(house: House) -> None:
    limits = {"user:ann": 2, "address:192.0.2.1": 3}
    for _ in range(2):
        assert await house.store.count_attempt(limits, 900) is None
    await house.store.forgive("user:ann", "address:192.0.2.1")
    assert await house.store.count_attempt(limits, 900) is None
    assert await house.store.count_attempt(limits, 900) is None
    assert await house.store.count_attempt(limits, 900) is not None


async def test_what_has_lapsed_is_forgotten(house: House) -> None:
    await add_user(house)
    await house.store.open_session(Subject(user="ann"), new_session(ttl=60), entry(house, "session.open"))
    await house.store.add_link(CODE, Subject(user="ann"), 60, entry(house, "link.create"))
    await house.store.count_attempt({"user:ann": 1}, 900)
    house.clock.advance(1000)
    await house.store.prune_access(900)
    assert await house.store.count_attempt({"user:ann": 1}, 900) is None
