"""Queues and workers as JSON: times in RFC 3339, lengths of time in seconds. Jobs: `components/shapes.py`."""

from __future__ import annotations

from typing import Any

import msgspec
import typer

from headway.model.overview import QueueStats, WorkerStats


def print_json(value: object) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def queue_shape(queue: QueueStats) -> dict[str, Any]:
    settings = {name: value for name, value in msgspec.structs.asdict(queue.settings).items() if name != "name"}
    rates = {name: str(settings[name]) if settings[name] else None for name in ("rate", "key_rate")}
    figures = {
        name: value for name, value in msgspec.structs.asdict(queue).items() if name not in {"settings", "pause"}
    }
    pause = {"paused_at": queue.pause.since, "paused_by": queue.pause.by} if queue.pause else {}
    return {**figures, **settings, **rates, **pause}


def worker_shape(worker: WorkerStats) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(worker.info),
        "held": worker.held,
        "silent": round(worker.silent, 3),
        "alive": worker.alive,
    }
