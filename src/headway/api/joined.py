"""Head and content of an answer go to the system as one: to hand over a packet has its price."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol


class Joined:
    """A transport that holds back what is written first for as long as the loop takes to come round. What a caller
    writes next, without having waited for anything, goes with it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: bytes | None = None
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._transport.writelines((held, data))
            return
        self._held = data
        self._loop.call_soon(self._let_go)

    def close(self) -> None:
        self._let_go()
        self._transport.close()

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._transport.write(held)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class JoiningProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # whichever parser is installed
    """uvicorn's, which writes the head and the content of an answer one by one."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.transport = Joined(transport, self.loop)
