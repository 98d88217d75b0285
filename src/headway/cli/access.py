"""A command's way to the store, and its words when there is none."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from headway import compose
from headway.access.trail import entry
from headway.client import while_busy
from headway.clock import SystemClock
from headway.model.access import Caller
from headway.model.errors import ConfigurationError
from headway.store import make_store
from headway.store.contract import Store

T = TypeVar("T")

PATIENCE = 3.0
"""Seconds that a person at a terminal is let wait for a server that doesn't answer."""


class Change(msgspec.Struct, frozen=True):
    """What a command is about to change, for the audit log."""

    by: str
    action: str
    thing: str
    detail: Mapping[str, Any] = {}
    count: int = 1


def with_store(url: str | None, act: Callable[[Store], Awaitable[T]], change: Change | None = None) -> T:
    """`act` on the store named by flag, variable or default. Standard output is left to the command."""
    compose.configure_logs("warning", as_json=False)

    async def audited(store: Store) -> T:
        if change is not None:
            await put_down(store, change)
        return await act(store)

    return asyncio.run(_act(compose.store_url(url), audited))


async def put_down(store: Store, change: Change) -> None:
    """A line in the audit log, before anything is changed."""
    line = entry(caller(change.by), change.action, change.thing, **change.detail)
    line = msgspec.structs.replace(line, count=change.count)
    await while_busy(lambda: store.record([line]), SystemClock())


def caller(by: str) -> Caller:
    """Who is at the command line, and on which machine."""
    return Caller(by, socket.gethostname())


def who(given: str | None) -> str:
    """In whose name a command acts, for the history: `cli:ann`."""
    if given:
        return given
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):
        return f"cli:{os.getuid()}"


def refuse_missing_file(url: str) -> None:
    """A command that looks at jobs must not answer "none" from a file that it has just made itself."""
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite":
        return
    path = rest.removeprefix("/")
    if not path:
        raise ConfigurationError("sqlite:// is the memory of one process, and empty: name a file, sqlite:///path.db")
    if not Path(path).exists():
        raise ConfigurationError(
            f"there is no store {Path(path).absolute()}: name one with --store or {compose.STORE}, "
            f"or make it with `headway migrate --store {url}`"
        )


async def _act(url: str, act: Callable[[Store], Awaitable[T]]) -> T:
    refuse_missing_file(url)
    store = make_store(url)
    try:
        await store.open(PATIENCE)
        return await act(store)
    finally:
        await store.close()
