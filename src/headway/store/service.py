"""What every store promises to the service, besides jobs: people and what they did, secrets, targets, alerts.

The rules of `contract.py` hold here as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from headway.model.access import AuditFilter, AuditLine, Entry, Fingerprint, Session, Subject, Token, User
from headway.model.alerts import Body, Notification, RuleDraft, StoredRule
from headway.model.sealed import Attachment, Sealed, SecretInfo, VaultKey
from headway.model.target import Target, TargetRecord
from headway.store.scripts.access import NewSession
from headway.store.scripts.alerts import Decide
from headway.store.scripts.audit import Ends
from headway.store.scripts.targets import KEEP, Key
from headway.store.scripts.vault import Rewrap


class Audit(Protocol):
    """For those who write down who did what, and those who read it."""

    async def record(self, entries: Sequence[Entry]) -> int:
        """Add lines to the log; those with ids that are there already are left out. How many were new."""

    async def audit(self, wanted: AuditFilter) -> list[AuditLine]:
        """Lines, the latest first."""

    async def audit_after(self, seq: int, limit: int = 1000) -> list[AuditLine]:
        """Lines in the order in which they were written."""

    async def audit_ends(self) -> Ends:
        """Between which marks the chain of lines must lie."""

    async def prune_audit(self, age: float, limit: int = 1000) -> int:
        """Remove lines older than `age` seconds; how many went."""


class Access(Audit, Protocol):
    """For those who decide who may do what. Each change and its line in the audit log are one transaction."""

    async def create_user(self, user: User, entry: Entry) -> User:
        """Raises NameTaken."""

    async def change_user(self, name: str, changes: Mapping[str, Any], entry: Entry) -> User:
        """Change role, password or disabled; the user's sessions end. Raises UserNotFound."""

    async def rehash_password(self, name: str, old: str, new: str) -> None:
        """The same password, kept in a better way, if it is still that one; nobody is logged out."""

    async def delete_user(self, name: str, entry: Entry) -> None: ...
    async def users(self) -> list[User]: ...
    async def user(self, name: str) -> User | None: ...
    async def create_token(
        self, token: Token, fingerprint: Fingerprint, entry: Entry, *, replace: bool = False
    ) -> Token:
        """Raises NameTaken, unless it is to `replace` the one of that name, whose sessions end then."""

    async def delete_token(self, name: str, entry: Entry) -> None:
        """The token and its sessions. Raises TokenNotFound."""

    async def tokens(self) -> list[Token]: ...
    async def token(self, fingerprint: Fingerprint) -> Token | None:
        """The token that was shown, if it is one and has not expired."""

    async def touch_tokens(self, lookups: Sequence[str]) -> None:
        """They have been used."""

    async def open_session(self, subject: Subject, new: NewSession, entry: Entry) -> Session | None: ...
    async def redeem_link(self, code: Fingerprint, new: NewSession, entry: Entry) -> Session | None:
        """A session in exchange for a login link, once; None for a link that is not there (any more)."""

    async def add_link(self, code: Fingerprint, subject: Subject, ttl: float, entry: Entry) -> None: ...
    async def session(self, fingerprint: Fingerprint) -> Session | None:
        """The session that was shown, with what its principal may do now; None when it has ended."""

    async def end_session(self, fingerprint: Fingerprint, entry: Entry) -> bool: ...
    async def count_attempt(self, limits: Mapping[str, int], window: float) -> float | None:
        """Count an attempt to log in against each subject; seconds to wait if one has had more than its limit within
        `window` seconds. One count for all processes."""

    async def forgive(self, account: str, address: str) -> None:
        """The attempt was a success."""

    async def prune_access(self, window: float) -> None:
        """Forget sessions, links and counts that have lapsed."""


