"""What every check is given, and what it gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from headway.clock import Clock
from headway.model.findings import Finding
from headway.store.contract import Store


class Patient(msgspec.Struct, frozen=True, kw_only=True):
    """An installation that is looked at. `environment` holds the `HEADWAY_*` variables and the like."""

    url: str
    store: Store
    clock: Clock
    environment: Mapping[str, str]


Check = Callable[[Patient], Awaitable[list[Finding]]]
