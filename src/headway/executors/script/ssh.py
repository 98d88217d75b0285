"""Onto a host by SSH. The one home of asyncssh.

The server must show the key that is pinned for the target: there is no way to connect without one. Nothing of the
worker's own user takes part: no agent, no configuration file, no keys of its own.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import asyncssh

from headway.clock import Clock, deadline
from headway.executors.script.link import READ_SIZE, Channel, File, Files, Link, LinkLost, Unreachable
from headway.model.sealed import Credential
from headway.model.target import Step, Target

KEEP_ALIVE = 15.0
"""Seconds of silence after which the server is asked whether it is still there; three times, then it is not."""
_CIPHERS = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,aes128-ctr"
"""The fastest first: what a packet costs here is mostly its cipher."""
_LOST = (asyncssh.DisconnectError, asyncssh.ChannelOpenError, ConnectionError)


async def connect(target: Target, credential: Credential | None, clock: Clock) -> Link:
    """Log in to a target whose host key is pinned. Raises Unreachable."""
    if target.host_key is None:
        raise Unreachable(
            f"no host key is pinned for {target.name}: probe it, compare the fingerprint, and save the key",
            Step.HOST_KEY,
            permanent=True,
        )
    pinned = _pinned(target, target.host_key)
    options = _options(credential, target)
    seen = _Seen()
    try:
        async with deadline(clock, target.connect_timeout):
            await _resolve(target)
            seen.step = Step.CONNECT
            connection = await asyncssh.connect(
                target.host,
                target.port,
                config=None,
                username=target.user,
                known_hosts=([pinned], [], []),
                server_host_key_algs=_algorithms(pinned),
                client_factory=lambda: seen,
                options=options,
            )
    except TimeoutError as error:
        raise Unreachable(
            f"{target.host}:{target.port} did not answer within {target.connect_timeout:g} s", seen.step
        ) from error
    except (OSError, asyncssh.Error) as error:
        raise _refusal(target, error, seen.step) from error
    return SshLink(connection, target.host_key)


async def shown_key(target: Target, clock: Clock) -> str:
    """The key that the server shows, as one line. Nobody logs in, nothing is trusted. Raises Unreachable."""
    step = Step.RESOLVE
    try:
        async with deadline(clock, target.connect_timeout):
            await _resolve(target)
            step = Step.CONNECT
            key = await asyncssh.get_server_host_key(target.host, target.port, config=None)
    except TimeoutError as error:
        raise Unreachable(
            f"{target.host}:{target.port} did not answer within {target.connect_timeout:g} s", step
        ) from error
    except (OSError, asyncssh.Error) as error:
        raise _refusal(target, error, step) from error
    if key is None:
        raise Unreachable(f"{target.host}:{target.port} shows no host key", Step.HOST_KEY)
    return " ".join(key.export_public_key().decode().split()[:2])


class _Seen(asyncssh.SSHClient):
    """How far a connection has come."""

    step = Step.RESOLVE

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.step = Step.HOST_KEY

    def begin_auth(self, username: str) -> None:
        self.step = Step.LOGIN

    def password_auth_requested(self) -> None:
        self.step = Step.LOGIN

    def public_key_auth_requested(self) -> None:
        self.step = Step.LOGIN


def _algorithms(pinned: asyncssh.SSHKey) -> list[str]:
    """Only such as the pinned key can sign with: asked for others, the server would show another of its keys."""
    return [name.decode() for name in pinned.sig_algorithms]


def _options(credential: Credential | None, target: Target) -> asyncssh.SSHClientConnectionOptions:
    told: dict[str, Any] = {
        "agent_path": None,
        "client_keys": None,
        "gss_host": None,
        "keepalive_interval": KEEP_ALIVE,
        "keepalive_count_max": 3,
        "login_timeout": target.connect_timeout,
        "compression_algs": None,
        "encryption_algs": _CIPHERS,
    }
    if credential is not None and credential.private_key is not None:
        told |= {"client_keys": [_private_key(credential)], "preferred_auth": "publickey"}
    elif credential is not None:
        told |= {"password": credential.password, "preferred_auth": "password,keyboard-interactive"}
    return asyncssh.SSHClientConnectionOptions(**told)


def _private_key(credential: Credential) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_private_key(credential.private_key or "", credential.passphrase)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
        raise Unreachable(
            f"the private key can't be used: {error}; save it again, with its passphrase", Step.LOGIN, permanent=True
        ) from error


def _pinned(target: Target, host_key: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_public_key(host_key)
    except (asyncssh.KeyImportError, ValueError) as error:
        raise Unreachable(
            f"the host key that is pinned for {target.name} can't be used: {error}; probe the target, compare the "
            "fingerprint, and save the key that it shows",
            Step.HOST_KEY,
            permanent=True,
        ) from error


async def _resolve(target: Target) -> None:
    """Tells a name that nobody knows from a host that nobody reaches."""
    loop = asyncio.get_running_loop()
    try:
        await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unreachable(f"the name {target.host} can't be resolved: {error}", Step.RESOLVE) from error


def _refusal(target: Target, error: Exception, step: Step) -> Unreachable:
    where = f"{target.host}:{target.port}"
    if isinstance(error, asyncssh.KeyExchangeFailed) and "host key" not in error.reason:
        return Unreachable(f"{where} has no way of encryption in common with us: {error.reason}", step, permanent=True)
    if isinstance(error, asyncssh.HostKeyNotVerifiable | asyncssh.KeyExchangeFailed):
        return Unreachable(
            f"{where} does not show the host key that is pinned for {target.name}: if it was replaced on purpose, "
            "probe the target, compare the fingerprint, and save the new key",
            Step.HOST_KEY,
            permanent=True,
            alarming=True,
        )
    if isinstance(error, asyncssh.PermissionDenied):
        return Unreachable(f"{where} refuses the user {target.user}: {error.reason}", Step.LOGIN, permanent=True)
    return Unreachable(f"{where} can't be reached: {str(error) or type(error).__name__}", step)


class SshLink:
    """A connection that is logged in."""

    def __init__(self, connection: asyncssh.SSHClientConnection, host_key: str) -> None:
        self._connection = connection
        self.host_key: str | None = host_key

    async def shell(self, on_data: Callable[[bytes], None], on_lost: Callable[[], None]) -> Channel:
        try:
            channel, _ = await self._connection.create_session(
                lambda: _Shell(on_data, on_lost), "exec /bin/sh", encoding=None, request_pty=False
            )
        except _LOST as error:
            raise LinkLost(f"no session could be opened: {error}") from error
        return _SshChannel(channel)

    async def files(self) -> Files:
        try:
            # A name of any bytes, which asyncssh would otherwise refuse with all the others.
            return SshFiles(await self._connection.start_sftp_client(path_errors="surrogateescape"))
        except asyncssh.SFTPError as error:
            raise Unreachable(f"the server offers no SFTP: {error}", Step.DIRECTORY, permanent=True) from error
        except _LOST as error:
            raise LinkLost(f"no session could be opened: {error}") from error

    async def close(self) -> None:
        self._connection.abort()
        await self._connection.wait_closed()


class _Shell(asyncssh.SSHClientSession[bytes]):
    def __init__(self, on_data: Callable[[bytes], None], on_lost: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_lost = on_lost

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if datatype is None:
            self._on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost()


class _SshChannel:
    def __init__(self, channel: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = channel

    def write(self, data: bytes) -> None:
        try:
            self._channel.write(data)
        except (OSError, asyncssh.Error) as error:
            raise LinkLost(f"the session is closed: {error}") from error

    def close(self) -> None:
        self._channel.abort()


class SshFiles:
    """Files by SFTP."""

    def __init__(self, client: asyncssh.SFTPClient) -> None:
        self._client = client

    async def open(self, path: str) -> File | None:
        with _speaking():
            try:
                return SshFile(await self._client.open(path, "rb", block_size=0))
            except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
                return None

    async def glob(self, patterns: Sequence[str]) -> AsyncIterator[tuple[str, int]]:
        with _speaking():
            names = await self._client.glob_sftpname(list(patterns), error_handler=_skip)
            for name in names:
                try:
                    attrs = await self._client.stat(name.filename)
                except asyncssh.SFTPError as error:
                    # A link to nowhere is no file.
                    _skip(error)
                    continue
                if attrs.type == asyncssh.FILEXFER_TYPE_REGULAR:
                    yield str(name.filename), int(attrs.size or 0)


class SshFile:
    def __init__(self, file: Any) -> None:
        self._file = file

    async def read(self, offset: int) -> bytes:
        with _speaking():
            data: bytes = await self._file.read(READ_SIZE, offset)
        return data

    async def close(self) -> None:
        with _speaking():
            await self._file.close()


def _skip(error: Exception) -> None:
    """A pattern that matches nothing, or a directory that can't be read, is no reason to stop."""
    if not isinstance(error, asyncssh.SFTPError) or isinstance(error, _GONE):
        raise error


_GONE = (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection)


@contextmanager
def _speaking() -> Iterator[None]:
    """A connection that ends in mid-sentence shows itself in many ways."""
    try:
        yield
    except (*_GONE, *_LOST, EOFError) as error:
        raise LinkLost(f"the connection was lost: {error}") from error
    except asyncssh.SFTPError as error:
        raise OSError(f"SFTP: {error.reason or type(error).__name__}") from error
