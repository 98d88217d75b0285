"""Who may do what: roles, the permissions they carry, and a principal, on whose behalf something is done."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

LOGIN_WINDOW = 900.0
"""Seconds in which failed logins are counted together."""


class Permission(StrEnum):
    """What a route, or an act, asks for."""

    READ = "read"
    """Jobs, results, output, schedules, queues, workers."""
    SUBMIT = "submit"
    """Jobs and schedules: make, change, cancel, retry, delete; queues: pause and limit."""
    READ_SCRIPTS = "read_scripts"
    MANAGE_TARGETS = "manage_targets"
    """Targets and named secrets: make, replace, delete; never to read a credential."""
    ADMINISTER = "administer"
    """Users, tokens, settings, alert rules, the `local` target, the audit log."""


class Role(StrEnum):
    """What a user or a token may do; each role may do what the ones before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def permissions(self) -> frozenset[Permission]:
        return _PERMISSIONS[self]


_VIEWER = frozenset({Permission.READ})
_OPERATOR = _VIEWER | {Permission.SUBMIT, Permission.READ_SCRIPTS, Permission.MANAGE_TARGETS}
_PERMISSIONS = {Role.VIEWER: _VIEWER, Role.OPERATOR: _OPERATOR, Role.ADMIN: _OPERATOR | {Permission.ADMINISTER}}


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who has shown who they are. `name` stands in histories and in the audit log: `user:ann`, `token:ci`."""

    name: str
    role: Role
    kinds: frozenset[str] | None = None
    """The only kinds of jobs it may submit; None: all."""
    queues: frozenset[str] | None = None
    """The only queues it may submit to; None: all."""

    def may(self, permission: Permission) -> bool:
        return permission in self.role.permissions


class Fingerprint(msgspec.Struct, frozen=True):
    """What is kept of a token, a session or a login code: enough to know it again, too little to use it."""

    lookup: str
    """By which it is found: it tells nothing about the rest, and may be compared by an index."""
    digest: str

    @classmethod
    def of(cls, secret: str) -> Fingerprint:
        digest = hashlib.sha256(secret.encode()).hexdigest()
        return cls(digest[:16], digest)

    def matches(self, digest: str) -> bool:
        """Whether it is the same, in a time that doesn't tell where they differ."""
        return hmac.compare_digest(self.digest, digest)


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody with a name, and a password unless they come by login links only."""

    id: UUID
    name: str
    role: Role
    password: str | None = None
    """As argon2 leaves it. Never shown."""
    disabled: bool = False
    created_at: datetime | None = None
    created_by: str | None = None
    changed_at: datetime | None = None

    @property
    def principal(self) -> Principal:
        return Principal(name=f"user:{self.name}", role=self.role)


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What a program shows. Only its fingerprint is kept."""

    name: str
    role: Role
    kinds: frozenset[str] | None = None
    queues: frozenset[str] | None = None
    created_at: datetime | None = None
    created_by: str | None = None
    expires_at: datetime | None = None
    used_at: datetime | None = None

    @property
    def principal(self) -> Principal:
        return Principal(name=f"token:{self.name}", role=self.role, kinds=self.kinds, queues=self.queues)


class Subject(msgspec.Struct, frozen=True):
    """Whose a session or a login link is: a user's, or a token's. It ends with them."""

    user: str | None = None
    token: str | None = None


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that is logged in."""

    principal: Principal
    expires_at: datetime


class Caller(msgspec.Struct, frozen=True):
    """Who does something, and from where; for the audit log."""

    name: str
    address: str | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A line to be written into the audit log. One with the id of a line that is there is not written again."""

    id: UUID
    actor: str
    action: str
    """What was done, as the verb of a thing: `job.cancel`, `user.create`."""
    object: str
    """What it was done to."""
    address: str | None = None
    detail: Mapping[str, Any] = {}
    count: int = 1
    """How often, where lines of the same second were folded into one."""


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the audit log. `digest` covers it and the line before: who changes one must change all that follow."""

    seq: int
    id: UUID
    made_at: datetime
    actor: str
    action: str
    object: str
    address: str | None
    detail: str
    count: int
    digest: str

    def sealed(self, before: str) -> str:
        """The digest that it ought to have behind that one."""
        told = [
            before,
            self.seq,
            str(self.id),
            self.made_at.isoformat(),
            self.actor,
            self.action,
            self.object,
            self.address,
            self.detail,
            self.count,
        ]
        return hashlib.sha256(msgspec.json.encode(told)).hexdigest()


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines are meant; the latest first, `before` is the number of a line to go on from."""

    actor: str | None = None
    action: str | None = None
    """The action itself, or a beginning with a dot: `user.`"""
    object: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    limit: int = 50
