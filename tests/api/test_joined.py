"""Answers on their way out: head and content in one piece, and nothing held back for longer than a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import httpx

from headway.api.joined import Joined
from tests.api.conftest import Site

HEAD, CONTENT = b"HTTP/1.1 200 OK\r\n\r\n", b"content"


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


async def test_an_answer_of_the_service_is_one_packet(site: Site) -> None:
    url = httpx.URL(site.api.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
    packet = await reader.read(65536)
    assert packet.endswith(b'{"status":"ok"}')
    writer.write(b"HEAD /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
    assert (await reader.read(65536)).endswith(b"\r\n\r\n")
    writer.close()
