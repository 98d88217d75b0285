"""Who somebody is: by a token they show, by a session they have, or by logging in."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

import msgspec

from headway.access.origin import throttled_as
from headway.access.passwords import Passwords
from headway.access.secrets import new_secret
from headway.access.trail import Reach, entry
from headway.clock import Clock
from headway.model.access import LOGIN_WINDOW, Caller, Fingerprint, Principal, Session, Subject
from headway.model.errors import NotIdentified, Throttled
from headway.observe.logs import get_logger
from headway.store.scripts.access import NewSession

FRESH = 1.0
"""Seconds for which an answer is remembered: so long may a token or a session outlive its end. Streams look every three
seconds, and all must be over within five."""
TOUCH_EVERY = 60.0
"""Seconds after which the use of a token is noted again."""
REMEMBERED = 10_000
SESSION_TTL = 12 * 3600.0
PER_ACCOUNT = 10
PER_ADDRESS = 50
"""Failed logins within `LOGIN_WINDOW`; the next is refused until it is over."""
WRONG_TOKENS = 100
"""The same of tokens that nobody knows. They are counted apart: a program with an old token locks nobody out."""
LOOK_EVERY = 1.0
"""Seconds after which a new token is looked at all the same: a good one from the same address gets in at last."""

log = get_logger("headway.access")


class Opened(msgspec.Struct, frozen=True):
    """A new session, and the secret that its browser is to show."""

    secret: str
    session: Session


class _Known(msgspec.Struct, frozen=True):
    principal: Principal
    read_at: float


class _Shut(msgspec.Struct):
    until: float
    look_at: float
    """When one of the tokens that come meanwhile is looked at."""


class Doorkeeper:
    """Knows tokens and sessions by asking the store, not more often than every `FRESH` seconds for each."""

    def __init__(self, reach: Reach, clock: Clock, passwords: Passwords | None = None) -> None:
        self._reach = reach
        self._clock = clock
        self._passwords = passwords or Passwords()
        self._known: dict[Fingerprint, _Known] = {}
        self._asking: dict[Fingerprint, asyncio.Future[Principal | None]] = {}
        self._touched: dict[str, float] = {}
        self._shut: dict[str, _Shut] = {}
        """Where too many wrong tokens have come from."""

    async def by_token(self, token: str, address: str) -> Principal:
        """Raises NotIdentified, and Throttled after too many wrong ones. A token that was good a moment ago is not
        held up by others from the same address, and costs nothing."""
        fingerprint = Fingerprint.of(token)
        if (fresh := self._fresh(fingerprint)) is not None:
            return fresh
        subject = f"token {throttled_as(address)}"
        if fingerprint not in self._known:
            self._refuse_shut(subject)
        principal = await self._recall(fingerprint, self._read_token)
        if principal is None:
            await self._count_wrong(subject)
            raise NotIdentified("this token is not known, or no longer: ask an administrator for a new one")
        return principal

    async def by_session(self, secret: str) -> Principal:
        """Raises NotIdentified."""
        principal = await self._recall(Fingerprint.of(secret), self._read_session)
        if principal is None:
            raise NotIdentified("your session has ended: log in again")
        return principal

    async def log_in(self, name: str, password: str, address: str) -> Opened:
        """By name and password. Raises NotIdentified, and Throttled after too many failures."""
        await self._count(throttled_as(address), PER_ADDRESS)
        await self._count(f"user:{name}", PER_ACCOUNT)
        user = await self._reach(lambda store: store.user(name))
        usable = user is not None and not user.disabled
        if not await self._passwords.verify(user.password if user and usable else None, password):
            raise _failed("name or password is wrong", name, address)
        assert user is not None
        assert user.password is not None
        await self._reach(lambda store: store.forgive(f"user:{name}", throttled_as(address)))
        if self._passwords.outdated(user.password):
            old, new = user.password, await self._passwords.hash(password)
            await self._reach(lambda store: store.rehash_password(name, old, new))
        return await self._open(Subject(user=name), address, "password")

    async def exchange_token(self, token: str, address: str) -> Opened:
        """A session for a token that somebody pastes into the page."""
        await self._count(throttled_as(address), PER_ADDRESS)
        found = await self._reach(lambda store: store.token(Fingerprint.of(token)))
        if found is None:
            raise _failed("this token is not known, or no longer", "token", address)
        await self._reach(lambda store: store.forgive(f"token:{found.name}", throttled_as(address)))
        return await self._open(Subject(token=found.name), address, "token")

    async def redeem(self, code: str, address: str) -> Opened:
        """A session for a login link, once."""
        await self._count(throttled_as(address), PER_ADDRESS)
        secret, line = new_secret(), entry(Caller("link", address), "sessions.create", "sessions", by="link")
        new = _new(secret, address)
        session = await self._reach(lambda store: store.redeem_link(Fingerprint.of(code), new, line))
        if session is None:
            raise _failed("this login link was used already, or is too old: make a new one", "link", address)
        await self._reach(lambda store: store.forgive("link", throttled_as(address)))
        return Opened(secret, session)

    async def log_out(self, secret: str, caller: Caller) -> None:
        fingerprint = Fingerprint.of(secret)
        self._known.pop(fingerprint, None)
        line = entry(caller, "sessions.delete", "sessions")
        await self._reach(lambda store: store.end_session(fingerprint, line))

    def forget(self) -> None:
        """Ask the store anew for everybody: something was changed here."""
        self._known = {who: _Known(known.principal, -math.inf) for who, known in self._known.items()}

    async def _open(self, subject: Subject, address: str, by: str) -> Opened:
        secret = new_secret()
        name = f"user:{subject.user}" if subject.user is not None else f"token:{subject.token}"
        line = entry(Caller(name, address), "sessions.create", "sessions", by=by)
        session = await self._reach(lambda store: store.open_session(subject, _new(secret, address), line))
        if session is None:
            raise NotIdentified("you have just lost your access: ask an administrator")
        return Opened(secret, session)

    async def _count(self, subject: str, limit: int) -> None:
        wait = await self._reach(lambda store: store.count_attempt({subject: limit}, LOGIN_WINDOW))
        if wait is not None:
            log.warning("access.throttled", subject=subject, seconds=round(wait))
            raise Throttled("too many failed attempts to log in: try again later, or use a login link", wait)

    async def _count_wrong(self, subject: str) -> None:
        """All processes count together; each remembers by itself who has had too many."""
        wait = await self._reach(lambda store: store.count_attempt({subject: WRONG_TOKENS}, LOGIN_WINDOW))
        if wait is not None:
            log.warning("access.throttled", subject=subject, seconds=round(wait))
            if len(self._shut) >= REMEMBERED:
                self._shut.clear()
            now = self._clock.monotonic()
            self._shut[subject] = _Shut(now + wait, now + LOOK_EVERY)
            self._refuse_shut(subject)

    def _refuse_shut(self, subject: str) -> None:
        shut, now = self._shut.get(subject), self._clock.monotonic()
        if shut is None:
            return
        if now >= shut.until:
            del self._shut[subject]
        elif now >= shut.look_at:
            shut.look_at = now + LOOK_EVERY
        else:
            raise Throttled(
                "too many wrong tokens have come from this address: use one that is known, or try again later",
                shut.until - now,
            )

    def _fresh(self, fingerprint: Fingerprint) -> Principal | None:
        """Who it was a moment ago."""
        known = self._known.get(fingerprint)
        return known.principal if known is not None and self._clock.monotonic() - known.read_at < FRESH else None

    async def _recall(
        self, fingerprint: Fingerprint, read: Callable[[Fingerprint], Awaitable[Principal | None]]
    ) -> Principal | None:
        if (fresh := self._fresh(fingerprint)) is not None:
            return fresh
        # Those who come meanwhile wait for the same answer.
        asking = self._asking.get(fingerprint)
        if asking is None:
            asking = self._asking[fingerprint] = asyncio.ensure_future(self._ask(fingerprint, read))
            asking.add_done_callback(lambda _: self._asking.pop(fingerprint))
        return await asyncio.shield(asking)

    async def _ask(
        self, fingerprint: Fingerprint, read: Callable[[Fingerprint], Awaitable[Principal | None]]
    ) -> Principal | None:
        # Remembered as of when we asked, not of when we were told.
        began = self._clock.monotonic()
        principal = await read(fingerprint)
        if principal is None:
            self._known.pop(fingerprint, None)
            return None
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[fingerprint] = _Known(principal, began)
        return principal

    async def _read_session(self, fingerprint: Fingerprint) -> Principal | None:
        session = await self._reach(lambda store: store.session(fingerprint))
        return session.principal if session else None

    async def _read_token(self, fingerprint: Fingerprint) -> Principal | None:
        token = await self._reach(lambda store: store.token(fingerprint))
        if token is None:
            return None
        now, lookup = self._clock.monotonic(), fingerprint.lookup
        if now - self._touched.get(lookup, -TOUCH_EVERY) >= TOUCH_EVERY:
            self._touched[lookup] = now
            await self._reach(lambda store: store.touch_tokens([lookup]))
        return token.principal


def _new(secret: str, address: str) -> NewSession:
    return NewSession(fingerprint=Fingerprint.of(secret), ttl=SESSION_TTL, address=address)


def _failed(words: str, who: str, address: str) -> NotIdentified:
    log.warning("access.login_failed", name=who, address=address)
    return NotIdentified(words)
