"""Secrets that were revealed in this process, so that no log line and no error of it shows one."""

from __future__ import annotations

import threading

from headway.observe import discretion
from headway.vault.redaction import SHORTEST, Redactor

MOST = 500
"""So many are remembered, the latest: each costs a little time with every line."""


class Known:
    """The revealed, and a text without them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: dict[bytes, None] = {}
        self._redactor: Redactor | None = None

    def add(self, secret: bytes) -> None:
        if len(secret.strip()) < SHORTEST:
            return
        with self._lock:
            if secret in self._secrets:
                return
            if not self._secrets:
                discretion.hide_with(self.hide)
            if len(self._secrets) >= MOST:
                del self._secrets[next(iter(self._secrets))]
            self._secrets[secret] = None
            self._redactor = None

    def hide(self, text: str) -> str:
        """The text without anything revealed."""
        redactor = self._redactor
        if redactor is None:
            with self._lock:
                redactor = self._redactor = Redactor(self._secrets)
        whole = text.encode(errors="surrogatepass")
        clean = redactor.clean(whole)
        return text if clean is whole else clean.decode(errors="surrogatepass")


KNOWN = Known()
"""One for the process: a line may come from anywhere in it."""
