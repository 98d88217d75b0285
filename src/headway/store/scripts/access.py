"""Users, tokens, sessions, login links and failed logins. Each change and its line in the audit log are one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headway.model.access import Entry, Fingerprint, Principal, Role, Session, Subject, Token, User
from headway.model.errors import NameTaken, TokenNotFound, UserNotFound
from headway.store.scripts import audit
from headway.store.statements import Row, Script, many, one

SHOWN = ("role", "disabled")
"""What the audit log tells of a changed user; of a password, that it was changed."""


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session to be opened."""

    fingerprint: Fingerprint
    ttl: float
    address: str | None = None


def create_user(user: User, entry: Entry) -> Script[User]:
    """Raises NameTaken."""
    yield one(
        "insert_account",
        id=user.id,
        name=user.name,
        role=user.role.value,
        password=user.password,
        by=entry.actor,
    )
    stored = yield from _user(user.name)
    if stored.id != user.id:
        raise NameTaken(user.name, "user")
    yield from audit.record([_with(entry, role=user.role)])
    return stored


def change_user(name: str, changes: Mapping[str, Any], entry: Entry) -> Script[User]:
    """Role, password or disabled. Whatever it is, the user has to log in again."""
    before = yield from _user(name)
    after = msgspec.structs.replace(before, **changes)
    yield one("update_account", name=name, role=after.role.value, password=after.password, disabled=after.disabled)
    yield from _end_user_sessions(name)
    told = {field: [getattr(before, field), getattr(after, field)] for field in SHOWN if field in changes}
    yield from audit.record([_with(entry, **told, **({"password": "changed"} if "password" in changes else {}))])
    return (yield from _user(name))


def rehash(name: str, old: str, new: str) -> Script[None]:
    """The same password, kept in a better way: nobody is logged out for it."""
    user = yield from _user(name)
    if user.password == old:
        yield one("update_account", name=name, role=user.role.value, password=new, disabled=user.disabled)


def delete_user(name: str, entry: Entry) -> Script[None]:
    if not (yield one("get_account", name=name)):
        raise UserNotFound(name)
    yield one("drop_account", name=name)
    yield from _end_user_sessions(name)
    yield from audit.record([entry])


def users() -> Script[list[User]]:
    return [_user_of(row) for row in (yield one("list_accounts"))]


def user(name: str) -> Script[User | None]:
    return next((_user_of(row) for row in (yield one("get_account", name=name))), None)


def create_token(token: Token, fingerprint: Fingerprint, entry: Entry, *, replace: bool) -> Script[Token]:
    """Raises NameTaken, unless it is to take the place of the one that has its name. The same again changes nothing."""
    stored = yield one("get_token", name=token.name)
    if stored and fingerprint.matches(stored[0]["digest"]):
        return _token_of(stored[0])
    if stored and not replace:
        raise NameTaken(token.name, "token")
    if stored:
        yield from _drop_token(token.name)
    yield one(
        "insert_token",
        name=token.name,
        lookup=fingerprint.lookup,
        digest=fingerprint.digest,
        role=token.role.value,
        kinds=_listed(token.kinds),
        queues=_listed(token.queues),
        expires_at=token.expires_at,
        by=entry.actor,
    )
    made = yield one("get_token", name=token.name)
    if not made or not fingerprint.matches(made[0]["digest"]):
        raise NameTaken(token.name, "token")
    limits = {"kinds": token.kinds, "queues": token.queues, "expires_at": token.expires_at}
    told = {name: value for name, value in limits.items() if value is not None}
    yield from audit.record([_with(entry, role=token.role, **told)])
    return _token_of(made[0])


def delete_token(name: str, entry: Entry) -> Script[None]:
    if not (yield one("get_token", name=name)):
        raise TokenNotFound(name)
    yield from _drop_token(name)
    yield from audit.record([entry])


def tokens() -> Script[list[Token]]:
    return [_token_of(row) for row in (yield one("list_tokens"))]


def token(fingerprint: Fingerprint) -> Script[Token | None]:
    """The token that was shown, if it is one and has not expired."""
    rows = yield one("find_token", lookup=fingerprint.lookup)
    return next((_token_of(row) for row in rows if fingerprint.matches(row["digest"])), None)


def touch_tokens(lookups: Sequence[str]) -> Script[None]:
    yield many("touch_tokens", [(lookup,) for lookup in lookups])


def open_session(subject: Subject, new: NewSession, entry: Entry) -> Script[Session | None]:
    """None when whoever it is for is no more."""
    yield one(
        "insert_session",
        lookup=new.fingerprint.lookup,
        digest=new.fingerprint.digest,
        user_name=subject.user,
        token_name=subject.token,
        address=new.address,
        ttl=new.ttl,
    )
    opened = yield from session(new.fingerprint)
    if opened is not None:
        yield from audit.record([entry])
    return opened


