"""Connections that the guard has let pass: the address is checked when a socket is made for it, and there is no look-up
behind that."""

from __future__ import annotations

import socket
from contextvars import ContextVar
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver

from headway.outgoing.guard import Guard
from headway.outgoing.timings import Timings

KEEP_ALIVE = 30.0


class Errand:
    """What connections and look-ups have to know of the request that they are made for."""

    __slots__ = ("host", "timings")

    def __init__(self, host: str, timings: Timings) -> None:
        self.host = host
        """By this name the guard may know it."""
        self.timings = timings


errand: ContextVar[Errand | None] = ContextVar("headway_errand", default=None)


class GuardedConnector(aiohttp.TCPConnector):
    """Makes connections and keeps them for others to the same host; tells their errands how long that took."""

    def __init__(self, guard: Guard, resolver: AbstractResolver, names_kept: int) -> None:
        self._guard = guard
        super().__init__(
            limit=0,
            resolver=resolver,
            socket_factory=self._open,
            keepalive_timeout=KEEP_ALIVE,
            use_dns_cache=names_kept > 0,
            ttl_dns_cache=names_kept,
        )

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        current = errand.get()
        if current is None:
            return await super().connect(req, traces, timeout)
        began = current.timings.begin()
        connection = await super().connect(req, traces, timeout)
        current.timings.end("connect", began)
        return connection

    def _open(self, info: Any) -> socket.socket:
        family, kind, proto, _, address = info
        current = errand.get()
        self._guard.check(current.host if current else address[0], address[0], address[1])
        if current is not None:
            current.timings.opened = True
        return socket.socket(family, kind, proto)
