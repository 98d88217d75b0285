"""Another key for the vault: everything that is sealed comes under it, step by step.

1. A new key is written into the key file, before the old one. (Given by `HEADWAY_SECRET_KEY`, it stands there first.)
2. The store is told: from now on the new key is the one to seal with.
3. What is sealed with others is taken over, a few hundred at a time.
4. Keys that nothing is sealed with are retired: the store refuses whatever is still sealed with one.
5. The old key leaves the file.

Whoever dies at any point leaves a vault that can be read, by the old key and the new one; to begin again is to go on.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from headway.model.errors import ConfigurationError, VaultLocked
from headway.model.sealed import Sealed, VaultKey
from headway.store.contract import Store
from headway.vault.envelope import Key
from headway.vault.keys import VARIABLE, Keys
from headway.vault.source import KeySource

STEP = 200


class Rotated(msgspec.Struct, frozen=True, kw_only=True):
    """What a rotation has done."""

    key_id: str
    """The key from now on."""
    rewrapped: int
    retired: tuple[str, ...]
    resumed: bool
    """An earlier one had not come to its end."""


async def rotate(store: Store, source: KeySource) -> Rotated:
    """Bring everything under another key, or go on with what was begun. Raises ConfigurationError, VaultLocked."""
    keys = source.keys
    with _alone(keys):
        keys.clear_away()
        current = await store.current_key()
        if current is None:
            raise ConfigurationError("nothing has been sealed yet, so there is no key to change")
        if keys.get(current.id) is None:
            raise _missing(current.id, keys)
        new, resumed = _next(keys, current)
        await store.change_key(VaultKey(id=new.id, proof=new.prove()))
        rewrapped, retired = await _take_over(store, keys, new)
        left = [key.id for key in await store.vault_keys() if not key.current and key.retired_at is None]
        if keys.in_file and not left:
            keys.replace([new])
    return Rotated(key_id=new.id, rewrapped=rewrapped, retired=tuple(retired), resumed=resumed)


async def _take_over(store: Store, keys: Keys, new: Key) -> tuple[int, list[str]]:
    """Until nothing is left under another key: somebody may still seal with one until it is retired."""
    done, retired = 0, list[str]()
    while True:
        while step := await store.rewrap(lambda sealed: _rewrapped(sealed, keys, new), new.id, STEP):
            done += step
        retired += await store.retire_keys()
        if all(key.current or key.retired_at is not None for key in await store.vault_keys()):
            return done, retired


def _rewrapped(sealed: Sealed, keys: Keys, new: Key) -> Sealed:
    old = keys.get(sealed.key_id)
    if old is None:
        raise _missing(sealed.key_id, keys)
    return old.rewrap(sealed, new)


def _next(keys: Keys, current: VaultKey) -> tuple[Key, bool]:
    """The key that is to be, and whether it was to be before."""
    ring = list(keys.ring(again=True).values())
    if len(ring) > 1 and (keys.in_file or ring[0].id != current.id):
        return ring[0], keys.in_file
    if not keys.in_file:
        if len(ring) > 1:
            # The new one is in use already: what the old one holds is taken over.
            return ring[0], True
        raise ConfigurationError(
            f"{VARIABLE} holds one key: put a new one (`headway secrets key`) in front of it, separated by a comma, "
            "wherever it is set; restart those processes; then run this again"
        )
    new = Key.fresh()
    keys.replace([new, *ring])
    if next(iter(keys.ring(again=True))) != new.id:
        raise ConfigurationError(f"{keys.where} was changed by somebody else at this moment: look at it, and try again")
    return new, False


def _missing(key_id: str, keys: Keys) -> VaultLocked:
    return VaultLocked(
        f"something is sealed with the key {key_id}, which {keys.where} doesn't hold: add that key behind the others, "
        "or delete what is sealed with it; all else stays readable"
    )


@contextmanager
def _alone(keys: Keys) -> Iterator[None]:
    """Two at once would each write a key of its own into the file, and one would get lost."""
    if not keys.in_file:
        yield
        return
    path = Path(f"{keys.where}.lock")
    if not path.parent.is_dir():
        raise ConfigurationError(f"there is no key here: {keys.where} doesn't exist")
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError("another process is changing the key at this moment: let it end") from None
        yield
    finally:
        os.close(handle)
