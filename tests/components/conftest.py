"""The components over each store that several processes can share, with a clock of the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.components.office import Office
from tests.contract.conftest import (  # noqa: F401 - fixtures are found by their names
    clock,
    make_shared_store,
    migrated_url,
    postgres_template,
    shared,
    wipe_clean,
    wiped_url,
)
from tests.contract.house import House
from tests.logs import Captured, captured


@pytest.fixture
async def office(shared: House) -> Office:  # noqa: F811 - pytest's way
    return Office(shared)


@pytest.fixture
def lines() -> Iterator[Captured]:
    """What is logged from level info on."""
    with captured() as lines:
        yield lines
