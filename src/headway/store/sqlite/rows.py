"""Values on their way into SQLite and out of it: ids as 16 bytes, times as microseconds, lists as JSON or joined ids.

What a value is follows from the name of its parameter or column. Batches are converted column by column: this is the
hot path, and a loop over one column costs a fraction of a decision per value.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain, repeat
from typing import Any
from uuid import UUID, SafeUUID

import msgspec

from headway.store.statements import Query, Row, Statement

Column = Sequence[Any]
Convert = Callable[[Column], Column]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_RETURNS = re.compile(r"^(select|with(?! batch))\b|\breturning\b")

_BATCH = re.compile(r"^with batch\([^)]*\) as materialized \(values (\([^)]*\))\)")
_PLACEHOLDER = re.compile(r"\?(\d+)")
_STEPS = (1, 2, 4, 8, 16, 24, 32, 48, 64)
"""How many rows the `batch` of a statement may have; each makes a text of its own to be prepared."""


class Plan:
    """How one statement is run: what is converted on the way in, and on the way out."""

    def __init__(self, statement: Statement) -> None:
        self._text = statement.text
        self._returns = _RETURNS.search(statement.text) is not None
        self._shared = [(name, _encoder(name)) for name in statement.parameters]
        encoders = [_encoder(name) for name in statement.row_parameters]
        self._encoders = [(place, encode) for place, encode in enumerate(encoders) if encode]
        self._decoders: list[tuple[int, Convert]] | None = None
        batch = _BATCH.match(statement.text)
        self._steps = [(n, _widened(statement.text, batch, n)) for n in _STEPS] if batch else []

    def run(self, cursor: sqlite3.Cursor, query: Query, now: int) -> list[Row]:
        """The statement's rows; for a batch, those of each of its rows in turn. A batch that returns nothing tells how
        many rows it has changed."""
        if not self._text:
            return []
        shared = self._bind(query.parameters, now)
        if query.rows is None:
            found: list[Any] = cursor.execute(self._text, shared).fetchall()
        elif self._steps:
            changed = cursor.connection.total_changes
            found = self._run_steps(cursor, list(self._encode(query.rows)), shared)
            if not self._returns:
                return [(cursor.connection.total_changes - changed,)]
        else:
            rows = [row + shared for row in self._encode(query.rows)] if shared else self._encode(query.rows)
            if not self._returns:
                return [(cursor.executemany(self._text, rows).rowcount,)]
            found = self._run_each(cursor, rows)
        return self._decode(cursor, found) if found else found

    def _run_each(self, cursor: sqlite3.Cursor, rows: Iterable[tuple[Any, ...]]) -> list[Any]:
        found: list[Any] = []
        execute, fetch, text = cursor.execute, cursor.fetchall, self._text
        for row in rows:
            execute(text, row)
            found += fetch()
        return found

    def _run_steps(self, cursor: sqlite3.Cursor, rows: list[tuple[Any, ...]], shared: tuple[Any, ...]) -> list[Any]:
        """In as few statements as can be: each has its price, and behind it other threads of a busy process come first.
        A batch is filled up with rows of nulls, which the statement must leave out."""
        found: list[Any] = []
        for start in range(0, len(rows), _STEPS[-1]):
            part = rows[start : start + _STEPS[-1]]
            size, text = next(step for step in self._steps if step[0] >= len(part))
            nulls = repeat(None, (size - len(part)) * len(part[0]))
            found += cursor.execute(text, (*chain.from_iterable(part), *nulls, *shared)).fetchall()
        return found

    def _bind(self, parameters: Mapping[str, Any], now: int) -> tuple[Any, ...]:
        return tuple(
            now if name == "now" else _encode_one(encode, parameters.get(name)) for name, encode in self._shared
        )

    def _encode(self, rows: Sequence[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
        if not self._encoders or not rows:
            return rows
        columns: list[Column] = list(zip(*rows, strict=True))
        for place, encode in self._encoders:
            columns[place] = encode(columns[place])
        return zip(*columns, strict=True)

    def _decode(self, cursor: sqlite3.Cursor, found: list[Any]) -> list[Row]:
        if self._decoders is None:
            decoders = [_decoder(column[0]) for column in cursor.description]
            self._decoders = [(place, decode) for place, decode in enumerate(decoders) if decode]
        columns: list[Column] = list(zip(*found, strict=True))
        for place, decode in self._decoders:
            columns[place] = decode(columns[place])
        return list(map(sqlite3.Row, repeat(cursor), zip(*columns, strict=True)))


class Plans(dict[str, Plan]):
    """The plans of these statements, each made when it is first asked for."""

    def __init__(self, statements: Mapping[str, Statement]) -> None:
        super().__init__()
        self._statements = statements

    def __missing__(self, name: str) -> Plan:
        plan = self[name] = _plan(self._statements[name])
        return plan


_plan = cache(Plan)
"""The same for all drivers of a process."""


def _widened(text: str, batch: re.Match[str], size: int) -> str:
    """The text with `size` rows in its batch; the statement's own parameters move behind them."""
    width = len(_PLACEHOLDER.findall(batch[1]))
    rows = ", ".join(_moved(batch[1], row * width) for row in range(size))
    return text[: batch.start(1)] + rows + _moved(text[batch.end(1) :], (size - 1) * width)


