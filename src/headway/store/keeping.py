"""The part of a store over SQL that keeps sealed content and targets: `Vault` and `Targets` of the contract, by
scripts."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headway.model.sealed import Attachment, Sealed, SecretInfo, VaultKey
from headway.model.target import Target, TargetRecord
from headway.store.driver import Driver, Lane
from headway.store.scripts import targets, vault
from headway.store.scripts.targets import KEEP, Key
from headway.store.scripts.vault import Rewrap


class SqlVault:
    """Sealed content through a driver. What workers ask for is read on the lane of writes: they need no further
    connection for it."""

    _driver: Driver

    async def vault_keys(self) -> list[VaultKey]:
        return await self._driver.run(vault.keys, Lane.READ, single=True)

    async def current_key(self) -> VaultKey | None:
        return await self._driver.run(vault.current_key, Lane.WRITE, single=True)

    async def add_key(self, key: VaultKey) -> VaultKey:
        return await self._driver.run(lambda: vault.add_key(key), Lane.WRITE)

    async def change_key(self, key: VaultKey) -> None:
        await self._driver.run(lambda: vault.change_key(key), Lane.KEYED)

    async def rewrap(self, rewrapped: Rewrap, key_id: str, limit: int = 200) -> int:
        return await self._driver.run(lambda: vault.rewrap(rewrapped, key_id, limit), Lane.KEYED)

    async def retire_keys(self) -> list[str]:
        return await self._driver.run(vault.retire_keys, Lane.KEYED)

    async def put_secret(self, name: str, sealed: Sealed, *, note: str | None, by: str | None) -> SecretInfo:
        return await self._driver.run(lambda: vault.put_secret(name, sealed, note=note, by=by), Lane.KEYED)

    async def open_secrets(self, names: Sequence[str]) -> list[Sealed]:
        return await self._driver.run(lambda: vault.open_secrets(names), Lane.WRITE)

    async def missing_secrets(self, names: Sequence[str]) -> list[str]:
        return await self._driver.run(lambda: vault.missing_secrets(names), Lane.READ)

    async def list_secrets(self, after_name: str = "", limit: int = 100) -> list[SecretInfo]:
        return await self._driver.run(lambda: vault.list_secrets(after_name, limit), Lane.READ, single=True)

    async def delete_secret(self, name: str) -> None:
        await self._driver.run(lambda: vault.delete_secret(name), Lane.KEYED)

    async def upload(self, attachment: Attachment) -> None:
        await self._driver.run(lambda: vault.upload(attachment), Lane.KEYED)

    async def uploaded(self, upload_ids: Sequence[UUID]) -> dict[UUID, tuple[int, str | None]]:
        return await self._driver.run(lambda: vault.uploaded(upload_ids), Lane.WRITE, single=True)

    async def attachments(self, owner_ids: Sequence[UUID]) -> dict[UUID, list[Attachment]]:
        return await self._driver.run(lambda: vault.attachments(owner_ids), Lane.WRITE, single=True)

    async def open_attachments(self, attachment_ids: Sequence[UUID]) -> dict[UUID, Sealed]:
        return await self._driver.run(lambda: vault.open_attachments(attachment_ids), Lane.WRITE, single=True)

    async def prune_uploads(self, age: float, limit: int = 100) -> int:
        return await self._driver.run(lambda: vault.prune_uploads(age, limit), Lane.WRITE)

    async def create_target(self, target: Target, key: Key, *, by: str | None) -> TargetRecord:
        return await self._driver.run(lambda: targets.create(target, key, by=by), Lane.KEYED)

    async def change_target(
        self, target: Target, key: Key = KEEP, version: int | None = None, *, by: str | None
    ) -> TargetRecord:
        return await self._driver.run(lambda: targets.change(target, key, version, by=by), Lane.KEYED)

    async def target(self, named: UUID | str) -> TargetRecord:
        return await self._driver.run(lambda: targets.get(named), Lane.WRITE, single=True)

    async def open_target(self, named: UUID | str) -> tuple[TargetRecord, Sealed | None]:
        return await self._driver.run(lambda: targets.open_target(named), Lane.WRITE, single=True)

    async def find_targets(self, after_name: str = "", limit: int = 100) -> list[TargetRecord]:
        return await self._driver.run(lambda: targets.find(after_name, limit), Lane.READ, single=True)

    async def delete_target(self, target_id: UUID, *, force: bool = False) -> None:
        await self._driver.run(lambda: targets.delete(target_id, force=force), Lane.KEYED)
