"""Programs that submit from their own transaction, one for each kind of connection, and the places where they do it.

Each has a table of its own (`note`) and a transaction, in which it stores rows and jobs.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from uuid_utils.compat import uuid7

from headway.model.job import Claim, JobRecord
from headway.model.submission import Accepted, Submission
from headway.store.postgres import postgres_store
from headway.store.scripts.submit import Answer
from headway.store.scripts.work import Want
from headway.store.sql import SqlStore
from headway.store.sqlite import sqlite_store
from headway.transactional import asubmit_in, submit_in

NOTES = "create table note (text text)"
WORKER = uuid7()


class Program(msgspec.Struct, frozen=True):
    """What a user's program does on its connection."""

    connection: Any
    execute: Callable[[str], Awaitable[Any]]
    commit: Callable[[], Awaitable[Any]]
    rollback: Callable[[], Awaitable[Any]]
    blocking: bool = False

    async def submit(self, *jobs: Submission, notify: bool = True) -> list[Answer]:
        if self.blocking:
            return submit_in(self.connection, jobs, notify=notify)
        return await asubmit_in(self.connection, jobs, notify=notify)

    async def note(self, text: str) -> None:
        await self.execute(f"insert into note values ('{text}')")


def blocking(connection: Any, execute: Callable[[str], Any]) -> Program:
    async def run(statement: str) -> None:
        execute(statement)

    async def commit() -> None:
        connection.commit()

    async def rollback() -> None:
        connection.rollback()

    return Program(connection, run, commit, rollback, blocking=True)


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[Program]:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    yield Program(connection, connection.execute, transaction.commit, transaction.rollback)
    await connection.close()


@asynccontextmanager
async def by_asyncpg_pool(url: str) -> AsyncIterator[Program]:
    async with asyncpg.create_pool(url, min_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield Program(connection, connection.execute, transaction.commit, transaction.rollback)


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[Program]:
    with psycopg.connect(url) as connection:
        yield blocking(connection, connection.execute)


@asynccontextmanager
async def by_psycopg_async(url: str) -> AsyncIterator[Program]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield Program(connection, connection.execute, connection.commit, connection.rollback)


@asynccontextmanager
async def by_sqlalchemy(url: str) -> AsyncIterator[Program]:
    with sync_engine(url) as engine, engine.connect() as connection:
        yield blocking(connection, connection.exec_driver_sql)


@asynccontextmanager
async def by_sqlalchemy_session(url: str) -> AsyncIterator[Program]:
    with sync_engine(url) as engine, Session(engine) as session:
        yield blocking(session, lambda statement: session.execute(sqlalchemy.text(statement)))


@asynccontextmanager
async def by_scoped_session(url: str) -> AsyncIterator[Program]:
    with sync_engine(url) as engine:
        session = scoped_session(sessionmaker(engine))
        yield blocking(session, lambda statement: session.execute(sqlalchemy.text(statement)))
        session.remove()


@asynccontextmanager
async def by_async_sqlalchemy(url: str) -> AsyncIterator[Program]:
    async with async_engine(url, "asyncpg") as engine, engine.connect() as connection:
        yield Program(connection, connection.exec_driver_sql, connection.commit, connection.rollback)


@asynccontextmanager
async def by_async_session(url: str) -> AsyncIterator[Program]:
    async with async_engine(url, "asyncpg") as engine, AsyncSession(engine) as session:
        yield Program(session, lambda text: session.execute(sqlalchemy.text(text)), session.commit, session.rollback)


@asynccontextmanager
async def by_async_sqlalchemy_psycopg(url: str) -> AsyncIterator[Program]:
    async with async_engine(url, "psycopg") as engine, engine.connect() as connection:
        yield Program(connection, connection.exec_driver_sql, connection.commit, connection.rollback)


@asynccontextmanager
async def by_sqlite3(url: str) -> AsyncIterator[Program]:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    yield blocking(connection, connection.execute)
    connection.close()


@contextmanager
def sync_engine(url: str) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    engine.dispose()


@asynccontextmanager
async def async_engine(url: str, driver: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(url.replace("postgresql://", f"postgresql+{driver}://"))
    yield engine
    await engine.dispose()


Maker = Callable[[str], AbstractAsyncContextManager[Program]]

ON_POSTGRES: dict[str, Maker] = {
    "asyncpg": by_asyncpg,
    "asyncpg pool": by_asyncpg_pool,
    "psycopg": by_psycopg,
    "psycopg async": by_psycopg_async,
    "SQLAlchemy psycopg": by_sqlalchemy,
    "SQLAlchemy session psycopg": by_sqlalchemy_session,
    "SQLAlchemy scoped session psycopg": by_scoped_session,
    "SQLAlchemy asyncpg": by_async_sqlalchemy,
    "SQLAlchemy session asyncpg": by_async_session,
    "SQLAlchemy psycopg async": by_async_sqlalchemy_psycopg,
}
ON_SQLITE: dict[str, Maker] = {
    "sqlite3": by_sqlite3,
    "SQLAlchemy sqlite": by_sqlalchemy,
    "SQLAlchemy session sqlite": by_sqlalchemy_session,
}


class Place(msgspec.Struct, frozen=True):
    """A database with Headway's tables, the program's table, and a store that looks at it from outside."""

    url: str
    store: SqlStore
    program: Maker

    async def claim(self, limit: int = 10) -> list[Claim]:
        want = Want(worker_id=WORKER, queue="default", limit=limit, lease_id=uuid7(), ttl=30.0)
        return (await self.store.claim(want)).claims

    async def get(self, job_id: UUID) -> JobRecord | None:
        [record] = await self.store.get([job_id])
        return record

    async def there(self, job_id: UUID) -> JobRecord:
        record = await self.get(job_id)
        assert record is not None
        return record

    def notes(self) -> list[str]:
        if self.url.startswith("sqlite"):
            connection = sqlite3.connect(self.url.removeprefix("sqlite:///"))
            rows = connection.execute("select text from note order by text").fetchall()
            connection.close()
        else:
            with psycopg.connect(self.url) as reader:
                rows = reader.execute("select text from note order by text").fetchall()
        return [text for (text,) in rows]


@asynccontextmanager
async def postgres_place(url: str, program: Maker) -> AsyncIterator[Place]:
    store = postgres_store(url)
    await store.open()
    yield Place(url, store, program)
    await store.close()


@asynccontextmanager
async def sqlite_place(directory: Path, program: Maker) -> AsyncIterator[Place]:
    path = directory / "program.db"
    store = sqlite_store(path)
    await store.open()
    connection = sqlite3.connect(path)
    connection.execute(NOTES)
    connection.close()
    yield Place(f"sqlite:///{path}", store, program)
    await store.close()


def job(name: str = "mail", **options: Any) -> Submission:
    return Submission(**{"id": uuid7(), "kind": "call", "name": name, "payload": '{"kwargs":{"a":1}}', **options})


def accepted(answer: Answer) -> Accepted:
    assert isinstance(answer, Accepted), repr(answer)
    return answer


class Ears:
    """What a store's listener hears."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self.heard: list[str] = []
        self._news = asyncio.Event()

    async def open(self) -> Ears:
        await self._store.listen(self._on_wake)
        return self

    async def until(self, queue: str) -> list[str]:
        """Everything heard up to this ring."""
        async with asyncio.timeout(20):
            while queue not in self.heard:
                self._news.clear()
                await self._news.wait()
        return self.heard

    def _on_wake(self, queue: str) -> None:
        # A ring without a name says that the listener has just connected.
        if queue:
            self.heard.append(queue)
            self._news.set()
