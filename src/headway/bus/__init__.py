"""WAKE: how processes hear of work at once. A bus is chosen by its URL; the scheme names an entry point of the group
`headway.buses`."""

from __future__ import annotations

from collections.abc import Callable

from headway.bus.contract import Bus
from headway.bus.line import Terms
from headway.plugins import Seam

BUSES = Seam("headway.buses", "bus", "use local://, postgresql://user@host/database or amqp://user@host/vhost")

BusMaker = Callable[[Terms], Bus]


def make_bus(url: str, *, patience: float = 10.0) -> Bus:
    """A bus for this URL, not yet opened. Raises ConfigurationError."""
    maker: BusMaker = BUSES.maker(url)
    return maker(Terms(url=url, patience=patience))


async def open_bus(url: str, *, patience: float = 10.0) -> Bus:
    """A bus for this URL, connected; `BusUnavailable` when it can't be reached within `patience` seconds."""
    bus = make_bus(url, patience=patience)
    await bus.open()
    return bus
