"""What other packages may bring: stores, buses and places for output, each chosen by the scheme of its URL.

The scheme is the name of an entry point; what that loads is the maker. docs/plugins.md tells how to write one.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import msgspec

from headway.model.errors import ConfigurationError

_EXTRAS = {"asyncpg": "headway[postgres]", "aio_pika": "headway[rabbitmq]", "aiobotocore": "headway[s3]"}
"""What brings the libraries that our own makers need."""


class Seam(msgspec.Struct, frozen=True):
    """A place where packages join in: the group of their entry points, what they bring, and what to say to those who
    name none of them."""

    group: str
    what: str
    advice: str

    def maker(self, url: str) -> Any:
        """What the package for this URL makes its part with. Raises ConfigurationError."""
        scheme, separator, _ = url.partition("://")
        found = installed(self.group)
        if not separator or scheme not in found:
            known = ", ".join(f"{name}://" for name in sorted(found))
            raise ConfigurationError(f"{redacted(url)!r} is no {self.what}: {self.advice} (installed: {known})")
        try:
            return found[scheme].load()
        except ModuleNotFoundError as error:
            package = _EXTRAS.get(str(error.name), error.name)
            raise ConfigurationError(
                f"the {self.what} {scheme}:// needs the package {error.name!r}: pip install '{package}'"
            ) from error


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of this group by name, as they were when first asked for."""
    return {point.name: point for point in entry_points(group=group)}


def redacted(url: str) -> str:
    """The address without its password and without its options, which may hold another."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    authority, _, path = rest.partition("?")[0].rpartition("@")
    user = authority.partition(":")[0]
    return (
        f"{scheme}{separator}{user}:***@{path}" if ":" in authority else f"{scheme}{separator}{rest.partition('?')[0]}"
    )
