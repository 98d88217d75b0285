"""What tests of numbers, traces and alerts share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.conftest import api_template, postgres_store_url, site, sites, store_url
from tests.flow.processes import Processes

__all__ = ["api_template", "postgres_store_url", "site", "sites", "store_url"]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as started:
        yield started
