"""A way onto a host: a shell that takes orders, and the files there. By SSH, or on the worker's own machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from headway.model.errors import HeadwayError
from headway.model.target import Step

READ_SIZE = 32 * 1024
"""How much of a file is read at once: what every SFTP server gives if it is there, so that less is the end."""
READ_AHEAD = 8


class LinkLost(HeadwayError):
    """The connection to a host broke; what was begun there goes on."""

    code = "link_lost"


class Unreachable(HeadwayError):
    """A host can't be worked with; `step` says how far it went."""

    code = "unreachable"

    def __init__(self, message: str, step: Step, *, permanent: bool = False, alarming: bool = False) -> None:
        super().__init__(message)
        self.step = step
        self.permanent = permanent
        """Trying again changes nothing: a wrong password, another host key."""
        self.alarming = alarming
        """Somebody may have come between: the server shows another key than the one that is pinned."""


class Channel(Protocol):
    """What a shell reads."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class File(Protocol):
    """An open file on the host."""

    async def read(self, offset: int) -> bytes:
        """At most `READ_SIZE` bytes from there; none at its present end."""

    async def close(self) -> None: ...


class Files(Protocol):
    """The files of a host, as its user sees them."""

    async def open(self, path: str) -> File | None:
        """None: there is no such file (yet)."""

    def glob(self, patterns: Sequence[str]) -> AsyncIterator[tuple[str, int]]:
        """Path and size of regular files."""


class Link(Protocol):
    """A connection to a host. Whatever is asked of it raises LinkLost once it is lost."""

    host_key: str | None

    async def shell(self, on_data: Callable[[bytes], None], on_lost: Callable[[], None]) -> Channel:
        """Start /bin/sh there."""

    async def files(self) -> Files: ...
    async def close(self) -> None: ...
