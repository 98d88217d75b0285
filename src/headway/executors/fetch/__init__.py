"""Kind `fetch`: the content of a URL."""

from __future__ import annotations

from headway.executors.contract import Executor, Setup, require


def make(setup: Setup) -> Executor:
    """The executor for a worker."""
    from headway.executors.fetch.executor import FetchExecutor

    require("aiohttp", extra="server")
    return FetchExecutor(setup)
