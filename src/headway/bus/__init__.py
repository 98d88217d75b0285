"""WAKE: how processes hear of work at once. A bus is chosen by the scheme of its URL."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from headway.bus.contract import Bus, redacted
from headway.bus.line import Terms
from headway.model.errors import ConfigurationError

_LOCAL, _NOTIFY, _RABBIT = "headway.bus.local", "headway.bus.notify", "headway.bus.rabbit"

BUSES = {"local": _LOCAL, "postgresql": _NOTIFY, "postgres": _NOTIFY, "amqp": _RABBIT, "amqps": _RABBIT}
"""The module for each scheme; each has `from_terms`."""
EXTRAS = {_NOTIFY: "postgres", _RABBIT: "rabbitmq"}


def make_bus(url: str, *, patience: float = 10.0) -> Bus:
    """A bus for this URL, not yet opened."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in BUSES:
        raise ConfigurationError(
            f"{redacted(url)!r} is no bus: use local://, postgresql://user@host/database or amqp://user@host/vhost"
        )
    return _maker(BUSES[scheme])(Terms(url=url, patience=patience))


async def open_bus(url: str, *, patience: float = 10.0) -> Bus:
    """A bus for this URL, connected; `BusUnavailable` when it can't be reached within `patience` seconds."""
    bus = make_bus(url, patience=patience)
    await bus.open()
    return bus


def _maker(module: str) -> Callable[[Terms], Bus]:
    try:
        maker: Callable[[Terms], Bus] = import_module(module).from_terms
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"this bus needs the package {error.name!r}: pip install 'headway[{EXTRAS[module]}]'"
        ) from error
    return maker
