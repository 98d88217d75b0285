"""A store in memory with a clock of the test's own, and the way to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from headway.clock import FakeClock
from headway.store.sqlite import sqlite_store


class Desk:
    """Counts how often the store was asked."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.store = sqlite_store(":memory:", clock=clock)
        self.asked = 0

    async def reach(self, act: Any) -> Any:
        self.asked += 1
        return await act(self.store)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk(FakeClock())
    await made.store.open()
    yield made
    await made.store.close()
