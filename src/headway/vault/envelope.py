"""The lock: AES-256-GCM, twice. Content is encrypted with a key of its own, and that key with the vault's.

What it belongs to is authenticated with it: moved to another row, or bound to another host, content can't be opened.
Changing the vault's key wraps the small keys anew and touches no content.
"""

from __future__ import annotations

import os
from uuid import UUID

from headway.model.errors import ConfigurationError, SealBroken
from headway.model.sealed import Sealed

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ModuleNotFoundError as error:
    raise ConfigurationError(
        f"secrets need the package {error.name!r}, which is missing: pip install 'headway[server]'"
    ) from error

KEY_SIZE = 32
NONCE_SIZE = 12
ID_SIZE = 6


class Key:
    """A key of the vault. `id` tells which one it is and nothing about it."""

    __slots__ = ("_lock", "id", "secret")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_SIZE:
            raise ValueError(f"a key has {KEY_SIZE} bytes")
        self.secret = secret
        self.id = HKDF(algorithm=SHA256(), length=ID_SIZE, salt=None, info=b"headway vault key id").derive(secret).hex()
        self._lock = AESGCM(secret)

    def __repr__(self) -> str:
        return f"Key({self.id})"

    @classmethod
    def fresh(cls) -> Key:
        return cls(os.urandom(KEY_SIZE))

    def seal(self, content_id: UUID, belongs_to: str, content: bytes) -> Sealed:
        """Content under an id that no other content has, for what it belongs to."""
        own = AESGCM.generate_key(bit_length=8 * KEY_SIZE)
        data = _encrypt(AESGCM(own), content, _bound(content_id, belongs_to))
        return Sealed(id=content_id, key_id=self.id, wrapped=self._wrap(content_id, own), data=data)

    def open(self, sealed: Sealed, belongs_to: str) -> bytes:
        """Raises SealBroken."""
        return _decrypt(AESGCM(self._unwrap(sealed)), sealed.data, _bound(sealed.id, belongs_to), sealed.id)

    def rewrap(self, sealed: Sealed, other: Key) -> Sealed:
        """The same content under another key."""
        wrapped = other._wrap(sealed.id, self._unwrap(sealed))
        return Sealed(id=sealed.id, key_id=other.id, wrapped=wrapped, data=sealed.data)

    def prove(self) -> bytes:
        """What this key opens, and no other."""
        return _encrypt(self._lock, b"headway", b"proof")

    def proves(self, proof: bytes) -> bool:
        try:
            return self._lock.decrypt(proof[:NONCE_SIZE], proof[NONCE_SIZE:], b"proof") == b"headway"
        except InvalidTag:
            return False

    def _wrap(self, content_id: UUID, own: bytes) -> bytes:
        return _encrypt(self._lock, own, _bound(content_id, "key"))

    def _unwrap(self, sealed: Sealed) -> bytes:
        return _decrypt(self._lock, sealed.wrapped, _bound(sealed.id, "key"), sealed.id)


def _encrypt(lock: AESGCM, content: bytes, bound: bytes) -> bytes:
    nonce = os.urandom(NONCE_SIZE)
    return nonce + lock.encrypt(nonce, content, bound)


def _decrypt(lock: AESGCM, data: bytes, bound: bytes, content_id: UUID) -> bytes:
    try:
        return lock.decrypt(data[:NONCE_SIZE], data[NONCE_SIZE:], bound)
    except (InvalidTag, ValueError):
        raise SealBroken(
            f"sealed content {content_id} can't be opened: it was changed in the database, or stands where it doesn't "
            "belong; enter it again"
        ) from None


def _bound(content_id: UUID, belongs_to: str) -> bytes:
    return content_id.bytes + belongs_to.encode()
