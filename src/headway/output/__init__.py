"""WHAT JOBS LEAVE: their output and artifacts. In the store by default; elsewhere by a URL, whose scheme names an entry
point of the group `headway.outputs`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from headway.output.contract import Outputs
from headway.output.stored import StoredOutputs
from headway.plugins import Seam
from headway.store.contract import Store

OUTPUTS = Seam(
    "headway.outputs",
    "place for output",
    "leave it out (then it is kept in the store), or use file:///directory or s3://bucket/prefix",
)

OutputsMaker = Callable[[str, Store], Outputs]


def make_outputs(url: str | None, store: Store) -> Outputs:
    """Where output is kept; without a URL in the store itself. Raises ConfigurationError."""
    if url is None or url == "store":
        return StoredOutputs(store)
    maker: OutputsMaker = OUTPUTS.maker(url)
    return maker(url, store)


@asynccontextmanager
async def open_outputs(url: str | None, store: Store) -> AsyncIterator[Outputs]:
    """The same for a while; its connections are let go of at the end. Raises ConfigurationError."""
    outputs = make_outputs(url, store)
    try:
        yield outputs
    finally:
        await outputs.close()
