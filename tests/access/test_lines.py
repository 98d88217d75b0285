"""The lines to PostgreSQL and RabbitMQ: encrypted, and only to who has a certificate of the authority we trust."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from headway.bench.server import ACCOUNT
from headway.bus import make_bus
from headway.bus.contract import BusUnavailable
from headway.cli.checks.access import audit, first_token, lines
from headway.cli.checks.contract import Patient
from headway.model.errors import StoreUnavailable
from headway.model.findings import Level
from headway.store import make_store
from tests.access.conftest import Desk
from tests.authority import Authority
from tests.rabbit import Rabbit
from tests.servers import PostgresServer, wait_until


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "Another CA")


@pytest.fixture(scope="module")
def encrypted_postgres(authority: Authority) -> Iterator[str]:
    """A server that takes TLS, with a certificate for localhost, and not for 127.0.0.1."""
    with PostgresServer() as server:
        for name, file in zip(("server.crt", "server.key"), authority.certify("localhost"), strict=True):
            shutil.copy(file, server.data / name)
            if ACCOUNT:
                shutil.chown(server.data / name, ACCOUNT, ACCOUNT)
        with psycopg.connect(server.admin_url, autocommit=True) as connection:
            connection.execute("alter system set ssl = on")
            connection.execute("select pg_reload_conf()")
        wait_until(lambda: _encrypts(server.admin_url), "PostgreSQL to take TLS")
        yield f"postgresql://postgres@localhost:{server.port}/postgres?sslmode=verify-full"


async def test_the_store_is_reached_by_tls_under_a_private_authority(
    encrypted_postgres: str, authority: Authority
) -> None:
    url = f"{encrypted_postgres}&sslrootcert={authority.ca}"
    store = make_store(url)
    await store.migrate()
    await store.open()
    with psycopg.connect(f"{encrypted_postgres}&sslrootcert={authority.ca}") as look:
        rows = look.execute(
            "select s.ssl from pg_stat_ssl s join pg_stat_activity a using (pid) where application_name = 'headway'"
        ).fetchall()
    assert rows
    assert all(row[0] for row in rows)
    bus = make_bus(url)
    await bus.open()
    await bus.close()
    await store.close()


async def test_a_server_of_another_authority_or_name_is_no_store_of_ours(
    encrypted_postgres: str, authority: Authority, stranger: Authority
) -> None:
    elsewhere = encrypted_postgres.replace("localhost", "127.0.0.1")
    for url in (f"{encrypted_postgres}&sslrootcert={stranger.ca}", f"{elsewhere}&sslrootcert={authority.ca}"):
        store = make_store(url)
        with pytest.raises(StoreUnavailable, match=r"(?i)certificate|hostname"):
            await store.open(0.1)
        await store.close()
        with pytest.raises(BusUnavailable):
            await make_bus(url, patience=0.5).open()


async def test_the_broker_is_reached_by_tls_under_a_private_authority(
    rabbit: Rabbit, authority: Authority, stranger: Authority
) -> None:
    async with encrypting(rabbit, authority) as port:
        bus = make_bus(f"amqps://guest:guest@localhost:{port}/?cafile={authority.ca}")
        await bus.open()
        await bus.close()
        for url in (
            f"amqps://guest:guest@localhost:{port}/",
            f"amqps://guest:guest@localhost:{port}/?cafile={stranger.ca}",
            f"amqps://guest:guest@127.0.0.1:{port}/?cafile={authority.ca}",
        ):
            with pytest.raises(BusUnavailable, match=r"(?i)certificate|hostname"):
                await make_bus(url, patience=0.5).open()


@pytest.mark.parametrize(
    ("url", "environment", "told"),
    [
        ("sqlite:///headway.db", {}, None),
        ("postgresql://db.example/x?sslmode=verify-full", {}, None),
        ("postgresql://127.0.0.1/x", {"HEADWAY_BUS": "amqps://mq.example/"}, None),
        ("postgresql://db.example/x", {}, "sslmode=prefer"),
        ("postgresql://db.example/x?sslmode=require", {}, "sslmode=require"),
        ("sqlite:///headway.db", {"HEADWAY_BUS": "amqp://u:pass@mq.example/"}, "not encrypted"),
        ("sqlite:///headway.db", {"HEADWAY_BUS": "amqps://mq.example/?no_verify_ssl=1"}, "no_verify_ssl"),
        ("sqlite:///headway.db", {"HEADWAY_HOST": "0.0.0.0"}, "listens at 0.0.0.0 without encryption"),
        ("sqlite:///headway.db", {"HEADWAY_HOST": "0.0.0.0", "HEADWAY_TRUSTED_PROXIES": "10.0.0.1"}, None),
    ],
)
async def test_doctor_names_lines_that_others_could_read(
    desk: Desk, url: str, environment: dict[str, str], told: str | None
) -> None:
    [found] = await lines(Patient(url=url, store=desk.store, clock=desk.clock, environment=environment))
    assert found.level is (Level.WARNING if told else Level.OK)
    assert told is None or told in found.text
    assert "pass@" not in found.text


async def test_doctor_looks_at_the_audit_log_and_the_first_token(desk: Desk, tmp_path: Path) -> None:
    weak = {"HEADWAY_ADMIN_TOKEN": "0123456789"}
    for environment, levels in (({}, [Level.OK, Level.OK]), (weak, [Level.OK, Level.WARNING])):
        url = f"sqlite:///{tmp_path / 'headway.db'}"
        patient = Patient(url=url, store=desk.store, clock=desk.clock, environment=environment)
        found = [*await audit(patient), *await first_token(patient)]
        assert [finding.level for finding in found] == levels


@asynccontextmanager
async def encrypting(rabbit: Rabbit, authority: Authority) -> AsyncIterator[int]:
    """TLS before the broker, as many have it: with a certificate for localhost, and not for 127.0.0.1."""
    cert, key = authority.certify("localhost", name="broker")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    behind = urlsplit(rabbit.url)

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs = await asyncio.open_connection(behind.hostname, behind.port)
        await asyncio.gather(carry(reader, theirs[1]), carry(theirs[0], writer))

    server = await asyncio.start_server(joined, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _encrypts(url: str) -> bool:
    with psycopg.connect(url, sslmode="prefer") as connection:
        row = connection.execute("select ssl from pg_stat_ssl where pid = pg_backend_pid()").fetchone()
        return bool(row and row[0])
