"""Where a request comes from, and whether others could read it on its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import msgspec

from headway.model.errors import ConfigurationError

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_FORWARDING = frozenset(
    {"x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "forwarded", "x-real-ip", "via"}
)


class Origin(msgspec.Struct, frozen=True):
    """The caller's address, and whether the line to it is encrypted."""

    address: str
    secure: bool
    """By TLS, ours or a trusted proxy's; or the line never leaves this machine."""
    encrypted: bool
    """By TLS: cookies may demand it."""


class Proxies:
    """The proxies that are trusted, by address or network: only what they say of a request's origin counts."""

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        self._networks = [_network(text) for text in trusted]

    def origin(self, peer: str, scheme: str, headers: Mapping[str, str]) -> Origin:
        """Of a connection from `peer`, with these headers (their names in lower case)."""
        address = _address(peer)
        if address is None or not is_forwarded(headers):
            return _direct(peer, scheme)
        if not self.trusts(address):
            # Should it be a proxy on this machine that nobody named: what it passes on has come from anywhere.
            return Origin(str(address), secure=scheme == "https", encrypted=scheme == "https")
        scheme = headers.get("x-forwarded-proto", scheme).rpartition(",")[2].strip().lower()
        return _direct(str(self._first_foreign(address, headers.get("x-forwarded-for", ""))), scheme)

    def trusts(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def _first_foreign(self, peer: Address, chain: str) -> Address:
        """From the right, the first address that is no proxy of ours: those to its left anybody may have written."""
        found = peer
        for text in reversed(chain.split(",")):
            address = _address(text.strip())
            if address is None:
                break
            found = address
            if not self.trusts(address):
                break
        return found


def is_forwarded(headers: Mapping[str, str]) -> bool:
    """Whether a proxy passes a request on for somebody else."""
    return not _FORWARDING.isdisjoint(headers)


def throttled_as(address: str) -> str:
    """What is counted together: an address, or all those of one customer's IPv6 network."""
    known = _address(address)
    if isinstance(known, IPv6Address):
        return f"address:{ip_network((known, 64), strict=False)}"
    return f"address:{address}"


def is_loopback(host: str) -> bool:
    """Whether who listens there is heard on this machine only."""
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


@lru_cache(maxsize=4096)
def _direct(peer: str, scheme: str) -> Origin:
    """Of a request that nobody passes on. What is no address is a Unix socket: somebody on this machine."""
    address, encrypted = _address(peer), scheme == "https"
    local = address is None or address.is_loopback
    return Origin(peer if address is None else str(address), secure=encrypted or local, encrypted=encrypted)


@lru_cache(maxsize=4096)
def _address(text: str) -> Address | None:
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _network(text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise ConfigurationError(
            f"HEADWAY_TRUSTED_PROXIES: {text!r} is no address or network such as 10.0.0.5 or 10.1.0.0/16"
        ) from None
