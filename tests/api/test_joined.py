"""Answers on their way out: head and content in one piece, and nothing held back for longer than a moment."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import cast

import httpx

from headway.api.joined import Joined
from tests.api.conftest import Site

HEAD, CONTENT = b"HTTP/1.1 200 OK\r\n\r\n", b"content"
ANSWER = b'{"status":"ok"}'
TIMES = 1000
"""Of so many some come in two halves, if they are sent so."""


class Wire:
    """A transport that remembers what it is given at a time."""

    def __init__(self) -> None:
        self.packets: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.packets.append(data)

    def writelines(self, parts: Sequence[bytes]) -> None:
        self.packets.append(b"".join(parts))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def joined(wire: Wire) -> Joined:
    return Joined(cast("asyncio.Transport", wire), asyncio.get_running_loop())


async def test_head_and_content_go_as_one() -> None:
    wire = Wire()
    transport = joined(wire)
    for _ in range(2):
        transport.write(HEAD)
        transport.write(CONTENT)
    await asyncio.sleep(0)
    assert wire.packets == [HEAD + CONTENT] * 2


async def test_a_head_whose_content_takes_its_time_does_not_wait_for_it() -> None:
    wire = Wire()
    transport = joined(wire)
    transport.write(HEAD)
    await asyncio.sleep(0)
    assert wire.packets == [HEAD]


async def test_what_is_held_back_goes_before_the_end() -> None:
    wire = Wire()
    transport = joined(wire)
    transport.write(HEAD)
    transport.close()
    await asyncio.sleep(0)
    assert (wire.packets, wire.closed, transport.is_closing()) == ([HEAD], True, True)


async def test_answers_of_the_service_are_one_packet_each(site: Site) -> None:
    url = httpx.URL(site.api.url)

    def asked() -> list[bytes]:
        """What came at once, each time: on a thread, which sees a first half before the loop has sent the second."""
        with socket.create_connection((url.host, url.port or 80), timeout=30) as line:
            found = []
            for _ in range(TIMES):
                line.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
                found.append(packet := line.recv(65536))
                while not packet.endswith(ANSWER):
                    packet += line.recv(65536)
            line.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
            return [*found, line.recv(65536)]

    *packets, head = await asyncio.to_thread(asked)
    assert [packet for packet in packets if not packet.endswith(ANSWER)] == []
    assert head.endswith(b"\r\n\r\n")
