"""WHERE jobs live. A store is chosen by its URL; the scheme names an entry point of the group `headway.stores`."""

from __future__ import annotations

from collections.abc import Callable

from headway.clock import Clock
from headway.plugins import Seam
from headway.store.contract import Store

STORES = Seam(
    "headway.stores",
    "store",
    "use sqlite:///path/to/headway.db, sqlite:// (memory, for tests), or postgresql://user@host/database",
)

StoreMaker = Callable[[str, Clock | None], Store]


def store_maker(url: str) -> StoreMaker:
    """What makes stores for URLs of this scheme. Raises ConfigurationError."""
    maker: StoreMaker = STORES.maker(url)
    return maker


def make_store(url: str, clock: Clock | None = None) -> Store:
    """A store for this URL, not yet opened. Without a clock the store's own time holds."""
    return store_maker(url)(url, clock)
