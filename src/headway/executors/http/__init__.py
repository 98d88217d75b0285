"""Kind `http`: a request to somebody's server, whose answer is the result."""

from __future__ import annotations

from headway.executors.contract import Executor, Setup, require


def make(setup: Setup) -> Executor:
    """The executor for a worker."""
    from headway.executors.http.executor import HttpExecutor

    require("aiohttp", extra="server")
    return HttpExecutor(setup)