def _moved(text: str, by: int) -> str:
    return _PLACEHOLDER.sub(lambda place: f"?{int(place[1]) + by}", text)


def microseconds(moment: datetime) -> int:
    """Microseconds since the epoch, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def _encoder(name: str) -> Convert | None:
    return _encode_times if name.endswith("_at") else _ENCODERS.get(name)


def _decoder(name: str) -> Convert | None:
    return _decode_times if name.endswith("_at") else _DECODERS.get(name)


def _encode_one(encode: Convert | None, value: Any) -> Any:
    return value if encode is None else encode((value,))[0]


def _encode_ids(column: Column) -> Column:
    return [value and value.int.to_bytes(16, "big") for value in column]


def _encode_times(column: Column) -> Column:
    return [value and (value - _EPOCH) // _MICROSECOND for value in column]


def _encode_flags(column: Column) -> Column:
    return [value and int(value) for value in column]


def _encode_words(column: Column) -> Column:
    """sqlite3 takes members of enums too, after a long search for an adapter."""
    return [None if value is None else str(value) for value in column]


def _encode_id_lists(column: Column) -> Column:
    return [b"".join(_encode_ids(value)) for value in column]


def _encode_text_lists(column: Column) -> Column:
    return [None if value is None else msgspec.json.encode(value).decode() for value in column]


def _drop(column: Column) -> Column:
    return [None] * len(column)


def _decode_ids(column: Column) -> Column:
    return [value and _uuid(value) for value in column]


def _decode_shared_ids(column: Column) -> Column:
    """Ids that a whole batch has in common are made once."""
    made = {value: value and _uuid(value) for value in set(column)}
    return [made[value] for value in column]


def _decode_times(column: Column) -> Column:
    return [None if value is None else _EPOCH + timedelta(0, 0, value) for value in column]


def _decode_id_lists(column: Column) -> Column:
    # The same name stands for a count in `count_states`.
    return [_uuids(value) if isinstance(value, bytes) else value for value in column]


def _uuids(joined: bytes) -> list[UUID]:
    return [_uuid(joined[start : start + 16]) for start in range(0, len(joined), 16)]


_new = object.__new__
_set_int = UUID.__dict__["int"].__set__
_set_is_safe = UUID.__dict__["is_safe"].__set__
_int = int.from_bytes


def _uuid(data: bytes, unknown: SafeUUID = SafeUUID.unknown) -> UUID:
    """What `UUID(bytes=data)` gives, at a quarter of its cost: its slots are set without its checks."""
    made = _new(UUID)
    _set_int(made, _int(data, "big"))
    _set_is_safe(made, unknown)
    return made


_IDS = (
    *("id", "job_id", "parent_id", "child_id", "after_id", "first_id", "last_id", "schedule_id", "holder", "cursor"),
    *("sealed_id", "owner_id", "attachment_id", "rule_id", "lower_id", "upper_id"),
)
_SHARED_IDS = ("lease_id", "worker_id")
_ID_LISTS = ("jobs", "cancels")
_ENCODERS: dict[str, Convert] = {
    **dict.fromkeys((*_IDS, *_SHARED_IDS), _encode_ids),
    **dict.fromkeys(("at", "since", "until"), _encode_times),
    **dict.fromkeys(
        ("hold", "enabled", "firing", "deduped", "gated", "paused", "pending", "retrying", "parked"), _encode_flags
    ),
    **dict.fromkeys(("state", "outcome", "on_conflict", "on_parent_failure"), _encode_words),
    **dict.fromkeys(_ID_LISTS, _encode_id_lists),
    **dict.fromkeys(("states", "tagged", "closed", "keys", "without"), _encode_text_lists),
    # The driver rings; no statement uses it.
    "wake": _drop,
}
_DECODERS: dict[str, Convert] = {
    **dict.fromkeys(_IDS, _decode_ids),
    **dict.fromkeys(_SHARED_IDS, _decode_shared_ids),
    **dict.fromkeys(_ID_LISTS, _decode_id_lists),
}
