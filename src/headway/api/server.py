"""The service's server: uvicorn on the running loop. The port is taken at once, requests are answered when told."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Generator
from typing import TYPE_CHECKING

import msgspec
import uvicorn

from headway.api.joined import JoiningProtocol
from headway.model.errors import ConfigurationError
from headway.observe.logs import get_logger

if TYPE_CHECKING:
    from starlette.types import ASGIApp

BACKLOG = 2048
GRACE = 10
"""Seconds for which requests under way may go on when the server stops."""

log = get_logger("headway.api")


class Tls(msgspec.Struct, frozen=True):
    """The service's certificate (chain) and its key: PEM files."""

    cert: str
    key: str

    def __post_init__(self) -> None:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.cert, self.key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(
                f"HEADWAY_TLS_CERT {self.cert} and HEADWAY_TLS_KEY {self.key} can't be used: {error}"
            ) from error


class _Server(uvicorn.Server):
    """Signals are the process's business: it has more to stop than a server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class ApiServer:
    """Serves an application at one address."""

    def __init__(self, asgi: ASGIApp, host: str, port: int, tls: Tls | None = None) -> None:
        self._scheme = "https" if tls else "http"
        self._socket = take_port(host, port)
        config = uvicorn.Config(
            asgi,
            http=JoiningProtocol,
            log_config=None,
            access_log=False,
            lifespan="off",
            # Whom to believe is decided by `access.origin`, by setting; uvicorn would believe this machine.
            proxy_headers=False,
            ssl_certfile=tls.cert if tls else None,
            ssl_keyfile=tls.key if tls else None,
            server_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACE,
            h11_max_incomplete_event_size=64 * 1024,
        )
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"{self._scheme}://[{host}]:{port}" if ":" in host else f"{self._scheme}://{host}:{port}"

    async def start(self) -> None:
        """Answer from now on."""
        self._url = self.url
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        log.info("api.started", url=self._url)

    async def stop(self) -> None:
        """Take no more requests, let those under way end."""
        self._server.should_exit = True
        if self._serving is None:
            self._socket.close()
            return
        await self._serving
        log.info("api.stopped")


def take_port(host: str, port: int) -> socket.socket:
    """The address, taken: whoever comes later is told at once. Port 0 is any that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        taken = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigurationError(f"--host {host!r} is no address of this machine: {error.strerror}") from error
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        taken_by = "another process has it" if error.errno == errno.EADDRINUSE else error.strerror
        raise ConfigurationError(
            f"can't listen at {host}:{port}: {taken_by}; choose another with --port or HEADWAY_PORT"
        ) from error
    taken.setblocking(False)
    return taken
