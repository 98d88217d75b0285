"""Where requests come from, and whom to believe about it."""

from __future__ import annotations

import pytest

from headway.access.origin import Proxies, is_loopback, throttled_as
from headway.model.errors import ConfigurationError

FORWARDED = {"x-forwarded-for": "198.51.100.1, 192.0.2.7", "x-forwarded-proto": "https"}


@pytest.mark.parametrize(
    ("peer", "scheme", "headers", "secure"),
    [
        ("127.0.0.1", "http", {}, True),
        ("::1", "http", {}, True),
        ("::ffff:127.0.0.1", "http", {}, True),
        ("192.0.2.7", "http", {}, False),
        ("2001:db8::7", "http", {}, False),
        ("192.0.2.7", "https", {}, True),
        ("192.0.2.7", "http", FORWARDED, False),
        ("127.0.0.1", "http", FORWARDED, False),
        ("127.0.0.1", "http", {"forwarded": "for=192.0.2.7"}, False),
        ("127.0.0.1", "http", {"x-real-ip": "192.0.2.7"}, False),
        ("127.0.0.1", "http", {"via": "1.1 proxy"}, False),
        ("", "http", {}, True),
    ],
)
def test_a_line_is_secure_if_encrypted_or_if_it_stays_on_the_machine(
    peer: str, scheme: str, headers: dict[str, str], secure: bool
) -> None:
    origin = Proxies().origin(peer, scheme, headers)
    assert origin.secure is secure
    assert origin.address == (peer.removeprefix("::ffff:"))


def test_a_trusted_proxy_tells_the_address_and_whether_it_was_encrypted() -> None:
    proxies = Proxies(["10.0.0.0/8", "192.0.2.7"])
    origin = proxies.origin("10.1.2.3", "http", {"x-forwarded-for": "198.51.100.1", "x-forwarded-proto": "https"})
    assert (origin.address, origin.secure, origin.encrypted) == ("198.51.100.1", True, True)
    origin = proxies.origin("10.1.2.3", "http", {"x-forwarded-for": "198.51.100.1"})
    assert (origin.address, origin.secure) == ("198.51.100.1", False)


def test_of_several_addresses_the_last_that_is_no_proxy_counts() -> None:
    """Those to the left of it anybody can write."""
    proxies = Proxies(["10.0.0.0/8"])
    chain = {"x-forwarded-for": "127.0.0.1, 198.51.100.9, 10.9.9.9"}
    assert proxies.origin("10.1.2.3", "http", chain).address == "198.51.100.9"
    assert proxies.origin("10.1.2.3", "http", {"x-forwarded-for": "nonsense, 10.9.9.9"}).address == "10.9.9.9"


def test_a_proxy_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="HEADWAY_TRUSTED_PROXIES: 'proxy'"):
        Proxies(["proxy"])


def test_neighbours_in_one_ipv6_network_are_counted_together() -> None:
    assert throttled_as("2001:db8::1") == throttled_as("2001:db8::ffff")
    assert throttled_as("2001:db8::1") != throttled_as("2001:db8:0:1::1")
    assert throttled_as("192.0.2.1") != throttled_as("192.0.2.2")


def test_loopback_is_known() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.9.9.9", "::1"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.0.2.1", "example.com"]))
