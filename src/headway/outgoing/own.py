"""Where the service itself listens, told by its settings: no job may have it send requests there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import SplitResult, urlsplit

from headway.outgoing.guard import Endpoint
from headway.settings import Settings

_PORTS = {"postgresql": 5432, "postgres": 5432, "amqp": 5672, "amqps": 5671, "http": 80, "https": 443}
"""Where they are when a URL doesn't say; of stores and buses that other packages bring, only the URL can."""
_METRICS = (9101, 9102)


def own_endpoints(urls: Iterable[str | None], held: Settings) -> tuple[Endpoint, ...]:
    """Of store, bus and API by their URLs, and of what this process and its neighbours listen on by the settings."""
    metrics = _METRICS if held.metrics_port is None else (held.metrics_port,)
    listening = (Endpoint(held.host, port) for port in (held.port, *metrics) if port)
    return (*_of_urls(urls), *listening)


def _of_urls(urls: Iterable[str | None]) -> Iterator[Endpoint]:
    for url in urls:
        parts = urlsplit(url or "")
        usual = _PORTS.get(parts.scheme.partition("+")[0])
        for place in parts.netloc.rpartition("@")[2].split(","):
            # One by one: PostgreSQL's URLs may name several hosts, each with a port of its own.
            one = urlsplit(f"//{place}")
            if one.hostname and (port := _port(one) or usual):
                yield Endpoint(one.hostname, port)


def _port(place: SplitResult) -> int | None:
    try:
        return place.port
    except ValueError:
        # What stands there is a name, as in `local://a:b`, and no server's address.
        return None
