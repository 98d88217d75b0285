"""`headway queues list | pause | resume | set` and `headway workers`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from headway.cli.access import Change, who, with_store
from headway.cli.options import By, Json, Store
from headway.cli.shapes import print_json, queue_shape, worker_shape
from headway.cli.tables import console, plain_table
from headway.cli.times import length
from headway.model.errors import ConfigurationError
from headway.model.limits import QueueSettings, Rate
from headway.model.overview import QueueStats, WorkerStats
from headway.model.words import duration, listed

QueueName = Annotated[str, typer.Argument(metavar="NAME", help="The queue.")]
_Number = int | None
_Text = str | None
MaxRunning = Annotated[_Number, typer.Option("--max-running", min=1, help="Jobs of the queue that may run at once.")]
NoMaxRunning = Annotated[bool, typer.Option("--no-max-running", help="Lift this limit.")]
RateFlag = Annotated[_Text, typer.Option("--rate", metavar="N/TIME", help="Starts in a time: 10/s, 100/m, 5/10s.")]
NoRate = Annotated[bool, typer.Option("--no-rate", help="Lift this limit.")]
KeyMax = Annotated[_Number, typer.Option("--key-max-running", min=1, help="The same for each key in the queue.")]
NoKeyMax = Annotated[bool, typer.Option("--no-key-max-running", help="Lift this limit.")]
KeyRate = Annotated[_Text, typer.Option("--key-rate", metavar="N/TIME", help="The same for each key in the queue.")]
NoKeyRate = Annotated[bool, typer.Option("--no-key-rate", help="Lift this limit.")]
KeepCompleted = Annotated[
    _Text, typer.Option("--keep-completed", metavar="TIME", help="Keep completed jobs so long: 12h, 7d.")
]
NoKeepCompleted = Annotated[bool, typer.Option("--no-keep-completed", help="Keep them as long as workers say.")]
KeepFailed = Annotated[
    _Text, typer.Option("--keep-failed", metavar="TIME", help="Keep failed and cancelled jobs so long: 30d.")
]
NoKeepFailed = Annotated[bool, typer.Option("--no-keep-failed", help="Keep them as long as workers say.")]


def list_queues(store: Store = None, json: Json = False) -> None:
    """List queues: what waits and runs in them, their limits, who serves them."""
    found = with_store(store, lambda opened: opened.queue_stats())
    if json:
        print_json({"items": [queue_shape(queue) for queue in found], "cursor": None})
        return
    console().print(_queues(found) if found else "no queue holds jobs, has settings or is served by a worker")


def pause(name: QueueName, by: By = None, store: Store = None) -> None:
    """Start no more jobs of a queue; running ones go on."""
    _change(store, name, {"paused": True}, "pause", who(by))
    typer.echo(f"the queue {name} is paused; workers start none of its jobs until `headway queues resume {name}`")


def resume(name: QueueName, by: By = None, store: Store = None) -> None:
    """Start jobs of a paused queue again."""
    _change(store, name, {"paused": False}, "resume", who(by))
    typer.echo(f"the queue {name} is not paused")


def set_queue(  # noqa: PLR0913 - one parameter per flag
    name: QueueName,
    max_running: MaxRunning = None,
    no_max_running: NoMaxRunning = False,
    rate: RateFlag = None,
    no_rate: NoRate = False,
    key_max_running: KeyMax = None,
    no_key_max_running: NoKeyMax = False,
    key_rate: KeyRate = None,
    no_key_rate: NoKeyRate = False,
    keep_completed: KeepCompleted = None,
    no_keep_completed: NoKeepCompleted = False,
    keep_failed: KeepFailed = None,
    no_keep_failed: NoKeepFailed = False,
    by: By = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Set limits and retention of a queue, for all workers; what isn't named stays as it is."""
    given = {
        "max_running": (max_running, no_max_running),
        "rate": (Rate.parse(rate) if rate else None, no_rate),
        "key_max_running": (key_max_running, no_key_max_running),
        "key_rate": (Rate.parse(key_rate) if key_rate else None, no_key_rate),
        "keep_completed": (length(keep_completed, "--keep-completed") if keep_completed else None, no_keep_completed),
        "keep_failed": (length(keep_failed, "--keep-failed") if keep_failed else None, no_keep_failed),
    }
    changes = _changes(given)
    settings = _change(store, name, changes, "change", who(by))
    if json:
        print_json(queue_shape(QueueStats(name=name, settings=settings)) | {"workers": None})
    else:
        typer.echo(f"{name}: {limits(settings) or 'no limits'}")


