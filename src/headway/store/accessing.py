"""The part of a store over SQL that knows who may do what, and who did what: `Access` of the contract, by scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.model.access import AuditFilter, AuditLine, Entry, Fingerprint, Session, Subject, Token, User
from headway.store.driver import Driver, Lane
from headway.store.scripts import access, audit
from headway.store.scripts.access import NewSession
from headway.store.scripts.audit import Ends


class SqlAccess:
    """Access through a driver. Changes go by the lane of keys: they may wait for each other, and no worker waits."""

    _driver: Driver

    async def create_user(self, user: User, entry: Entry) -> User:
        return await self._driver.run(lambda: access.create_user(user, entry), Lane.KEYED)

    async def change_user(self, name: str, changes: Mapping[str, Any], entry: Entry) -> User:
        return await self._driver.run(lambda: access.change_user(name, changes, entry), Lane.KEYED)

    async def rehash_password(self, name: str, old: str, new: str) -> None:
        await self._driver.run(lambda: access.rehash(name, old, new), Lane.KEYED)

    async def delete_user(self, name: str, entry: Entry) -> None:
        await self._driver.run(lambda: access.delete_user(name, entry), Lane.KEYED)

    async def users(self) -> list[User]:
        return await self._driver.run(access.users, Lane.READ, single=True)

    async def user(self, name: str) -> User | None:
        return await self._driver.run(lambda: access.user(name), Lane.READ, single=True)

    async def create_token(
        self, token: Token, fingerprint: Fingerprint, entry: Entry, *, replace: bool = False
    ) -> Token:
        return await self._driver.run(
            lambda: access.create_token(token, fingerprint, entry, replace=replace), Lane.KEYED
        )

    async def delete_token(self, name: str, entry: Entry) -> None:
        await self._driver.run(lambda: access.delete_token(name, entry), Lane.KEYED)

    async def tokens(self) -> list[Token]:
        return await self._driver.run(access.tokens, Lane.READ, single=True)

    async def token(self, fingerprint: Fingerprint) -> Token | None:
        return await self._driver.run(lambda: access.token(fingerprint), Lane.READ, single=True)

    async def touch_tokens(self, lookups: Sequence[str]) -> None:
        await self._driver.run(lambda: access.touch_tokens(lookups), Lane.KEYED, single=True)

    async def open_session(self, subject: Subject, new: NewSession, entry: Entry) -> Session | None:
        return await self._driver.run(lambda: access.open_session(subject, new, entry), Lane.KEYED)

    async def redeem_link(self, code: Fingerprint, new: NewSession, entry: Entry) -> Session | None:
        return await self._driver.run(lambda: access.redeem(code, new, entry), Lane.KEYED)

    async def add_link(self, code: Fingerprint, subject: Subject, ttl: float, entry: Entry) -> None:
        await self._driver.run(lambda: access.add_link(code, subject, ttl, entry), Lane.KEYED)

    async def session(self, fingerprint: Fingerprint) -> Session | None:
        return await self._driver.run(lambda: access.session(fingerprint), Lane.READ, single=True)

    async def end_session(self, fingerprint: Fingerprint, entry: Entry) -> bool:
        return await self._driver.run(lambda: access.end_session(fingerprint, entry), Lane.KEYED)

    async def count_attempt(self, limits: Mapping[str, int], window: float) -> float | None:
        return await self._driver.run(lambda: access.count_attempt(limits, window), Lane.KEYED)

    async def forgive(self, account: str, address: str) -> None:
        await self._driver.run(lambda: access.forgive(account, address), Lane.KEYED)

    async def prune_access(self, window: float) -> None:
        await self._driver.run(lambda: access.prune(window), Lane.KEYED)

    async def record(self, entries: Sequence[Entry]) -> int:
        return await self._driver.run(lambda: audit.record(entries), Lane.KEYED)

    async def audit(self, wanted: AuditFilter) -> list[AuditLine]:
        return await self._driver.run(lambda: audit.find(wanted), Lane.READ, single=True)

    async def audit_after(self, seq: int, limit: int = 1000) -> list[AuditLine]:
        return await self._driver.run(lambda: audit.after(seq, limit), Lane.READ, single=True)

    async def audit_ends(self) -> Ends:
        return await self._driver.run(audit.ends, Lane.READ, single=True)

    async def prune_audit(self, age: float, limit: int = 1000) -> int:
        return await self._driver.run(lambda: audit.prune(age, limit), Lane.KEYED)
