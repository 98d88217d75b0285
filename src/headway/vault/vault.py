"""What everybody asks who has something to keep, or needs what was kept.

Opens nothing until it is asked. The first secret of an installation makes its key, if none is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from headway.model.errors import AttachmentNotFound, SecretNotFound, VaultLocked
from headway.model.sealed import (
    CREDENTIAL,
    Attachment,
    Credential,
    Enclosed,
    Sealed,
    SecretInfo,
    Shared,
    VaultKey,
    check_secret,
)
from headway.model.target import Target, TargetRecord
from headway.store.contract import Store
from headway.store.scripts.targets import KEEP
from headway.store.scripts.targets import Key as TargetKey
from headway.vault.known import KNOWN
from headway.vault.source import KeySource

if TYPE_CHECKING:
    from headway.vault.envelope import Key

T = TypeVar("T")


class Reach(Protocol):
    """The way to a store, from wherever one is."""

    async def call(self, act: Callable[[Store], Awaitable[T]]) -> T: ...


class Direct:
    """The way to a store for who holds it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def call(self, act: Callable[[Store], Awaitable[T]]) -> T:
        return await act(self._store)


class Vault:
    """Seals and opens for one store."""

    def __init__(self, reach: Reach, source: KeySource) -> None:
        self._call = reach.call
        self._source = source

    # Named secrets

    async def set_secret(self, name: str, value: bytes, *, note: str | None = None, by: str | None) -> SecretInfo:
        """Make or replace a secret. Raises InvalidRequest, VaultLocked."""
        check_secret(name, value)
        sealed = (await self.sealing_key()).seal(uuid7(), _of_secret(name), value)
        return await self._call(lambda store: store.put_secret(name, sealed, note=note, by=by))

    async def reveal(self, name: str) -> bytes:
        """The value of a named secret; from now on it is kept out of this process's log lines. Raises SecretNotFound,
        VaultLocked."""
        [value] = await self.reveal_all([name])
        return value

    async def reveal_all(self, names: Sequence[str]) -> list[bytes]:
        """As `reveal`, several at once, in the order of their names."""
        sealed = await self._call(lambda store: store.open_secrets(names))
        return [self._open(each, _of_secret(name)) for name, each in zip(names, sealed, strict=True)]

    async def require_secrets(self, names: Sequence[str]) -> None:
        """Raises SecretNotFound."""
        for name in await self._call(lambda store: store.missing_secrets(names)):
            raise SecretNotFound(name)

    async def replaced(self, names: Collection[str], since: datetime) -> list[str]:
        """Which of these secrets have got another value since then."""
        found: list[str] = []
        after = ""
        while page := await self._call(partial(_list_secrets, after)):
            found += [each.name for each in page if each.name in names and each.updated_at > since]
            after = page[-1].name
        return found

    # Attachments

    async def attach(self, asked: Enclosed | Shared) -> Attachment:
        """An attachment for a submission. New content is stored when, and only when, the job is. Raises
        AttachmentNotFound, VaultLocked."""
        if isinstance(asked, Enclosed):
            return await self._enclose(asked)
        if asked.attachment is not None:
            return await self._share(asked, asked.attachment)
        assert asked.job is not None, "shared content is an attachment, or a job's"
        there = [
            each for each in await self.attachments(asked.job) if (each.role, each.name) == (asked.role, asked.name)
        ]
        if not there:
            raise AttachmentNotFound(asked.role, asked.name)
        return there[0]

    async def upload(self, enclosed: Enclosed) -> Attachment:
        """Keep content for jobs to come, by reference; unused it is gone after a day."""
        attachment = await self._enclose(enclosed)
        await self._call(lambda store: store.upload(attachment))
        return attachment.bare()

    async def attachments(self, owner_id: UUID) -> list[Attachment]:
        """What a job (or a schedule) has, by reference."""
        [found] = await self.attachments_of([owner_id])
        return found

    async def attachments_of(self, owner_ids: Sequence[UUID]) -> list[list[Attachment]]:
        """As `attachments`, of several at once, in their order."""
        found = await self._call(lambda store: store.attachments(owner_ids))
        return [found[owner_id] for owner_id in owner_ids]

    async def content(self, attachment: Attachment, address: str = "") -> bytes:
        """What is attached; a credential only for the address that it was entered for. Raises AttachmentNotFound,
        SealBroken, VaultLocked."""
        [content] = await self.contents([attachment], address)
        return content

    async def contents(self, attachments: Sequence[Attachment], address: str = "") -> list[bytes]:
        """As `content`, of several at once, in their order."""
        stored = [each.id for each in attachments if each.sealed is None]
        found = await self._call(lambda store: store.open_attachments(stored)) if stored else {}
        contents: list[bytes] = []
        for each in attachments:
            sealed = each.sealed or found.get(each.id)
            if sealed is None:
                raise AttachmentNotFound(each.role, each.name)
            contents.append(self._open(sealed, _of_attachment(each.role, address), known=False))
        return contents

    async def _enclose(self, enclosed: Enclosed) -> Attachment:
        key, attachment_id = await self.sealing_key(), uuid7()
        digest = None if enclosed.role == CREDENTIAL else hashlib.sha256(enclosed.content).hexdigest()
        return Attachment(
            id=attachment_id,
            role=enclosed.role,
            name=enclosed.name,
            size=len(enclosed.content),
            sha256=digest,
            sealed=key.seal(attachment_id, _of_attachment(enclosed.role, enclosed.address), enclosed.content),
        )

    async def _share(self, asked: Shared, attachment_id: UUID) -> Attachment:
        found = await self._call(lambda store: store.uploaded([attachment_id]))
        if attachment_id not in found:
            raise AttachmentNotFound(asked.role, asked.name)
        size, digest = found[attachment_id]
        return Attachment(id=attachment_id, role=asked.role, name=asked.name, size=size, sha256=digest)

    # Targets

    async def create_target(self, target: Target, credential: Credential | None, *, by: str | None) -> TargetRecord:
        key = TargetKey(None) if credential is None else await self._sealed_for(target, credential)
        return await self._call(lambda store: store.create_target(target, key, by=by))

    async def change_target(
        self, target: Target, credential: Credential | None = None, version: int | None = None, *, by: str | None
    ) -> TargetRecord:
        """Without a credential the one that is there stays, if host and port do."""
        key = KEEP if credential is None else await self._sealed_for(target, credential)
        return await self._call(lambda store: store.change_target(target, key, version, by=by))

    async def forget_credential(self, target: Target, version: int | None = None, *, by: str | None) -> TargetRecord:
        """The target in this form, and without a credential."""
        return await self._call(lambda store: store.change_target(target, TargetKey(None), version, by=by))

    async def require_target(self, named: str) -> None:
        """Raises TargetNotFound."""
        await self._call(lambda store: store.target(named))

    async def destination(self, named: UUID | str) -> tuple[Target, Credential | None]:
        """A target and what opens it. Raises TargetNotFound, VaultLocked."""
        record, sealed = await self._call(lambda store: store.open_target(named))
        if sealed is None:
            return record.target, None
        return record.target, self.credential(self._open(sealed, _of_target(record.target), known=False))

    def credential(self, content: bytes) -> Credential:
        """A credential as it was sealed; kept out of log lines from now on."""
        credential = msgspec.json.decode(content, type=Credential)
        for part in credential.parts():
            KNOWN.add(part.encode())
        return credential

    async def _sealed_for(self, target: Target, credential: Credential) -> TargetKey:
        content = msgspec.json.encode(credential)
        sealed = (await self.sealing_key()).seal(uuid7(), _of_target(target), content)
        return TargetKey(sealed, credential.form)

    # Keys

    async def sealing_key(self) -> Key:
        """The key that the store asks for; the first one ever is made here. Raises VaultLocked."""
        current = await self.current_key() or await self._introduce()
        key = self._source.keys.get(current.id)
        if key is None or not key.proves(current.proof):
            raise self.locked(current.id)
        return key

    async def current_key(self) -> VaultKey | None:
        """The key to seal with, by name; None: nothing was ever sealed."""
        return await self._call(lambda store: store.current_key())

    async def _introduce(self) -> VaultKey:
        keys = self._source.keys
        key = keys.first() or keys.create()
        return await self._call(lambda store: store.add_key(VaultKey(id=key.id, proof=key.prove())))

    def _open(self, sealed: Sealed, belongs_to: str, *, known: bool = True) -> bytes:
        key = self._source.keys.get(sealed.key_id)
        if key is None:
            raise self.locked(sealed.key_id)
        content = key.open(sealed, belongs_to)
        if known:
            KNOWN.add(content)
        return content

    def locked(self, key_id: str) -> VaultLocked:
        """What is said where a key is missing."""
        keys = self._source.keys
        held = ", ".join(keys.ring()) or "no key"
        return VaultLocked(
            f"the secrets of this store are sealed with the key {key_id}, and {keys.where} holds {held}: copy the file "
            "secret.key from the data directory of a machine that has it, or set HEADWAY_SECRET_KEY to that key; "
            "without it they have to be entered again"
        )


async def _list_secrets(after: str, store: Store) -> list[SecretInfo]:
    return await store.list_secrets(after)


def _of_attachment(role: str, address: str) -> str:
    """Whoever names a credential of another job as a script, to read it, or for a host of theirs, to be sent it, gets
    nothing."""
    return f"credential at {address}" if role == CREDENTIAL else "attachment"


def _of_secret(name: str) -> str:
    return f"secret {name}"


def _of_target(target: Target) -> str:
    """Bound to the address: whoever changes it in the database has a credential that can't be opened."""
    return f"target {target.id} at {target.address}"
