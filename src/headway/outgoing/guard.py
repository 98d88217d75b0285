"""SSRF: which connections may be made. Asked with the very address that a socket is about to connect to, so neither
names that resolve differently the next time nor redirects lead around it."""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import msgspec

from headway.model.errors import ConfigurationError
from headway.outgoing.addresses import Address, carried_by, why_not_public
from headway.outgoing.errors import AddressRefused

ALLOW_PRIVATE = "HEADWAY_ALLOW_PRIVATE"

_HOST = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")


class Allowed(msgspec.Struct, frozen=True):
    """What may be reached although it isn't public."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    hosts: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, given: Iterable[str]) -> Allowed:
        """Addresses, networks and hosts: `10.1.0.0/16`, `::1`, `*.corp.example`. Raises ConfigurationError."""
        entries = [entry.strip().lower() for entry in given]
        networks = [network for entry in entries if (network := _network(entry)) is not None]
        hosts = [entry.rstrip(".") for entry in entries if _network(entry) is None]
        wrong = [host for host in hosts if not _HOST.fullmatch(host)]
        if wrong:
            raise ConfigurationError(
                f"{ALLOW_PRIVATE} must list addresses, networks or hosts, such as 10.1.0.0/16 or *.corp.example, "
                f"not {wrong[0]!r}"
            )
        return cls(tuple(networks), frozenset(hosts))

    def covers(self, host: str, address: Address) -> bool:
        name = host.lower().rstrip(".")
        parents = name.split(".")
        wild = ("*." + ".".join(parents[start:]) for start in range(1, len(parents)))
        if name in self.hosts or any(form in self.hosts for form in wild):
            return True
        forms = (address, carried_by(address))
        return any(form in network for form in forms if form is not None for network in self.networks)


class Endpoint(msgspec.Struct, frozen=True):
    """Where a part of the service itself listens."""

    host: str
    port: int


class Guard:
    """Says whether a connection may be made."""

    def __init__(self, allowed: Allowed, own: Collection[Endpoint] = (), near: Collection[Endpoint] = ()) -> None:
        self._allowed = allowed
        self._own = tuple(own)
        self._near = near

    def check(self, host: str, address: str, port: int) -> None:
        """Raises AddressRefused."""
        target = ip_address(address.partition("%")[0])
        if self._is_own(target, port):
            raise AddressRefused(host, address, port, "it is a port of this service itself")
        if Endpoint(str(target), port) in self._near:
            return
        private = why_not_public(target)
        if private is not None and not self._allowed.covers(host, target):
            raise AddressRefused(
                host, address, port, f"it is {private}; if it is meant to be reached, name it in {ALLOW_PRIVATE}"
            )

    def _is_own(self, target: Address, port: int) -> bool:
        plain = carried_by(target) or target
        return any(
            port == own.port
            and (
                plain.is_loopback
                or plain.is_unspecified
                or str(plain) in _addresses_of(own.host)
                or _on_this_machine(str(plain))
            )
            for own in self._own
        )


def _network(entry: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _addresses_of(host: str) -> frozenset[str]:
    try:
        return _looked_up(host)
    except OSError:
        return frozenset()


@lru_cache(maxsize=256)
def _looked_up(host: str) -> frozenset[str]:
    """Remembered once it is known. Raises OSError."""
    return frozenset(str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))


@lru_cache(maxsize=4096)
def _on_this_machine(address: str) -> bool:
    """Only addresses of this machine can be bound to; nothing is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
