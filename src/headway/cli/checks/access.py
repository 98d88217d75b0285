"""Can others listen, or have others been at it: the lines to store and bus, the audit log, the first token."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from headway.access.chain import broken
from headway.access.first import FILE, SHORT
from headway.access.origin import is_loopback
from headway.cli.checks.contract import Patient
from headway.model.findings import Finding, fine, problem, warning
from headway.plugins import redacted
from headway.settings import Settings, load


async def lines(patient: Patient) -> list[Finding]:
    """Whether what goes over the network is encrypted, and the other side known by its certificate."""
    held = load({"store": patient.url}, environment=patient.environment)
    told = [_store(held.store), *([_bus(held.bus)] if held.bus else []), _api(held)]
    found = [finding for finding in told if finding is not None]
    return found or [fine("lines", "nothing leaves this machine, or what does is encrypted and verified")]


async def audit(patient: Patient) -> list[Finding]:
    """Whether the audit log is as it was written."""
    at = await broken(patient.store)
    if at is None:
        return [fine("audit", "no line of the audit log was changed or removed")]
    text = f"somebody has changed or removed lines of the audit log, first seen at line {at}"
    return [problem("audit", text, "find out who has access to the database: headway audit --verify tells no more")]


async def first_token(patient: Patient) -> list[Finding]:
    """The token of the first administrator."""
    held = load({"store": patient.url}, environment=patient.environment)
    file = held.data_directory / FILE
    if held.admin_token is not None and len(held.admin_token) < SHORT:
        text = f"HEADWAY_ADMIN_TOKEN has less than {SHORT} characters"
        return [warning("admin token", text, "make one with: openssl rand -base64 32")]
    if file.exists() and file.stat().st_mode & 0o077:
        return [problem("admin token", f"{file} can be read by others", f"chmod 600 {file}")]
    return [fine("admin token", "is kept from others")]


def _store(url: str) -> Finding | None:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    host = options.get("host") or parts.hostname or ""
    if not parts.scheme.startswith("postgres") or not host or host.startswith("/") or is_loopback(host):
        return None
    mode = options.get("sslmode", "prefer")
    if mode == "verify-full":
        return None
    return warning(
        "lines",
        f"the line to the store {redacted(url)} has sslmode={mode}: the server's certificate is not looked at",
        "add ?sslmode=verify-full to its URL, and &sslrootcert=/path/ca.pem for an authority of your own",
    )


def _bus(url: str) -> Finding | None:
    parts = urlsplit(url)
    if not parts.scheme.startswith("amqp") or is_loopback(parts.hostname or ""):
        return None
    if parts.scheme == "amqp":
        return warning("lines", f"the line to the bus {redacted(url)} is not encrypted", "use amqps://")
    if dict(parse_qsl(parts.query)).get("no_verify_ssl", "0") != "0":
        text = f"the certificate of the bus {redacted(url)} is not looked at (no_verify_ssl)"
        return warning("lines", text, "name its authority instead: ?cafile=/path/ca.pem")
    return None


def _api(held: Settings) -> Finding | None:
    if is_loopback(held.host) or held.tls_cert or held.trusted_proxies:
        return None
    text = f"the API listens at {held.host} without encryption: logins, secrets and scripts from elsewhere are refused"
    return warning("lines", text, "set HEADWAY_TLS_CERT and HEADWAY_TLS_KEY, or HEADWAY_TRUSTED_PROXIES")
