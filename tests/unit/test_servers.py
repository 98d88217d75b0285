"""The servers that the tests start must themselves be worthy of trust."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import psutil
import pytest

from tests.servers import Postgres, PostgresServer, StopMode, alive, wait_until


async def test_each_database_is_apart_from_the_others(postgres: Postgres, postgres_url: str) -> None:
    other_url = postgres.create_database()
    await execute(postgres_url, "CREATE TABLE mark ()")

    assert await tables(postgres_url) == ["mark"]
    assert await tables(other_url) == []
    postgres.drop_database(other_url)


async def test_a_database_can_be_copied_from_a_prepared_one(postgres: Postgres, postgres_url: str) -> None:
    await execute(postgres_url, "CREATE TABLE mark ()")

    copy_url = postgres.create_database(template=postgres_url)

    assert await tables(copy_url) == ["mark"]
    postgres.drop_database(copy_url)


async def test_what_was_committed_outlives_the_killing_of_the_server(
    private_postgres: PostgresServer,
) -> None:
    url = private_postgres.create_database()
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE mark ()")

    await asyncio.to_thread(private_postgres.kill)
    with pytest.raises((OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)):
        await connection.execute("SELECT 1")
    connection.terminate()
    with pytest.raises(ConnectionRefusedError):
        await asyncpg.connect(url)
    await asyncio.to_thread(private_postgres.start)

    assert await tables(url) == ["mark"]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_restarted_server_has_the_same_address(mode: StopMode, private_postgres: PostgresServer) -> None:
    url = private_postgres.create_database()

    await asyncio.to_thread(private_postgres.restart, mode)

    assert await tables(url) == []


async def test_a_server_is_reached_through_its_socket_too(private_postgres: PostgresServer) -> None:
    connection = await asyncpg.connect(
        host=str(private_postgres.socket_directory), port=private_postgres.port, user="postgres"
    )
    assert await connection.fetchval("SHOW fsync") == "on"
    await connection.close()


def test_a_server_does_not_outlive_an_owner_that_is_killed() -> None:
    program = (
        "import sys; from tests.servers import PostgresServer; server = PostgresServer();"
        "print(server._process.pid, server.directory, flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        pid, directory = owner.stdout.readline().split()
        server = psutil.Process(int(pid))
        assert alive(server)
        os.kill(owner.pid, signal.SIGKILL)

    wait_until(lambda: not alive(server), "the server to end")
    wait_until(lambda: not Path(directory).exists(), "its files to be removed")


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


async def tables(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    await connection.close()
    return [row["tablename"] for row in rows]
