"""A process of the service: the API alone, or with a worker and a scheduler beside it, until a signal ends it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Self

import msgspec

from headway.access.origin import Proxies
from headway.api.app import make_asgi, make_service
from headway.api.gate import Gatekeeper
from headway.api.server import ApiServer, Tls
from headway.app import Headway
from headway.duties.census import Census
from headway.observe.page import counted
from headway.serve import AppWorker, served, stopping
from headway.store.contract import Store
from headway.vault.selftest import check


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Where an API listens, and on which terms it is open to the world."""

    host: str = "127.0.0.1"
    port: int = 8000
    tls: Tls | None = None
    proxies: tuple[str, ...] = ()
    """Those that are trusted."""
    cors_origins: tuple[str, ...] = ()


Welcome = Callable[["AppApi"], Awaitable[None]]
"""What is to be done when the store is there, and nobody is answered yet."""


class AppApi:
    """The API of an app, in this process: `async with AppApi(app, port=0) as api: …`

    Without a gate the store knows who may.
    """

    def __init__(
        self,
        app: Headway,
        gate: Gatekeeper | None = None,
        *,
        terms: Terms | None = None,
        port: int | None = None,
        welcome: Welcome | None = None,
    ) -> None:
        terms = terms or Terms()
        self.app = app
        self.service = make_service(app, gate, proxies=Proxies(terms.proxies))
        asgi = make_asgi(self.service, terms.cors_origins)
        self._server = ApiServer(asgi, terms.host, terms.port if port is None else port, terms.tls)
        self._welcome = welcome
        self._store: Store | None = None
        self._counting = ExitStack()
        self.url = self._server.url

    @property
    def census(self) -> Census:
        """What the whole store looks like."""
        return self.service.census

    async def start(self) -> None:
        """Begin to answer. A service whose vault is open, or can't be opened, doesn't begin. Raises ConfigurationError,
        VaultLocked."""
        self._counting.enter_context(counted())
        if not self.app.client.settled:
            # Without a worker in this process.
            self._store = await self.app.stores.acquire()
            self.app.client.adopt(self._store)
        try:
            await check(self.app.vault)
            if self._welcome is not None:
                await self._welcome(self)
        except BaseException:
            await self.stop()
            raise
        await self._server.start()

    async def stop(self) -> None:
        """Let requests under way end; those that wait or stream end at once."""
        self.service.closing.set()
        self.service.news.end()
        await self._server.stop()
        await self.service.news.close()
        await self.service.trail.close()
        self._counting.close()
        if self._store is not None:
            store, self._store = self._store, None
            self.app.client.leave(store)
            await self.app.stores.release(store)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


async def run_api(api: AppApi) -> int:
    """The API alone, until SIGTERM or SIGINT; the exit status."""
    async with AsyncExitStack() as stack:
        with stopping() as stop:
            await stack.enter_async_context(api)
            await stop.wait()
    return 0


async def run_all(api: AppApi, worker: AppWorker, begun: Callable[[], Awaitable[None]]) -> int:
    """API and worker, until SIGTERM or SIGINT, or until a stuck job makes this process useless; the exit status.
    `begun` is called once both serve."""
    worker.own.append(api.url)
    async with AsyncExitStack() as stack:
        with stopping() as stop:
            await stack.enter_async_context(worker)
            await stack.enter_async_context(api)
            assert worker.worker is not None
            await begun()
            return await served(worker.worker, stop)
