"""Waiting for something to become true, instead of sleeping and hoping."""

from headway.contracts.waiting import LOOK_EVERY, PATIENCE, block_until, until

__all__ = ["LOOK_EVERY", "PATIENCE", "block_until", "until"]
