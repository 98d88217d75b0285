"""Mail over TLS: to servers whose certificate is known, and to no others."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headway.alerts.courier import Courier
from headway.alerts.rules import read_rule
from headway.clock import SystemClock
from headway.model.alerts import Body, Notification
from headway.outgoing.guard import Allowed, Guard
from tests.authority import Authority
from tests.mailbox import receiving


class Vault:
    async def reveal(self, name: str) -> bytes:
        return {"smtp": b"open sesame"}[name]


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_mail_goes_sealed_to_a_server_whose_certificate_is_known(
    security: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(*authority.certify("127.0.0.1"))
    at_once: dict[str, Any] = {"tls": server, "auth_require_tls": False}
    asked_for: dict[str, Any] = {"tls_context": server, "require_starttls": True}
    async with receiving(**(at_once if security == "tls" else asked_for)) as (box, port):
        rule = read_rule(
            {
                "name": "failures",
                "on": "job_failed",
                "channel": {
                    "type": "email",
                    "host": "127.0.0.1",
                    "port": port,
                    "security": security,
                    "user": "headway",
                    "password": {"secret": "smtp"},
                    "sender": "headway@example.com",
                    "to": ["ops@example.com"],
                },
            }
        )
        courier = Courier(SystemClock(), Guard(Allowed.parse(("127.0.0.1",)), ()), Vault())

        refused = await courier.deliver(rule, notification())
        assert refused is not None
        assert "certificate" in refused.lower()
        assert (box.logins, box.mails) == ([], []), "nothing is said to a server that nobody knows"

        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
        assert await courier.deliver(rule, notification()) is None
        assert box.logins == [(b"headway", b"open sesame")]
        [(recipients, mail)] = box.mails
        assert recipients == ["ops@example.com"]
        assert mail["Subject"] == "[Headway] it broke"
        await courier.close()


def notification() -> Notification:
    now = datetime.now(UTC)
    body = Body(rule="failures", on="job_failed", state="happened", subject="x", summary="it broke", at=now)
    return Notification(id=uuid4(), rule_id=uuid4(), body=body, created_at=now, due_at=now)
