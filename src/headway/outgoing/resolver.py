"""Looks names up on threads of its own, so that slow name servers hold up nobody but those who ask them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from headway.outgoing.connector import errand
from headway.outgoing.errors import AddressRefused
from headway.outgoing.guard import Guard

THREADS = 32

LookUp = Callable[..., list[Any]]
"""With the signature of `socket.getaddrinfo`."""


class GuardedResolver(AbstractResolver):
    """Gives the addresses of a host that may be connected to, and refuses a host that has no other."""

    def __init__(self, guard: Guard, look_up: LookUp = socket.getaddrinfo) -> None:
        self._guard = guard
        self._look_up = look_up
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="headway-names")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        current = errand.get()
        began = current.timings.begin() if current else 0.0
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: self._look_up(host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
        )
        if current is not None:
            current.timings.end("dns", began)
        results = [_result(host, info) for info in found]
        refused: AddressRefused | None = None
        passed = []
        for result in results:
            try:
                self._guard.check(host, result["host"], port)
            except AddressRefused as refusal:
                refused = refusal
            else:
                passed.append(result)
        if refused is not None and not passed:
            raise refused
        return passed

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _result(host: str, info: Any) -> ResolveResult:
    family, _, proto, _, address = info
    return ResolveResult(
        hostname=host,
        host=address[0],
        port=address[1],
        family=family,
        proto=proto,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
