"""Can secrets be read, and is the change of their key at its end?"""

from __future__ import annotations

from headway import settings
from headway.cli.checks.contract import Patient
from headway.model.errors import ConfigurationError, VaultLocked
from headway.model.findings import Finding, fine, problem, warning
from headway.model.words import count
from headway.vault.selftest import check
from headway.vault.source import KeySource
from headway.vault.vault import Direct, Vault

_ROTATE = "go on with it: headway secrets rotate"


async def vault(patient: Patient) -> list[Finding]:
    """Whether this machine has the key, and whether an old one is still in use."""
    keys = await patient.store.vault_keys()
    if not keys:
        return [fine("vault", "nothing has been sealed yet")]
    source = KeySource(patient.url, settings.load({"store": patient.url}, environment=patient.environment))
    try:
        key_id = await check(Vault(Direct(patient.store), source))
    except VaultLocked as error:
        return [problem("vault", str(error), "see the message; workers without the key leave such jobs to others")]
    except ConfigurationError as error:
        return [problem("vault", str(error), "see the message")]
    kept = count(sum(key.uses for key in keys), "item")
    old = [key for key in keys if not key.current and key.retired_at is None]
    if old or len(source.keys.ring()) > 1:
        behind = sum(key.uses for key in old)
        return [warning("vault", f"the change to the key {key_id} is unfinished, {behind:,} of {kept} to go", _ROTATE)]
    return [fine("vault", f"{kept} sealed with the key {key_id} of {source.keys.where}")]
