"""The roles played by sqlite3 alone."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

from uuid_utils.compat import uuid7

from headway.bench.app import QUEUE
from headway.bench.child import Parent, Stopwatch, clock
from headway.bench.children import Seat
from headway.clock import sleep
from headway.store.statements import load

SQL = load("headway.bench.sql.sqlite", "?")
# The same as Headway's: every commit is on the disk before it is believed.
PRAGMAS = (
    "pragma busy_timeout = 30000",
    "pragma journal_mode = wal",
    "pragma synchronous = full",
    "pragma cache_size = -65536",
    "pragma wal_autocheckpoint = 4000",
    "pragma temp_store = memory",
)


async def single(parent: Parent, *, url: str, rows_from: str, count: int) -> dict[str, float]:
    rows, connection = read(rows_from, count), connect(url)
    await parent.go()
    watch = Stopwatch()
    for row in rows:
        connection.execute(SQL["insert_one"].text, row)
    return watch.read()


async def concurrent(parent: Parent, *, url: str, rows_from: str, count: int, callers: int) -> dict[str, float]:
    """Callers on the loop, a thread that writes: rows gather while the previous batch is committed."""
    rows, connection = iter(read(rows_from, count)), connect(url)
    loop = asyncio.get_running_loop()
    waiting: list[tuple[Any, asyncio.Future[None]]] = []
    work = asyncio.Event()

    async def caller() -> None:
        for row in rows:
            future = loop.create_future()
            waiting.append((row, future))
            work.set()
            await future

    async def flush() -> None:
        while True:
            await work.wait()
            work.clear()
            batch = waiting[:]
            waiting.clear()
            await asyncio.to_thread(_insert, connection, [row for row, _ in batch])
            for _, future in batch:
                future.set_result(None)

    flusher = asyncio.create_task(flush())
    await parent.go()
    watch = Stopwatch()
    await asyncio.gather(*(caller() for _ in range(callers)))
    measured = watch.read()
    flusher.cancel()
    return measured


async def many(parent: Parent, *, url: str, rows_from: str, count: int, batch: int) -> dict[str, float]:
    rows, connection = read(rows_from, count), connect(url)
    await parent.go()
    watch = Stopwatch()
    for start in range(0, count, batch):
        _insert(connection, rows[start : start + batch])
    return watch.read()


async def drain(parent: Parent, *, url: str, batch: int, seat: dict[str, Any]) -> dict[str, float]:
    """The completion of one batch and the claim of the next share a transaction: nothing is faster on SQLite."""
    count, connection = Seat.of(seat).put, connect(url)
    await parent.go()
    watch = Stopwatch()
    done: list[tuple[int, bytes, int]] = []
    ended = 0
    while True:
        now = now_us()
        connection.execute("begin immediate")
        _complete(connection, done)
        rows = connection.execute(SQL["claim"].text, (QUEUE, batch, uuid7().bytes, uuid7().bytes, now)).fetchall()
        connection.execute("commit")
        ended += len(done)
        count(ended)
        if not rows:
            break
        for _row in rows:
            await noop()
        done = [(row[1], row[0], now) for row in rows]
    used = watch.read()
    await parent.hear()
    return {**used, "ended": ended}


async def noop() -> None:
    """The job."""


async def receive(parent: Parent, *, url: str) -> list[float]:
    """Wait at a socket beside the file, claim what has come, and note the delays."""
    connection = connect(url)
    delays: list[float] = []
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bell.setblocking(False)
    bell.bind(_bell(url))

    async def serve() -> None:
        while True:
            await asyncio.get_running_loop().sock_recv(bell, 16)
            claim = (QUEUE, 100, uuid7().bytes, uuid7().bytes, now_us())
            rows = connection.execute(SQL["claim"].text, claim).fetchall()
            delays.extend(clock.monotonic() - float(row[6]) for row in rows)

    serving = asyncio.create_task(serve())
    await parent.go()
    serving.cancel()
    bell.close()
    return delays


async def send(parent: Parent, *, url: str, count: int, every: float) -> None:
    connection = connect(url)
    await parent.go()
    began = clock.monotonic()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ring:
        for number in range(count):
            await sleep(clock, max(0.0, began + number * every - clock.monotonic()))
            connection.execute(SQL["send"].text, (uuid7().bytes, repr(clock.monotonic()), now_us()))
            ring.sendto(b"!", _bell(url))


async def claim(_parent: Parent, *, url: str, rows_from: str, rows: int, times: int) -> list[float]:
    due, connection = read(rows_from, rows), connect(url)
    took: list[float] = []
    for _ in range(times):
        _insert(connection, [(uuid7().bytes, *row[1:]) for row in due])
        began = clock.monotonic()
        wanted = (QUEUE, rows, uuid7().bytes, uuid7().bytes, now_us())
        claimed = connection.execute(SQL["claim"].text, wanted).fetchall()
        took.append(clock.monotonic() - began)
        assert len(claimed) == rows
        connection.execute("begin immediate")
        _complete(connection, [(row[1], row[0], now_us()) for row in claimed])
        connection.execute("commit")
    return took


def connect(url: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path_of(url), timeout=30, isolation_level=None, check_same_thread=False)
    for pragma in PRAGMAS:
        connection.execute(pragma)
    return connection


def path_of(url: str) -> str:
    return url.removeprefix("sqlite:///")


def now_us() -> int:
    return int(clock.now().timestamp() * 1_000_000)


def read(url: str, count: int) -> list[Any]:
    connection = connect(url)
    rows = connection.execute(SQL["read_rows"].text, (count,)).fetchall()
    connection.close()
    return rows


def _insert(connection: sqlite3.Connection, rows: list[Any]) -> None:
    connection.execute("begin immediate")
    connection.executemany(SQL["insert_one"].text, rows)
    connection.execute("commit")


def _complete(connection: sqlite3.Connection, done: Sequence[tuple[int, bytes, int]]) -> None:
    if done:
        connection.execute(_complete_text(len(done)), [*chain.from_iterable(done)])


@cache
def _complete_text(rows: int) -> str:
    return SQL["complete"].text.replace("(null, null, null)", ", ".join(["(?, ?, ?)"] * rows))


def _bell(url: str) -> str:
    return f"{path_of(url)}.bell"
