"""Which settings tell where the vault's key is; nothing is read before it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway import settings
from headway.settings import Settings

if TYPE_CHECKING:
    from headway.vault.keys import Keys


class KeySource:
    """The keys for a store. Without the package `cryptography` there are none, and `keys` says what to install."""

    def __init__(self, store_url: str, held: Settings | None = None) -> None:
        self._store_url = store_url
        self._held = held
        self._keys: Keys | None = None

    @property
    def keys(self) -> Keys:
        """Raises ConfigurationError."""
        if self._keys is None:
            from headway.vault.envelope import Key
            from headway.vault.keys import Keys, encode

            held = self._held or settings.load({"store": self._store_url})
            given = held.secret_key
            if not given and held.data is None and _in_memory(self._store_url):
                # What it seals is gone with this process, and so may be the key.
                given = encode(Key.fresh())
            self._keys = Keys(given, held.data_directory)
        return self._keys


def _in_memory(store_url: str) -> bool:
    scheme, _, rest = store_url.partition("://")
    return scheme == "sqlite" and not rest.strip("/")
