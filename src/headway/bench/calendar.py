"""Schedules by the million, put into a store without Headway's help."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from headway.bench.app import LATE, QUEUE
from headway.bench.bare import sqlite as bare_sqlite
from headway.model.job import encode
from headway.model.schedule import from_body
from headway.model.submission import Submission
from headway.store.scripts.walk import NO_ID
from headway.store.sqlite.rows import microseconds

COLUMNS = ("id", "name", "record", "template", "next_at", "due_at", "updated_at")
_ID, _NAME = "00000000-0000-0000-0000-000000000000", "a name to be replaced"

Row = tuple[UUID, str, str, str, datetime, datetime, datetime]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """So many schedules of one sort. `start`: what intervals count from."""

    prefix: str
    count: int
    schedule: str | dict[str, float] = "* * * * *"
    next_at: datetime
    apart: float = 0.0
    """Seconds by which each comes later than the one before."""


def rows(kind: Kind) -> Iterator[Row]:
    """Their rows, as `create_schedule` would have stored them."""
    body = {"name": _NAME, "schedule": kind.schedule, "job": {"kind": "call", "function": LATE}}
    sample = encode(from_body(body, id=UUID(_ID), created_at=kind.next_at))
    payload = msgspec.json.encode({"function": LATE, "kwargs": {}}).decode()
    template = encode(Submission(id=NO_ID, kind="call", name=LATE, queue=QUEUE, payload=payload))
    stamp = msgspec.json.encode(kind.next_at).decode()
    for number in range(kind.count):
        schedule_id, name = uuid7(), f"{kind.prefix}{number}"
        at = datetime.fromtimestamp(kind.next_at.timestamp() + number * kind.apart, kind.next_at.tzinfo)
        record = sample.replace(_ID, str(schedule_id)).replace(_NAME, name)
        record = record.replace(stamp, msgspec.json.encode(at).decode()) if kind.apart else record
        yield schedule_id, name, record, template, at, at, at


def fill_sqlite(url: str, kind: Kind) -> None:
    connection = bare_sqlite.connect(url)
    connection.execute("begin")
    connection.executemany(
        f"insert into headway_schedule ({', '.join(COLUMNS)}) values (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - our own names
        ((row[0].bytes, *row[1:4], *map(microseconds, row[4:])) for row in rows(kind)),
    )
    connection.execute("commit")
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()


async def fill_postgres(url: str, kind: Kind) -> None:
    import asyncpg

    connection = await asyncpg.connect(url, timeout=10)
    await connection.copy_records_to_table("schedule", schema_name="headway", columns=COLUMNS, records=rows(kind))
    await connection.execute("vacuum analyze headway.schedule", timeout=600)
    await connection.close()


async def fill(url: str, kind: Kind) -> None:
    """Into the store at this URL."""
    if url.startswith("sqlite"):
        fill_sqlite(url, kind)
    else:
        await fill_postgres(url, kind)
