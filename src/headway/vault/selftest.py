"""Before anything is entrusted to the vault: whether it locks at all, and whether this process has the key."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from headway.model.errors import ConfigurationError, SealBroken, VaultLocked
from headway.model.sealed import Sealed
from headway.observe.logs import get_logger
from headway.vault.vault import Vault

if TYPE_CHECKING:
    from headway.vault.envelope import Key

_CONTENT = b"headway's vault tests itself"

log = get_logger("headway.vault")


async def check(vault: Vault) -> str | None:
    """The name of the key in use; None: nothing was ever sealed. Raises ConfigurationError if content isn't
    encrypted, VaultLocked if it was sealed with a key that isn't here."""
    current = await vault.current_key()
    check_lock()
    return None if current is None else (await vault.sealing_key()).id


async def check_if_used(vault: Vault) -> None:
    """The same for a worker: one without the key can still run what needs no secrets, so it is only said loudly."""
    try:
        if await vault.current_key() is not None:
            await check(vault)
    except VaultLocked as error:
        log.warning("vault.locked", error=str(error), help="jobs that need secrets are left to other workers")


def check_lock() -> None:
    """Whether content can be read only by who has the key, and only in its place."""
    from headway.vault.envelope import Key

    key, other = Key.fresh(), Key.fresh()
    sealed = key.seal(UUID(int=1), "here", _CONTENT)
    shown = sealed.data + sealed.wrapped
    opens = key.open(sealed, "here") == _CONTENT
    if not opens or _CONTENT in shown or _opens(key, sealed, "elsewhere") or _opens(other, sealed, "here"):
        raise ConfigurationError("the vault's self-test failed: content is not encrypted as it should be; don't use it")


def _opens(key: Key, sealed: Sealed, belongs_to: str) -> bool:
    try:
        key.open(sealed, belongs_to)
    except SealBroken:
        return False
    return True
