"""Carries messages to where rules want them: webhooks, Slack, mail. Nothing goes where the guard of outgoing requests
lets nothing pass, and no secret stands in a log line or an error."""

from __future__ import annotations

import asyncio
import smtplib
import socket
import ssl
from email.message import EmailMessage
from email.utils import format_datetime
from html import escape
from typing import Any, Protocol

import msgspec

from headway.alerts.rules import Channel, Email, Rule, Slack, Webhook
from headway.clock import Clock, deadline
from headway.model.alerts import Notification
from headway.model.errors import ConfigurationError, HeadwayError
from headway.observe import series
from headway.outgoing.errors import UnexpectedStatus
from headway.outgoing.fields import SecretRef
from headway.outgoing.guard import Guard

PATIENCE = 30.0
"""Seconds within which a message must be taken."""
ANSWER_LIMIT = 64 * 1024
OK = range(200, 300)


class Secrets(Protocol):
    """The vault."""

    async def reveal(self, name: str) -> bytes: ...


class Courier:
    """Delivers, one message at a time. Raises what went wrong."""

    def __init__(self, clock: Clock, guard: Guard, secrets: Secrets | None) -> None:
        self._clock = clock
        self._guard = guard
        self._secrets = secrets
        self._outgoing: Any = None

    async def close(self) -> None:
        if self._outgoing is not None:
            await self._outgoing.close()

    async def deliver(self, rule: Rule, message: Notification) -> str | None:
        """Why it could not be delivered; None: it was."""
        channel = rule.channel
        name = type(channel).__name__.lower()
        try:
            async with deadline(self._clock, PATIENCE):
                await self._send(channel, message)
        except TimeoutError:
            error = f"it was not taken within {PATIENCE:g} s"
        except (HeadwayError, OSError, smtplib.SMTPException) as failure:
            error = await self._without_secrets(f"{type(failure).__name__}: {failure}", channel)
        else:
            series.alert_deliveries.add((name, "delivered"))
            return None
        series.alert_deliveries.add((name, "refused"))
        return error

    async def _send(self, channel: Channel, message: Notification) -> None:
        match channel:
            case Webhook():
                await self._webhook(channel, message)
            case Slack():
                await self._post(await self._text(channel.url), msgspec.json.encode({"text": _slack(message)}), {})
            case Email():
                password = await self._text(channel.password) if channel.password else None
                await asyncio.to_thread(self._mail, channel, password, _mail(channel, message))

    async def _webhook(self, channel: Webhook, message: Notification) -> None:
        data = {"type": f"headway.alert.{message.body.state}", "timestamp": message.created_at, "data": message.body}
        body = msgspec.json.encode(data)
        headers = {"webhook-id": str(message.id)}
        if channel.sign is not None:
            from headway.executors.http.signature import sign

            headers = sign(str(message.id), self._clock.now(), body, [await self._reveal(channel.sign)])
        await self._post(await self._text(channel.url), body, headers)

    async def _post(self, url: str, body: bytes, headers: dict[str, str]) -> None:
        try:
            from headway.outgoing.client import Outgoing
            from headway.outgoing.messages import Request
        except ImportError:
            raise ConfigurationError("webhooks need a library: pip install 'headway[server]'") from None
        if self._outgoing is None:
            self._outgoing = Outgoing(self._clock, self._guard)
        request = Request(
            method="POST",
            url=url,
            headers={"Content-Type": "application/json", **headers},
            body=body,
            max_size=ANSWER_LIMIT,
            cut=True,
        )
        answer = await self._outgoing.ask(request)
        if answer.status not in OK:
            raise UnexpectedStatus(f"the webhook answered {answer.status} {answer.reason}".rstrip(), answer.status)

    def _mail(self, channel: Email, password: str | None, mail: EmailMessage) -> None:
        """In a thread: the library blocks."""
        made = _Tls if channel.security == "tls" else _Plain
        with made(channel.host, channel.port, self._guard) as server:
            if channel.security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if channel.user is not None:
                server.login(channel.user, password or "")
            server.send_message(mail)

    async def _text(self, named: str | SecretRef) -> str:
        return named if isinstance(named, str) else named.prefix + (await self._reveal(named)).decode()

    async def _reveal(self, named: SecretRef) -> bytes:
        if self._secrets is None:
            raise ConfigurationError(f"this process has no vault, so it can't use the secret {named.secret!r}")
        return await self._secrets.reveal(named.secret)

    async def _without_secrets(self, text: str, channel: Channel) -> str:
        """The words of an error may quote an address that is a secret itself."""
        for named in (getattr(channel, field) for field in channel.__struct_fields__):
            if isinstance(named, SecretRef):
                try:
                    text = text.replace((await self._reveal(named)).decode(), "***")
                except HeadwayError:
                    # It can't be read, so it can't be quoted either.
                    continue
        return text


def _slack(message: Notification) -> str:
    """In Slack's own form, in which `<!channel>` calls everybody: the words of a job's error must not."""
    body = message.body
    return f"*{escape(body.rule, quote=False)}* ({body.state}): {escape(body.summary, quote=False)}"


def _mail(channel: Email, message: Notification) -> EmailMessage:
    body, mail = message.body, EmailMessage()
    mail["Subject"] = f"[Headway] {body.summary}"[:200].replace("\n", " ").replace("\r", " ")
    mail["From"] = channel.sender
    mail["To"] = ", ".join(channel.to)
    mail["Date"] = format_datetime(message.created_at)
    # The same with every try, so that a mailbox may tell a repeat.
    mail["Message-ID"] = f"<{message.id}@headway.alerts>"
    lines = [
        body.summary,
        "",
        f"Rule: {body.rule} (on {body.on})",
        f"State: {body.state}",
        f"At: {body.at.isoformat()}",
    ]
    lines += ["", *(" · ".join(f"{name}: {value}" for name, value in detail.items()) for detail in body.details)]
    mail.set_content("\n".join(lines))
    return mail


def _connected(guard: Guard, host: str, port: int, timeout: float) -> socket.socket:
    """A connection to an address that the guard lets pass: this very one, no other look-up stands between."""
    error: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        guard.check(host, str(address[0]), port)
        line = socket.socket(family, kind, protocol)
        try:
            line.settimeout(timeout)
            line.connect(address)
        except OSError as failure:
            line.close()
            error = failure
        else:
            return line
    raise error or OSError(f"{host} has no address")


class _Plain(smtplib.SMTP):
    def __init__(self, host: str, port: int, guard: Guard) -> None:
        self._guard = guard
        super().__init__(host, port, timeout=PATIENCE)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return _connected(self._guard, host, port, timeout)


class _Tls(_Plain):
    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return ssl.create_default_context().wrap_socket(
            _connected(self._guard, host, port, timeout), server_hostname=host
        )