def workers(store: Store = None, json: Json = False) -> None:
    """List workers: where they run, what they serve, what they hold, when they were last seen."""
    found = with_store(store, lambda opened: opened.worker_stats())
    if json:
        print_json({"items": [worker_shape(worker) for worker in found], "cursor": None})
        return
    console().print(_workers(found) if found else "no worker runs: start one with `headway worker --app module:app`")


def _change(store: str | None, name: str, changes: dict[str, Any], verb: str, by: str) -> QueueSettings:
    told = {field: value and str(value) for field, value in changes.items() if field != "paused"}
    change = Change(by, f"queues.{verb}", f"queues/{name}", told)
    return with_store(store, lambda opened: opened.change_queue(name, changes, by=by), change)


def _changes(given: dict[str, tuple[Any, bool]]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, (value, lift) in given.items():
        flag = name.replace("_", "-")
        if value is not None and lift:
            raise ConfigurationError(f"--{flag} and --no-{flag} contradict each other")
        if value is not None or lift:
            changes[name] = value
    if not changes:
        raise ConfigurationError("nothing to set is named: see `headway queues set --help`")
    return changes


def limits(settings: QueueSettings) -> str:
    """`max 5, 10/s, per key max 1, keep failed 30 d`."""
    told = [
        f"max {settings.max_running}" if settings.max_running else "",
        str(settings.rate) if settings.rate else "",
        f"per key max {settings.key_max_running}" if settings.key_max_running else "",
        f"per key {settings.key_rate}" if settings.key_rate else "",
        f"keep completed {duration(settings.keep_completed)}" if settings.keep_completed is not None else "",
        f"keep failed {duration(settings.keep_failed)}" if settings.keep_failed is not None else "",
    ]
    return ", ".join(filter(None, told))


def _queues(found: list[QueueStats]) -> Table:
    held = any(queue.on_hold for queue in found)
    figures = ["waiting", "due", "oldest due", "running", "blocked", *(["on hold"] if held else [])]
    table = plain_table("queue", *figures, "workers", "paused", "limits")
    for column in table.columns[1 : len(figures) + 1]:
        column.justify = "right"
    table.columns[-1].no_wrap = False
    for queue in found:
        numbers = [queue.running + queue.cancelling, queue.blocked, *([queue.on_hold] if held else [])]
        table.add_row(
            queue.name,
            f"{queue.waiting:,}",
            f"{queue.due:,}",
            duration(queue.oldest_due) if queue.oldest_due is not None else "",
            *(f"{number:,}" for number in numbers),
            listed(queue.workers, 1) or "none",
            _paused(queue),
            limits(queue.settings),
        )
    return table


def _paused(queue: QueueStats) -> str:
    if not queue.settings.paused:
        return ""
    return f"by {queue.pause.by}" if queue.pause and queue.pause.by else "yes"


def _workers(found: list[WorkerStats]) -> Table:
    table = plain_table("worker", "host", "pid", "queues", "running", "slots", "seen", "version")
    for column in (4, 5):
        table.columns[column].justify = "right"
    table.columns[3].no_wrap = False
    for worker in found:
        info = worker.info
        seen = f"{duration(worker.silent)} ago"
        cells: list[str | Text] = [
            info.name,
            info.host,
            str(info.pid),
            ", ".join([*info.queues, *(["(schedules)"] if info.fires else [])]),
            str(worker.held),
            str(info.slots),
        ]
        table.add_row(*cells, Text(seen, style="" if worker.alive else "red"), info.code_version or "")
    return table
