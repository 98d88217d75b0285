"""What a measurement is given to work with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from headway.bench.sites import Site
from headway.bench.sizes import Sizes


class Stage(msgspec.Struct, frozen=True):
    """What a measurement is given."""

    site: Site
    sizes: Sizes
    step: Callable[[str], None]
    """Called before each run with what comes next."""

    @asynccontextmanager
    async def store(self, like: str | None = None) -> AsyncIterator[str]:
        """A store for one run, empty or with the rows of another."""
        url = await (self.site.copy(like) if like else self.site.fresh())
        try:
            yield url
        finally:
            await self.site.drop(url)

    def ours(self, role: str) -> str:
        return f"ours.{role}"

    def bare(self, role: str) -> str:
        return f"{self.site.bare}.{role}"
