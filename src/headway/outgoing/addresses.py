"""Which addresses belong to the public Internet. Pure.

Everything else is refused: private and shared networks, this machine, the link, multicast, documentation, whatever is
reserved, and the addresses at which clouds tell machines their credentials. IPv6 addresses that carry an IPv4 address
are judged by it.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

_NOT_PUBLIC_4 = {
    IPv4Network("0.0.0.0/8"): "this network",
    IPv4Network("10.0.0.0/8"): "a private network",
    IPv4Network("100.64.0.0/10"): "shared by a provider's customers",
    IPv4Network("127.0.0.0/8"): "this machine",
    IPv4Network("168.63.129.16/32"): "a cloud's own service",
    IPv4Network("169.254.0.0/16"): "the link, and where clouds keep machines' credentials",
    IPv4Network("172.16.0.0/12"): "a private network",
    IPv4Network("192.0.0.0/24"): "reserved for protocols",
    IPv4Network("192.0.2.0/24"): "for documentation",
    IPv4Network("192.88.99.0/24"): "a relay that is no longer used",
    IPv4Network("192.168.0.0/16"): "a private network",
    IPv4Network("198.18.0.0/15"): "for benchmarks",
    IPv4Network("198.51.100.0/24"): "for documentation",
    IPv4Network("203.0.113.0/24"): "for documentation",
    IPv4Network("224.0.0.0/4"): "for groups of machines",
    IPv4Network("240.0.0.0/4"): "reserved",
}
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = {
    IPv6Network("::/128"): "no address",
    IPv6Network("::1/128"): "this machine",
    IPv6Network("64:ff9b:1::/48"): "translated to a private network",
    IPv6Network("100::/64"): "to be discarded",
    IPv6Network("2001::/23"): "reserved for protocols and tunnels",
    IPv6Network("2001:db8::/32"): "for documentation",
    IPv6Network("2002::/16"): "a tunnel that is no longer used",
    IPv6Network("3fff::/20"): "for documentation",
    IPv6Network("fc00::/7"): "a private network",
    IPv6Network("fe80::/10"): "the link",
    IPv6Network("fec0::/10"): "a private network",
    IPv6Network("ff00::/8"): "for groups of machines",
}
_CARRIERS = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""Mapped and translated addresses, and a form long out of use: the last 32 bits are an IPv4 address."""


def why_not_public(address: Address) -> str | None:
    """What the address is instead of a public one, in words; None if it is one."""
    if isinstance(address, IPv4Address):
        return next((words for network, words in _NOT_PUBLIC_4.items() if address in network), None)
    for network, words in _NOT_PUBLIC_6.items():
        if address in network:
            return words
    if (carried := carried_by(address)) is not None:
        return why_not_public(carried)
    return None if address in _PUBLIC_6 else "reserved"


def carried_by(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for, if any."""
    if isinstance(address, IPv4Address) or address.is_loopback or address.is_unspecified:
        return None
    if any(address in network for network in _CARRIERS):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
