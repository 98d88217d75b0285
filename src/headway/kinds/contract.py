"""What a kind of job promises to those who submit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from headway.model.sealed import Attachment, Enclosed, Shared
from headway.model.submission import Dedupe
from headway.model.worker import FunctionInfo


class Functions(Protocol):
    """The functions that workers have announced."""

    async def function(self, name: str) -> FunctionInfo | None: ...


class Safe(Protocol):
    """Where a job's scripts, files and credentials go (`headway.vault.vault.Vault`)."""

    async def content(self, attachment: Attachment) -> bytes:
        """What is attached. Raises AttachmentNotFound, SealBroken, VaultLocked."""

    async def attach(self, asked: Enclosed | Shared) -> Attachment:
        """Raises AttachmentNotFound, JobNotFound, VaultLocked."""

    async def require_target(self, named: str) -> None:
        """Raises TargetNotFound."""

    async def require_secrets(self, names: Sequence[str]) -> None:
        """Raises SecretNotFound."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A job as far as its kind decides it; a body may overrule all but the payload."""

    payload: str
    """JSON, as the executor reads it."""
    name: str | None
    """What the job is called if nobody says; None: somebody must."""
    fields: Mapping[str, Any] = {}
    """Fields of `Submission`, such as `timeout` and `retry`."""
    dedupe: Dedupe | float | None = None
    dedupe_key: str | None = None
    """What jobs that ask for the same have in common; None: their name and payload."""
    warnings: tuple[str, ...] = ()
    attachments: tuple[Enclosed | Shared, ...] = ()
    """Scripts, files and credentials of the job. They are sealed, stored with it, and given to its executor by
    `Setup.secrets`; the payload must not hold them."""
    files_limit: int | None = None
    """Bytes that the files among them may have together."""
    check: Callable[[bytes], Awaitable[None]] | None = None
    """Looks at the first of them, where that is in the store already. Raises InvalidJob."""
    target: str | None = None
    """The name of a target that must be there."""
    secrets: tuple[str, ...] = ()
    """The names of secrets that must be there."""


class Kind(Protocol):
    """One kind of job, as it is asked for. The entry point is called without arguments and gives one."""

    name: str
    fields: type[msgspec.Struct] | None
    """What a body has besides what all bodies have (`body.py`); None: anything. The descriptions of its fields
    (`msgspec.Meta`) are shown to whoever gets one wrong, and make up the kind's part of the API's documentation."""
    private: frozenset[str]
    """Fields that must not travel through a broker, where others could read them."""

    async def prepare(self, fields: Any, functions: Functions) -> Prepared:
        """What becomes of these fields, an instance of `fields` (a dict where that is None). Raises InvalidJob."""
