"""SSRF: several hundred ways to reach what must not be reached. None of them makes a connection."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Any

import pytest

from headway.clock import SystemClock
from headway.model.errors import ConfigurationError
from headway.outgoing.addresses import why_not_public
from headway.outgoing.client import Outgoing
from headway.outgoing.errors import AddressRefused, InvalidTarget, RequestFailed
from headway.outgoing.guard import Allowed, Endpoint, Guard
from headway.outgoing.messages import Request
from headway.outgoing.own import own_endpoints
from headway.settings import Settings
from tests.outgoing.site import Site

NETWORKS_4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
]
NETWORKS_6 = [
    "::/128",
    "::1/128",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/32",
    "2001:2::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "4000::/3",
    "5f00::/16",
    "fc00::/7",
    "fd00:ec2::/32",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "ff02::1/128",
]
INNER = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "172.16.0.1", "100.100.100.200", "0.0.0.0"]


def in_networks() -> Iterator[str]:
    for network in map(ip_network, [*NETWORKS_4, *NETWORKS_6]):
        first, last = int(network[0]), int(network[-1])
        for number in {first, (first + last) // 2, last}:
            address = (type(network[0]))(number)
            yield f"[{address}]" if address.version == 6 else str(address)


def carried() -> Iterator[str]:
    """IPv4 addresses within IPv6 ones."""
    for text in INNER:
        number = int(IPv4Address(text))
        high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
        yield f"[::ffff:{text}]"
        yield f"[::FFFF:{high}:{low}]"
        yield f"[0:0:0:0:0:ffff:{high}:{low}]"
        yield f"[64:ff9b::{text}]"
        yield f"[64:ff9b:1::{high}:{low}]"
        yield f"[2002:{high}:{low}::1]"
        yield f"[::{high}:{low}]"


def in_disguise() -> Iterator[str]:
    """Numbers that are addresses to whoever looks them up."""
    for text in INNER[:6]:
        number, parts = int(IPv4Address(text)), [int(part) for part in text.split(".")]
        yield str(number)
        yield f"0x{number:x}"
        yield f"0X{number:X}"
        yield f"0{number:o}"
        yield ".".join(f"0{part:o}" for part in parts)
        yield ".".join(f"{part:#x}" for part in parts)
        yield f"{parts[0]}.{number & 0xFFFFFF}"
        yield f"{parts[0]}.{parts[1]}.{number & 0xFFFF}"
        yield ".".join(f"0x{part:08x}" for part in parts)
    yield from ("0", "0x7f.1", "0177.1", "①②⑦.⓪.⓪.①", "\uff11\uff12\uff17.0.0.1")


def by_name() -> Iterator[str]:
    yield from (
        "localhost",
        "LocalHost",
        "localhost.",
        "metadata.google.internal",
        "intranet.test",
        "mixed-case.TEST",
        "six.test",
        "mapped.test",
        "both.test",
        "xn--bcher-kva.test",
        "bücher.test",
    )


NAMES = {
    "localhost": ["127.0.0.1", "::1"],
    "metadata.google.internal": ["169.254.169.254"],
    "intranet.test": ["10.1.2.3"],
    "mixed-case.test": ["192.168.0.9"],
    "six.test": ["fd00:ec2::254"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "both.test": ["10.0.0.1", "fe80::1"],
    "xn--bcher-kva.test": ["127.0.0.1"],
    "rebinding.test": ["127.0.0.1"],
}

CORPUS = [*in_networks(), *carried(), *in_disguise(), *by_name()]


def look_up(host: str, port: int, *args: Any) -> list[Any]:
    """Of names, those above; of numbers, what the system makes of them. No name server is asked."""
    addresses = NAMES.get(host.lower().rstrip("."))
    if addresses is None:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return [info for each in addresses for info in socket.getaddrinfo(each, port, type=socket.SOCK_STREAM)]


@asynccontextmanager
async def outgoing(*allow: str, own: tuple[Endpoint, ...] = (), **options: Any) -> AsyncIterator[Outgoing]:
    client = Outgoing(SystemClock(), Guard(Allowed.parse(allow), own), **{"look_up": look_up, **options})
    try:
        yield client
    finally:
        await client.close()


def a_request(url: str) -> Request:
    return Request(url=url, max_size=1000, max_redirects=3, connect_timeout=5, read_timeout=5)


class Trap:
    """Listens on every address of this machine, and counts who comes."""

    def __init__(self) -> None:
        self.came = 0
        self.port = 0

    async def __aenter__(self) -> Trap:
        self._servers = [await asyncio.start_server(self._take, "0.0.0.0", 0)]
        self.port = self._servers[0].sockets[0].getsockname()[1]
        if socket.has_ipv6:
            with contextlib.suppress(OSError):
                self._servers.append(await asyncio.start_server(self._take, "::", self.port))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came += 1
        writer.close()


def test_the_corpus_is_large_and_says_each_thing_once() -> None:
    assert len(CORPUS) >= 200
    assert len(set(CORPUS)) == len(CORPUS)


async def test_nothing_of_the_corpus_is_reached() -> None:
    async with Trap() as trap, outgoing() as client:
        for host in CORPUS:
            with pytest.raises((AddressRefused, InvalidTarget)):
                await client.ask(a_request(f"http://{host}:{trap.port}/"))
        assert trap.came == 0
        # The trap does catch: of the same addresses, one that is allowed is reached.
        async with outgoing("127.0.0.1") as allowed:
            with pytest.raises(RequestFailed):
                await allowed.ask(a_request(f"http://127.0.0.1:{trap.port}/"))
        assert trap.came >= 1


async def test_no_way_of_writing_a_url_leads_around_the_guard() -> None:
    async with Trap() as trap, outgoing() as client:
        for url in (
            "http://example.com@127.0.0.1:{port}/",
            "http://example.com:80@127.0.0.1:{port}/",
            "http://127.0.0.1:{port}#@example.com/",
            "http://127.0.0.1:{port}?@example.com/",
            "http://127.0.0.1:{port}\\@example.com/",
            "http:\\\\127.0.0.1:{port}\\",
            "http:///127.0.0.1:{port}/",
            "http:127.0.0.1:{port}/",
            "//127.0.0.1:{port}/",
            "HTTP://127.0.0.1:{port}/",
            "http://127.0.0.1.:{port}/",
            "http://127.0.0.1%00.example.com:{port}/",
            "http://127.0.0.1%2f@example.com:{port}/",
            "http://[::1%25lo]:{port}/",
            "http://[::ffff:127.0.0.1%25lo]:{port}/",
            "http://0/:{port}/",
            "https://127.0.0.1:{port}/",
            "file://127.0.0.1:{port}/",
            "ftp://127.0.0.1:{port}/",
            "gopher://127.0.0.1:{port}/_x",
            "dict://127.0.0.1:{port}/",
            "ldap://127.0.0.1:{port}/",
            "unix:///var/run/docker.sock",
            "data:text/plain,hello",
            "ws://127.0.0.1:{port}/",
            "http+unix://127.0.0.1:{port}/",
        ):
            with pytest.raises(RequestFailed):
                await client.ask(a_request(url.format(port=trap.port)))
        assert trap.came == 0


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "64:ff9b::808:808"])
def test_public_addresses_pass(address: str) -> None:
    Guard(Allowed()).check(address, address, 443)
    assert why_not_public(ip_address(address)) is None


async def test_what_is_named_may_be_reached_and_its_neighbours_may_not(site: Site) -> None:
    for allow, works, refused in (
        (["127.0.0.1"], ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f000001"], ["127.0.0.2", "[::1]"]),
        (["127.0.0.0/30"], ["127.0.0.1", "mapped.test"], ["127.0.0.9"]),
        (["LocalHost"], ["localhost", "localhost."], ["127.0.0.1"]),
        (["*.test"], ["rebinding.test", "mapped.test"], ["localhost"]),
        (["xn--bcher-kva.test"], ["bücher.test"], ["rebinding.test"]),
        (["10.0.0.0/8", "fd00::/8"], [], ["127.0.0.1", "localhost"]),
    ):
        async with outgoing(*allow) as client:
            for host in works:
                assert (await client.ask(a_request(f"http://{host}:{site.port}/"))).status == 200, (allow, host)
            for host in refused:
                with pytest.raises(AddressRefused, match="HEADWAY_ALLOW_PRIVATE"):
                    await client.ask(a_request(f"http://{host}:{site.port}/"))


async def test_a_name_that_means_another_address_the_next_time_is_checked_again(site: Site) -> None:
    site.say("/", (200, {"Connection": "close"}, b"once"))
    answers = [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2", "127.0.0.1"]]

    def flip(host: str, port: int, *args: Any) -> list[Any]:
        return [info for each in answers.pop(0) for info in socket.getaddrinfo(each, port, type=socket.SOCK_STREAM)]

    async with outgoing("127.0.0.1", look_up=flip, names_kept=0) as client:
        url = f"http://rebinding.test:{site.port}/"
        assert (await client.ask(a_request(url))).content == b"once"
        with pytest.raises(AddressRefused, match=r"rebinding.test \(127.0.0.2\)"):
            await client.ask(a_request(url))
        # Of several addresses only those that may be reached are tried; and there is no look-up behind the check.
        assert (await client.ask(a_request(url))).content == b"once"
        assert (answers, len(site.asked("/"))) == ([], 2)


async def test_the_service_s_own_ports_are_refused_even_where_the_machine_is_allowed(site: Site) -> None:
    with Site() as ours:
        for own in (Endpoint("127.0.0.1", ours.port), Endpoint("0.0.0.0", ours.port), Endpoint("localhost", ours.port)):
            async with outgoing("127.0.0.0/8", "localhost", "::1", own=(own,)) as client:
                for host in ("127.0.0.1", "localhost", "127.0.0.5", "[::ffff:127.0.0.1]", "0x7f000001"):
                    with pytest.raises(AddressRefused, match="a port of this service itself"):
                        await client.ask(a_request(f"http://{host}:{ours.port}/"))
                assert (await client.ask(a_request(f"{site.url}/"))).status == 200
        assert ours.asked("/") == []


def test_what_the_service_s_own_ports_are() -> None:
    several = "postgresql://u:p@a.example:5433,b.example,[2001:db8::1]:5434/x?target_session_attrs=primary"
    urls = (
        "postgresql://u:p@db.example/x",
        several,
        "amqps://mq.example/",
        "nats://u:p@nats.example:4222",
        "nats://unsaid.example",
        "local://one:two",
        "sqlite:///x.db",
        None,
        "http://127.0.0.1:7777",
    )
    assert set(own_endpoints(urls, Settings(port=8123))) == {
        Endpoint("db.example", 5432),
        Endpoint("a.example", 5433),
        Endpoint("b.example", 5432),
        Endpoint("2001:db8::1", 5434),
        Endpoint("mq.example", 5671),
        Endpoint("nats.example", 4222),
        Endpoint("127.0.0.1", 7777),
        Endpoint("127.0.0.1", 8123),
        Endpoint("127.0.0.1", 9101),
        Endpoint("127.0.0.1", 9102),
    }


@pytest.mark.parametrize("wrong", ["http://10.0.0.1", "10.0.0.0/99", "a b", "-x", "1.2.3.4:80"])
def test_an_allow_list_that_can_not_be_meant_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="HEADWAY_ALLOW_PRIVATE"):
        Allowed.parse([wrong])


def test_a_look_up_that_failed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(Allowed.parse(["203.0.113.0/24"]), (Endpoint("api.of-the-test.example", 8080),))
    address = "203.0.113.9"

    def fails(*args: object, **rest: object) -> object:
        raise socket.gaierror("not yet")

    def finds(*args: object, **rest: object) -> object:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("203.0.113.9", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    guard.check("elsewhere.example", address, 8080)
    monkeypatch.setattr(socket, "getaddrinfo", finds)
    with pytest.raises(AddressRefused):
        guard.check("elsewhere.example", address, 8080)


def test_an_endpoint_near_by_may_be_reached_and_nothing_beside_it() -> None:
    near: set[Endpoint] = set()
    guard = Guard(Allowed(), [Endpoint("127.0.0.1", 8000)], near)
    with pytest.raises(AddressRefused):
        guard.check("127.0.0.1", "127.0.0.1", 18200)
    near |= {Endpoint("127.0.0.1", 18200), Endpoint("127.0.0.1", 8000)}
    guard.check("127.0.0.1", "127.0.0.1", 18200)
    for port in (18201, 8000):
        with pytest.raises(AddressRefused):
            guard.check("127.0.0.1", "127.0.0.1", port)