class Vault(Protocol):
    """For those who keep secrets. Whatever goes in or out here is sealed (`headway.vault` has the key)."""

    async def vault_keys(self) -> list[VaultKey]:
        """All keys there were, by name, with how much is sealed with each."""

    async def current_key(self) -> VaultKey | None:
        """The key to seal with; None: nothing was ever sealed."""

    async def add_key(self, key: VaultKey) -> VaultKey:
        """Make a key known; the first one is the current one. Returns the current one."""

    async def change_key(self, key: VaultKey) -> None:
        """Seal with this one from now on."""

    async def rewrap(self, rewrapped: Rewrap, key_id: str, limit: int = 200) -> int:
        """One step of bringing everything under this key; how much was still under another."""

    async def retire_keys(self) -> list[str]:
        """Let nothing be sealed any more with those keys that nothing is sealed with; returns them."""

    async def put_secret(self, name: str, sealed: Sealed, *, note: str | None, by: str | None) -> SecretInfo:
        """Make or replace a named secret. Raises VaultKeyRetired."""

    async def open_secrets(self, names: Sequence[str]) -> list[Sealed]:
        """Raises SecretNotFound."""

    async def missing_secrets(self, names: Sequence[str]) -> list[str]:
        """Which of these are not there."""

    async def list_secrets(self, after_name: str = "", limit: int = 100) -> list[SecretInfo]: ...
    async def delete_secret(self, name: str) -> None:
        """Raises SecretNotFound."""

    async def upload(self, attachment: Attachment) -> None:
        """Keep an attachment for jobs to come; unused it is gone after a day. Raises VaultKeyRetired."""

    async def uploaded(self, upload_ids: Sequence[UUID]) -> dict[UUID, tuple[int, str | None]]:
        """Size and digest of attachments; unknown ones are left out."""

    async def attachments(self, owner_ids: Sequence[UUID]) -> dict[UUID, list[Attachment]]:
        """What these jobs or schedules use, by reference."""

    async def open_attachments(self, attachment_ids: Sequence[UUID]) -> dict[UUID, Sealed]: ...
    async def prune_uploads(self, age: float, limit: int = 100) -> int:
        """Remove attachments that nobody has used for `age` seconds; how many went."""


class Targets(Protocol):
    """For those who keep targets, and for those who connect to them."""

    async def create_target(self, target: Target, key: Key, *, by: str | None) -> TargetRecord:
        """Raises NameTaken, VaultKeyRetired."""

    async def change_target(
        self, target: Target, key: Key = KEEP, version: int | None = None, *, by: str | None
    ) -> TargetRecord:
        """With another host or port its credential is gone unless a new one comes along. Raises TargetNotFound,
        VersionConflict, NameTaken, TargetInUse (its name stays while open jobs go by it), VaultKeyRetired."""

    async def target(self, named: UUID | str) -> TargetRecord:
        """By id or name. Raises TargetNotFound."""

    async def open_target(self, named: UUID | str) -> tuple[TargetRecord, Sealed | None]:
        """With its credential, sealed. Raises TargetNotFound."""

    async def find_targets(self, after_name: str = "", limit: int = 100) -> list[TargetRecord]: ...
    async def delete_target(self, target_id: UUID, *, force: bool = False) -> None:
        """Raises TargetNotFound; TargetInUse, unless by force, while open jobs name it."""


class Alerts(Protocol):
    """For those who tell people that something is wrong."""

    async def put_alert_rule(self, draft: RuleDraft, *, by: str | None) -> StoredRule:
        """Make or replace a rule. Raises NameTaken."""

    async def alert_rules(self, rule_id: UUID | None = None) -> list[StoredRule]:
        """All rules by name, or the one."""

    async def drop_alert_rule(self, rule_id: UUID) -> None:
        """Raises NotFound."""

    async def judge_alerts(self, decide: Decide) -> int:
        """Take what has happened and write down what follows from it, as one; how many messages are to be sent."""

    async def add_notification(self, notification_id: UUID, rule_id: UUID, body: Body) -> None: ...
    async def due_notifications(self, limit: int = 50) -> list[Notification]: ...
    async def note_delivery(self, notification_id: UUID, *, error: str | None, wait: float | None) -> None:
        """It is delivered; or it is not, and tried again after `wait` seconds, or never."""

    async def notifications(self, rule_id: UUID, limit: int = 50) -> list[Notification]:
        """The latest messages of a rule first."""
