"""WHERE jobs live. A store is chosen by its URL; the scheme names an entry point of the group `headway.stores`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from headway.clock import Clock
from headway.model.errors import ConfigurationError
from headway.store.contract import Store

StoreMaker = Callable[[str, Clock | None], Store]


def store_maker(url: str) -> StoreMaker:
    """What makes stores for URLs of this scheme."""
    scheme, separator, _ = url.partition("://")
    found = {point.name: point for point in entry_points(group="headway.stores")}
    if not separator or scheme not in found:
        raise ConfigurationError(
            f"{url!r} is no store: use sqlite:///path/to/headway.db, sqlite:// (memory, for tests), "
            f"or postgresql://user@host/database"
        )
    try:
        maker: StoreMaker = found[scheme].load()
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the store {scheme}:// needs the package {error.name!r}: pip install 'headway[postgres]'"
        ) from error
    return maker


def make_store(url: str, clock: Clock | None = None) -> Store:
    """A store for this URL, not yet opened. Without a clock the store's own time holds."""
    return store_maker(url)(url, clock)
