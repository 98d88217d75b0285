"""Where the vault's key comes from: `HEADWAY_SECRET_KEY`, or a file that only its owner can read.

Either may hold several keys: the first is the one to seal with, the others are on their way out (`rotation`).
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from headway.model.errors import ConfigurationError
from headway.vault.envelope import KEY_SIZE, Key

VARIABLE = "HEADWAY_SECRET_KEY"
FILE = "secret.key"
_COMMENT = (
    "# The key of Headway's vault. Whoever has it can read every secret; without it nobody can. Keep a copy apart.\n"
)


class Keys:
    """The keys that this process may use, read again when one is missing."""

    def __init__(self, given: str | None, directory: Path) -> None:
        self._given = given or None
        self._file = directory / FILE
        self._ring: dict[str, Key] | None = None

    @property
    def where(self) -> str:
        """Where they are, or should be, in words."""
        return VARIABLE if self._given else str(self._file)

    @property
    def in_file(self) -> bool:
        return not self._given

    def get(self, key_id: str) -> Key | None:
        """A key by its name. One that isn't known may have come since: the file is read again."""
        return self.ring().get(key_id) or self.ring(again=True).get(key_id)

    def first(self) -> Key | None:
        return next(iter(self.ring().values()), None)

    def ring(self, *, again: bool = False) -> dict[str, Key]:
        """All keys by name, in their order."""
        if self._ring is None or again:
            self._ring = {key.id: key for key in self._read()}
        return self._ring

    def create(self) -> Key:
        """The first key of an installation, kept in the file. If another process has just made one, that."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self._write_part([Key.fresh()])
        try:
            # A link, not a rename: it fails where a file is already, instead of taking its place.
            os.link(part, self._file)
        except FileExistsError:
            pass
        finally:
            part.unlink()
        _sync_directory(self._file.parent)
        first = next(iter(self.ring(again=True).values()), None)
        if first is None:
            raise ConfigurationError(f"{self._file} holds no key: put it back from your copy, or remove the file")
        return first

    def replace(self, keys: Sequence[Key]) -> None:
        """The file with these keys, durably: whenever this process dies, there is the old file or the new one."""
        part = self._write_part(keys)
        part.replace(self._file)
        _sync_directory(self._file.parent)
        self._ring = None

    def clear_away(self) -> None:
        """Remove what processes left behind that died while they wrote the file."""
        for part in self._file.parent.glob(f"{FILE}.*.part"):
            part.unlink()

    def _write_part(self, keys: Sequence[Key]) -> Path:
        part = self._file.with_name(f"{FILE}.{os.getpid()}.part")
        part.unlink(missing_ok=True)
        text = _COMMENT + "".join(f"{encode(key)}\n" for key in keys)
        # For its owner alone from the first moment on, not only after a chmod.
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return part

    def _read(self) -> list[Key]:
        if self._given:
            return [decode(text, VARIABLE) for text in self._given.replace(",", " ").split()]
        if not self._file.exists():
            return []
        _refuse_open_file(self._file)
        lines = (line.strip() for line in self._file.read_text().splitlines())
        return [decode(line, str(self._file)) for line in lines if line and not line.startswith("#")]


def encode(key: Key) -> str:
    """A key as it is written down."""
    return base64.urlsafe_b64encode(key.secret).decode()


def decode(text: str, where: str) -> Key:
    """A key as it was written down, in base64 or hexadecimal. Raises ConfigurationError, which doesn't tell it."""
    try:
        if len(text) == 2 * KEY_SIZE:
            return Key(bytes.fromhex(text))
        return Key(base64.urlsafe_b64decode(text.replace("+", "-").replace("/", "_") + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error):
        raise ConfigurationError(
            f"{where} holds something that is no key: a key is {KEY_SIZE} random bytes in base64, as "
            "`headway secrets key` prints them"
        ) from None


def _refuse_open_file(file: Path) -> None:
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:
        raise ConfigurationError(
            f"others can read the key in {file} (mode {mode:04o}): chmod 600 {file}, and change the key with "
            "`headway secrets rotate` if they may have done so"
        )


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
