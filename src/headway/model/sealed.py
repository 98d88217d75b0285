"""What is kept under lock and key: sealed content, named secrets, attachments of jobs, credentials. Pure data; the lock
itself is in `headway.vault`."""

from __future__ import annotations

import re
from datetime import datetime
from uuid import UUID

import msgspec

from headway.model.errors import InvalidRequest

SECRET_LIMIT = 64 * 1024
SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
SCRIPT = "script"
FILE = "file"
CREDENTIAL = "credential"
"""Roles of attachments."""


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """Content that only the holder of the key `key_id` can read: encrypted by a key of its own, which is wrapped by
    that one. `id` belongs to this content alone, and it can be opened under no other."""

    id: UUID
    key_id: str
    wrapped: bytes
    data: bytes


class VaultKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that content was sealed with, as the store knows it: by name only. `proof` is content that the right key
    opens."""

    id: str
    proof: bytes
    current: bool = True
    uses: int = 0
    """How much is sealed with it."""
    made_at: datetime | None = None
    retired_at: datetime | None = None


class SecretInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A named secret, as anybody may see it: never its value."""

    name: str
    note: str | None
    created_at: datetime
    updated_at: datetime
    updated_by: str | None
    used_at: datetime | None
    """When a job last used it, to the minute."""


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A script, a file or a credential that belongs to a job (or to the template of a schedule).

    With `sealed` it is stored together with the job; without, it is in the store already and shared with it. It is
    gone with the last one that uses it.
    """

    id: UUID
    role: str
    name: str
    size: int
    sha256: str | None = None
    """None for credentials: those can be guessed by their digest."""
    sealed: Sealed | None = None

    def bare(self) -> Attachment:
        """The same by reference."""
        return msgspec.structs.replace(self, sealed=None)


class Enclosed(msgspec.Struct, frozen=True, kw_only=True):
    """Content on its way into an attachment. `at` is the place in the job's body from which it comes: whoever keeps
    the body keeps a reference there instead, `{"attachment": id}`."""

    role: str
    name: str
    content: bytes
    at: tuple[str, ...] = ()
    address: str = ""
    """Of a credential: the only one that it opens (`Target.address`)."""

    def __repr__(self) -> str:
        return f"Enclosed({self.role} {self.name!r}, {len(self.content)} bytes)"


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """Content that is in the store already: an attachment (an upload, or one of a schedule) by its id, or what an
    earlier job has in this role under this name."""

    role: str
    name: str
    attachment: UUID | None = None
    job: UUID | None = None
    at: tuple[str, ...] = ()


class Credential(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What opens a target: a password, or a private key with the passphrase that it may have."""

    password: str | None = None
    private_key: str | None = None
    passphrase: str | None = None

    def __repr__(self) -> str:
        return f"Credential({self.form})"

    @property
    def form(self) -> str:
        """What may be told of it."""
        return "password" if self.password is not None else "private_key"

    def parts(self) -> tuple[str, ...]:
        """All that must not be seen anywhere."""
        return tuple(part for part in (self.password, self.private_key, self.passphrase) if part)


def check_secret(name: str, value: bytes) -> None:
    """Whether this may be a secret. Raises InvalidRequest, whose words don't tell the value."""
    if not SECRET_NAME.fullmatch(name):
        raise InvalidRequest(
            f"the name of a secret must be 1 to 100 letters, digits, '.', '_' or '-', not {name[:120]!r}", field="name"
        )
    if not value:
        raise InvalidRequest(f"the secret {name!r} must not be empty", field="value")
    if len(value) > SECRET_LIMIT:
        raise InvalidRequest(
            f"the secret {name!r} takes {len(value):,} bytes, the limit is {SECRET_LIMIT:,}", field="value"
        )
