"""A real server for mail, on this machine."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes
from email.message import Message
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


class Mailbox:
    """An SMTP server that lets in who knows the password."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], Message]] = []
        self.logins: list[tuple[bytes, bytes]] = []

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802 - its own name
        assert isinstance(envelope.content, bytes)
        self.mails.append((list(envelope.rcpt_tos), message_from_bytes(envelope.content)))
        return "250 taken"

    def check(self, _server: SMTP, _session: Session, _envelope: Envelope, _how: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"open sesame", handled=False)


@asynccontextmanager
async def receiving(tls: ssl.SSLContext | None = None, **rules: Any) -> AsyncIterator[tuple[Mailbox, int]]:
    """A mailbox and its port; with `tls` a connection is sealed from its first byte."""
    mailbox, loop = Mailbox(), asyncio.get_running_loop()

    def session() -> SMTP:
        with warnings.catch_warnings():
            # It warns that a password without TLS is no good idea; this one never leaves the machine.
            warnings.simplefilter("ignore")
            return SMTP(mailbox, authenticator=mailbox.check, auth_required=True, loop=loop, **rules)

    server = await loop.create_server(session, "127.0.0.1", 0, ssl=tls)
    yield mailbox, server.sockets[0].getsockname()[1]
    server.close()
