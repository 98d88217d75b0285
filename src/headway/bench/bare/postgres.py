"""The roles played by asyncpg alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

from headway.bench.app import QUEUE
from headway.bench.child import Parent, Stopwatch, clock
from headway.bench.children import Seat
from headway.clock import sleep
from headway.store.statements import load

SQL = load("headway.bench.sql.postgres", "$")
START = (-32768, datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))

# Plans made on empty tables must not stay sequential scans: without this the ceiling would be lower.
SETTINGS = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off"}

Row = Any


async def single(parent: Parent, *, url: str, rows_from: str, count: int) -> dict[str, float]:
    rows = [tuple(row) for row in await _read(rows_from, count)]
    connection = await _connect(url)
    insert = await connection.prepare(SQL["insert_one"].text)
    await parent.go()
    watch = Stopwatch()
    for row in rows:
        await insert.fetch(*row)
    return watch.read()


async def concurrent(parent: Parent, *, url: str, rows_from: str, count: int, callers: int) -> dict[str, float]:
    """Callers wait for the commit that their row is part of; rows gather while the previous batch is committed."""
    rows = iter([tuple(row) for row in await _read(rows_from, count)])
    connection = await _connect(url)
    insert = await connection.prepare(SQL["insert_many"].text)
    loop = asyncio.get_running_loop()
    waiting: list[tuple[tuple[Any, ...], asyncio.Future[None]]] = []
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
            await insert.fetch(*_columns([row for row, _ in batch]))
            for _, future in batch:
                future.set_result(None)

    flusher = asyncio.create_task(flush())
    await parent.go()
    watch = Stopwatch()
    await asyncio.gather(*(caller() for _ in range(callers)))
    read = watch.read()
    flusher.cancel()
    return read


async def many(parent: Parent, *, url: str, rows_from: str, count: int, batch: int) -> dict[str, float]:
    rows = [tuple(row) for row in await _read(rows_from, count)]
    connection = await _connect(url)
    insert = await connection.prepare(SQL["insert_many"].text)
    await parent.go()
    watch = Stopwatch()
    for start in range(0, count, batch):
        await insert.fetch(*_columns(rows[start : start + batch]))
    return watch.read()


async def drain(parent: Parent, *, url: str, batch: int, seat: dict[str, Any]) -> dict[str, float]:
    """Claim, run, complete: each works on a batch while the next one is under way, on two connections."""
    count = Seat.of(seat).put
    claiming, completing = await _connect(url), await _connect(url)
    await parent.go()
    watch = Stopwatch()
    ended = await _drain(claiming, completing, batch, count)
    used = watch.read()
    await parent.hear()
    return {**used, "ended": ended}


async def serve(parent: Parent, *, url: str, batch: int) -> int:
    """The same, one of many who drain together: connected before the signal."""
    claiming, completing = await _connect(url), await _connect(url)
    await parent.go()
    return await _drain(claiming, completing, batch, lambda _ended: None)


async def _drain(claiming: Any, completing: Any, batch: int, count: Callable[[int], None]) -> int:
    claimed: asyncio.Queue[list[Row] | None] = asyncio.Queue(1)
    run: asyncio.Queue[list[Row] | None] = asyncio.Queue(1)
    claims = asyncio.create_task(_claim_all(claiming, batch, claimed))
    ends = asyncio.create_task(_complete_all(completing, run, count))
    while rows := await claimed.get():
        for _row in rows:
            await noop()
        await run.put(rows)
    await run.put(None)
    await claims
    return await ends


async def noop() -> None:
    """The job."""


async def receive(parent: Parent, *, url: str) -> list[float]:
    """LISTEN, claim what has come, and note the delays."""
    listening, claiming = await _connect(url), await _connect(url)
    claim = await claiming.prepare(SQL["claim"].text)
    heard = asyncio.Event()
    await listening.add_listener("headway_bench", lambda *_: heard.set())
    delays: list[float] = []

    async def serve() -> None:
        while True:
            await heard.wait()
            heard.clear()
            rows = await claim.fetch(QUEUE, 100, uuid7(), uuid7(), *START)
            delays.extend(clock.monotonic() - float(row["payload"]) for row in rows)

    serving = asyncio.create_task(serve())
    await parent.go()
    serving.cancel()
    return delays


async def send(parent: Parent, *, url: str, count: int, every: float) -> None:
    connection = await _connect(url)
    insert = await connection.prepare(SQL["send"].text)
    await parent.go()
    began = clock.monotonic()
    for number in range(count):
        await sleep(clock, max(0.0, began + number * every - clock.monotonic()))
        await insert.fetch(uuid7(), repr(clock.monotonic()))


async def claim(_parent: Parent, *, url: str, rows_from: str, rows: int, times: int) -> list[float]:
    due = [tuple(row) for row in await _read(rows_from, rows)]
    connection = await _connect(url)
    took: list[float] = []
    for _ in range(times):
        fresh = [(uuid7(), *row[1:]) for row in due]
        await connection.fetch(SQL["insert_many"].text, *_columns(fresh))
        began = clock.monotonic()
        claimed = await connection.fetch(SQL["claim"].text, QUEUE, rows, uuid7(), uuid7(), *START)
        took.append(clock.monotonic() - began)
        assert len(claimed) == rows
        await connection.fetch(SQL["complete"].text, *_columns([(row["id"], row["token"]) for row in claimed]))
    return took


async def _claim_all(connection: Any, batch: int, out: asyncio.Queue[list[Row] | None]) -> None:
    claim = await connection.prepare(SQL["claim"].text)
    mark = START
    while True:
        rows = await claim.fetch(QUEUE, batch, uuid7(), uuid7(), *mark)
        if not rows and mark == START:
            break
        mark = max(((row["rank"], row["run_at"], row["id"]) for row in rows), default=START)
        if rows:
            await out.put(rows)
    await out.put(None)


async def _complete_all(connection: Any, run: asyncio.Queue[list[Row] | None], count: Callable[[int], None]) -> int:
    complete = await connection.prepare(SQL["complete"].text)
    ended = 0
    while rows := await run.get():
        await complete.fetch(*_columns([(row["id"], row["token"]) for row in sorted(rows, key=lambda row: row["id"])]))
        ended += len(rows)
        count(ended)
    return ended


async def _read(url: str, count: int) -> Sequence[Row]:
    connection = await _connect(url)
    rows: Sequence[Row] = await connection.fetch(SQL["read_rows"].text, count)
    await connection.close()
    return rows


async def _connect(url: str) -> Any:
    return await asyncpg.connect(url, server_settings=SETTINGS, max_cached_statement_lifetime=0)


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))
