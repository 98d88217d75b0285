"""A house on a store of our own, whose inside tests may look at."""

from headway.contracts.stores import house as contract
from headway.contracts.stores.house import ERROR, TTL, accepted, ids, words, worker
from headway.store.sql import SqlStore

__all__ = ["ERROR", "TTL", "House", "accepted", "ids", "words", "worker"]


class House(contract.House):
    """One store under test."""

    store: SqlStore
