"""WHAT JOBS LEAVE: their output and artifacts. In the store by default; elsewhere by a URL, whose scheme names an entry
point of the group `headway.outputs`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from headway.model.errors import ConfigurationError
from headway.output.contract import Outputs
from headway.output.stored import StoredOutputs
from headway.store.contract import Store

GROUP = "headway.outputs"

OutputsMaker = Callable[[str, Store], Outputs]


def make_outputs(url: str | None, store: Store) -> Outputs:
    """Where output is kept; without a URL in the store itself. Raises ConfigurationError."""
    if url is None or url == "store":
        return StoredOutputs(store)
    scheme, separator, _ = url.partition("://")
    found = _places()
    if not separator or scheme not in found:
        raise ConfigurationError(
            f"{url!r} is no place for output: leave it out (then it is kept in the store), or use "
            f"{' or '.join(sorted(f'{name}://…' for name in found))}"
        )
    try:
        maker: OutputsMaker = found[scheme].load()
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"output at {scheme}:// needs the package {error.name!r}: pip install 'headway[{scheme}]'"
        ) from error
    return maker(url, store)


@cache
def _places() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@asynccontextmanager
async def open_outputs(url: str | None, store: Store) -> AsyncIterator[Outputs]:
    """The same for a while; its connections are let go of at the end. Raises ConfigurationError."""
    outputs = make_outputs(url, store)
    try:
        yield outputs
    finally:
        await outputs.close()
