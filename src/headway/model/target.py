"""A target: a server that scripts run on. Its credential lies in the vault and is bound to host and port."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from headway.model.errors import InvalidRequest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_HOST = re.compile(
    r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?"
)
_ADDRESS_6 = re.compile(r"[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?")
_USER = re.compile(r"[^\x00-\x20\x7f:@/\\-][^\x00-\x20\x7f:@/\\]{0,99}")
_LABEL = re.compile(r"[^\x00-\x1f\x7f]{1,100}")


class TargetKind(StrEnum):
    """How a target is reached."""

    SSH = "ssh"
    LOCAL = "local"
    """The worker's own machine; only where that is switched on."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A server and how to work there. What it is reached with is kept elsewhere."""

    id: UUID
    name: str
    kind: TargetKind = TargetKind.SSH
    host: str = ""
    port: Annotated[int, Meta(ge=1, le=65535)] = 22
    user: str = ""
    host_key: str | None = None
    """Its public key, as OpenSSH writes it (`ssh-ed25519 AAAA…`); without one nobody connects but to ask for it."""
    labels: dict[str, str] = {}
    max_connections: Annotated[int, Meta(ge=1, le=100)] = 4
    """Of one worker, at once; each has three sessions, however many runs share it."""
    connect_timeout: Annotated[float, Meta(gt=0, le=300)] = 10.0
    directory: str = "~/.headway"
    """Where each run gets a directory of its own."""
    description: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            _refuse("name", self.name, "1 to 100 letters, digits, '.', '_' or '-'")
        for key, value in self.labels.items():
            if not _LABEL.fullmatch(key) or len(value) > 200:
                _refuse("labels", key, "an object of short texts")
        if not self.directory or "\0" in self.directory or "\n" in self.directory:
            _refuse("directory", self.directory, "the path of a directory there")
        if self.kind is TargetKind.SSH:
            self._check_address()

    def _check_address(self) -> None:
        if len(self.host) > 255 or not (
            _HOST.fullmatch(self.host) or (":" in self.host and _ADDRESS_6.fullmatch(self.host))
        ):
            _refuse("host", self.host, "the name or address of a server, without a port")
        if not _USER.fullmatch(self.user):
            _refuse("user", self.user, "the name of a user there")
        if self.host_key is not None:
            fingerprint(self.host_key)

    @property
    def address(self) -> str:
        """What a credential is bound to."""
        return f"{self.host.lower().rstrip('.')}:{self.port}"

    @property
    def host_fingerprint(self) -> str | None:
        return None if self.host_key is None else fingerprint(self.host_key)


class TargetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A target as stored. `credential`: what is there of one (`password`, `private_key`), never itself."""

    target: Target
    credential: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    updated_by: str | None

    @property
    def id(self) -> UUID:
        return self.target.id

    @property
    def name(self) -> str:
        return self.target.name


class Step(StrEnum):
    """How far a probe has come; each step stands on the one before."""

    WORKER = "worker"
    """One that serves the queue takes the probe."""
    RESOLVE = "resolve"
    CONNECT = "connect"
    HOST_KEY = "host_key"
    LOGIN = "login"
    DIRECTORY = "directory"
    """Runs can have a directory of their own."""


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker found when it tried to reach a target: the result of a job of kind `probe`.

    `failed` is the step that failed (None: all went well). `host_key` is what the server showed, trusted or not: to
    save it is another act.
    """

    ok: bool
    failed: Step | None = None
    message: str = ""
    host_key: str | None = None
    fingerprint: str | None = None
    trusted: bool = False
    """The server showed the key that is pinned."""
    worker: str | None = None
    seconds: float | None = None


def fingerprint(host_key: str) -> str:
    """`SHA256:…` of a public key, as `ssh-keygen -l` prints it. Raises InvalidRequest."""
    parts = host_key.split()
    try:
        blob = base64.b64decode(parts[1], validate=True)
        named = _fields(blob)[0].decode("ascii")
    except (IndexError, ValueError, binascii.Error):
        named, blob = "", b""
    if not named or named != parts[0] or "\n" in host_key:
        _refuse("host_key", host_key, "a public key in one line, such as 'ssh-ed25519 AAAA…', as a probe returns it")
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _fields(blob: bytes) -> list[bytes]:
    """What a public key is made of: its kind, and at least one number or point. Raises ValueError."""
    fields = []
    while blob:
        size = 4 + int.from_bytes(blob[:4])
        if len(blob) < size:
            raise ValueError("the key was cut off")
        fields.append(blob[4:size])
        blob = blob[size:]
    if len(fields) < 2:
        raise ValueError("there is nothing but its kind")
    return fields


def _refuse(field: str, value: str, form: str) -> None:
    raise InvalidRequest(f"{field} must be {form}, not {value[:120]!r}", field=field)
