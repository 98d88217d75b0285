"""What is configured in the store: queues and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headway.model.limits import Limit, QueueSettings
from headway.store.scripts.gates import Limits, parse_rate
from headway.store.statements import Row, Script, one


def limits() -> Script[Limits]:
    """Queues with settings of their own, and limits per key."""
    queues = yield one("get_queues")
    keys = yield one("get_key_limits")
    return Limits(
        {row["name"]: _queue(row) for row in queues},
        {row["key"]: Limit(max_running=row["max_running"], rate=parse_rate(row["rate"])) for row in keys},
    )


def put_queue(settings: QueueSettings, by: str | None) -> Script[None]:
    """All settings of a queue at once; a pause is dated and signed."""
    yield one(
        "put_queue",
        name=settings.name,
        paused=settings.paused,
        max_running=settings.max_running,
        rate=settings.rate and str(settings.rate),
        key_max_running=settings.key_max_running,
        key_rate=settings.key_rate and str(settings.key_rate),
        keep_completed=settings.keep_completed,
        keep_failed=settings.keep_failed,
        by=by,
    )
    yield one("wake", wake=[settings.name])


def change_queue(name: str, changes: Mapping[str, Any], by: str | None) -> Script[QueueSettings]:
    """Some settings of a queue, the others stay; returns what holds now."""
    [row] = yield one("take_queue", name=name)
    settings = QueueSettings(**{**msgspec.structs.asdict(_queue(row)), **changes})
    yield from put_queue(settings, by)
    return settings


def put_key_limit(key: str, limit: Limit | None) -> Script[None]:
    """Set the limit of a key; None lifts it."""
    if limit is None:
        yield one("drop_key_limit", key=key)
    else:
        yield one("put_key_limit", key=key, max_running=limit.max_running, rate=limit.rate and str(limit.rate))


def _queue(row: Row) -> QueueSettings:
    return QueueSettings(
        name=row["name"],
        paused=bool(row["paused"]),
        max_running=row["max_running"],
        rate=parse_rate(row["rate"]),
        key_max_running=row["key_max_running"],
        key_rate=parse_rate(row["key_rate"]),
        keep_completed=row["keep_completed"],
        keep_failed=row["keep_failed"],
    )