def redeem(code: Fingerprint, new: NewSession, entry: Entry) -> Script[Session | None]:
    """A session in exchange for a login link, which is gone then. None for one that is not there (any more)."""
    if opened := (yield from session(new.fingerprint)):
        # Run again, because nobody knew whether the first time counted.
        return opened
    links = [row for row in (yield one("get_link", lookup=code.lookup)) if code.matches(row["digest"])]
    if not links:
        return None
    yield one("drop_link", lookup=code.lookup)
    subject = Subject(user=links[0]["user_name"], token=links[0]["token_name"])
    return (yield from open_session(subject, new, _with(msgspec.structs.replace(entry, actor=named(subject)))))


def add_link(code: Fingerprint, subject: Subject, ttl: float, entry: Entry) -> Script[None]:
    """Raises UserNotFound, TokenNotFound."""
    if subject.user is not None:
        yield from _user(subject.user)
    elif not (yield one("get_token", name=subject.token)):
        raise TokenNotFound(subject.token or "")
    yield one(
        "insert_link",
        lookup=code.lookup,
        digest=code.digest,
        user_name=subject.user,
        token_name=subject.token,
        ttl=ttl,
    )
    yield from audit.record([entry])


def session(fingerprint: Fingerprint) -> Script[Session | None]:
    """The session that was shown, with what its principal may do now; None when it has ended."""
    rows = yield one("find_session", lookup=fingerprint.lookup)
    for row in rows:
        principal = _principal(row)
        if fingerprint.matches(row["digest"]) and principal is not None:
            return Session(principal=principal, expires_at=row["expires_at"])
    return None


def end_session(fingerprint: Fingerprint, entry: Entry) -> Script[bool]:
    """Whether there was one."""
    ended = (yield from session(fingerprint)) is not None
    if ended:
        yield one("drop_session", lookup=fingerprint.lookup)
        yield from audit.record([entry])
    return ended


def count_attempt(limits: Mapping[str, int], window: float) -> Script[float | None]:
    """Count an attempt against each of these subjects; seconds to wait if one of them has had too many."""
    rows = yield many("count_failures", [(subject,) for subject in sorted(limits)], window=window)
    waits = [row["seconds"] for row in rows if row["failures"] > limits[row["subject"]]]
    return max(waits, default=None)


def forgive(account: str, address: str) -> Script[None]:
    """The attempt was a success: it does not count, nor do failures of that account before."""
    yield one("forget_failures", subject=account)
    yield one("uncount_failure", subject=address)


def prune(window: float) -> Script[None]:
    """Forget what has lapsed."""
    yield one("drop_lapsed_sessions")
    yield one("drop_lapsed_links")
    yield one("drop_lapsed_failures", window=window)


def named(subject: Subject) -> str:
    """As the audit log calls it."""
    return f"user:{subject.user}" if subject.user is not None else f"token:{subject.token}"


def _drop_token(name: str) -> Script[None]:
    yield one("drop_token", name=name)
    yield one("drop_token_sessions", name=name)
    yield one("drop_token_links", name=name)


def _end_user_sessions(name: str) -> Script[None]:
    yield one("drop_user_sessions", name=name)
    yield one("drop_user_links", name=name)


def _user(name: str) -> Script[User]:
    found = yield from user(name)
    if found is None:
        raise UserNotFound(name)
    return found


def _user_of(row: Row) -> User:
    fields = {name: row[name] for name in User.__struct_fields__}
    return User(**{**fields, "role": Role(row["role"]), "disabled": bool(row["disabled"])})


def _token_of(row: Row) -> Token:
    fields = {name: row[name] for name in Token.__struct_fields__}
    limits = {"kinds": _unlisted(row["kinds"]), "queues": _unlisted(row["queues"])}
    return Token(**{**fields, **limits, "role": Role(row["role"])})


def _principal(row: Row) -> Principal | None:
    if row["user_role"] is not None:
        return Principal(name=f"user:{row['user_name']}", role=Role(row["user_role"]))
    if row["token_role"] is not None:
        return Principal(
            name=f"token:{row['token_name']}",
            role=Role(row["token_role"]),
            kinds=_unlisted(row["kinds"]),
            queues=_unlisted(row["queues"]),
        )
    return None


def _with(entry: Entry, **told: Any) -> Entry:
    return msgspec.structs.replace(entry, detail={**entry.detail, **told})


def _listed(names: frozenset[str] | None) -> str | None:
    return None if names is None else msgspec.json.encode(sorted(names)).decode()


def _unlisted(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(msgspec.json.decode(text, type=list[str]))
