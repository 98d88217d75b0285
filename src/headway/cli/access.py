"""A command's way to the store, and its words when there is none."""

from __future__ import annotations

import asyncio
import getpass
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from headway import compose
from headway.model.errors import ConfigurationError
from headway.store import make_store
from headway.store.contract import Store

T = TypeVar("T")

PATIENCE = 3.0
"""Seconds that a person at a terminal is let wait for a server that doesn't answer."""


def with_store(url: str | None, act: Callable[[Store], Awaitable[T]]) -> T:
    """`act` on the store named by flag, variable or default. Standard output is left to the command."""
    compose.configure_logs("warning", as_json=False)
    return asyncio.run(_act(compose.store_url(url), act))


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
