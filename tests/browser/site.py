"""A server that jobs ask and alerts tell."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""The smallest of pictures."""
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Site:
    """Answers everything with a short text, or a picture, and remembers what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length.group(1))) if length else b""
        self.asked.append((head + body).decode())
        kind, content = (b"image/png", DOT) if b".png " in head.partition(b"\r\n")[0] else (b"text/plain", b"hello")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
            % (kind, len(content), content)
        )
        await writer.drain()
        writer.close()


@asynccontextmanager
async def web_server() -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    async with server:
        site.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield site
