"""All about one job, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headway.cli.tables import plain_table, progress, state, tries
from headway.components.shapes import JobShape
from headway.components.status import describe
from headway.model.job import Attempt, Change, JobRecord
from headway.model.why import Why
from headway.model.words import dated, duration, moment, size
from headway.results import Result, describe_result, load_result
from headway.settings import load
from headway.store.contract import Store

LONGEST = 2000
"""Of arguments and results, so many characters are shown."""


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """A job with all that belongs to it."""

    job: JobRecord
    shown: JobShape
    now: datetime
    attempts: list[Attempt]
    history: list[Change]
    result: Result | None
    why: Why | None
    workers: dict[str, str]
    """Names by id."""

    def shape(self) -> dict[str, Any]:
        """As JSON: the job as everywhere, and what is told only here."""
        told = {name: getattr(self.job, name) for name in ("retry", "on_parent_failure", "code_version")}
        return {
            **msgspec.to_builtins(msgspec.structs.replace(self.shown, warnings=self.why.warnings if self.why else ())),
            **told,
            "payload": _plain(self.job.payload.encode()),
            "result": _plain(self.result.content) if self.result else None,
            "result_meta": describe_result(self.result) if self.result else None,
            "attempts": self.attempts,
            "history": self.history,
            "why": self.why,
        }


async def gather(store: Store, job: JobRecord) -> Details:
    """Ask for everything."""
    return Details(
        job=job,
        shown=await describe(store, job, load().output),
        now=await store.now(),
        attempts=await store.attempts(job.id),
        history=await store.history(job.id),
        result=await load_result(store, job.id),
        why=await store.why(job.id),
        workers={str(worker.id): worker.name for worker in await store.workers()},
    )


def print_details(details: Details, out: Console) -> None:
    """From what one asks first to what one rarely needs."""
    job = details.job
    out.print(Text.assemble((job.name, "bold"), "  ", state(job.label), f"  {job.id}"))
    if details.why:
        out.print(details.why.sentence)
        for line in [*([details.why.advice] if details.why.advice else []), *_also(details.why)]:
            out.print(line, style="dim")
    _section(out, "Fields", _grid(details))
    for title, text in _texts(details):
        _section(out, title, Text(text))
    if details.attempts:
        _section(out, "Attempts", _attempts(details))
    _section(out, "History", _history(details.history))


def _also(why: Why) -> list[str]:
    return [f"Also: {text}." for text in why.warnings]


def _section(out: Console, title: str, content: Table | Text) -> None:
    out.print()
    out.print(title, style="bold")
    out.print(Padding(content, (0, 0, 0, 2), expand=False))


def _grid(details: Details) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, value in _fields(details):
        if value:
            grid.add_row(Text(name, style="dim"), value)
    return grid


def _fields(details: Details) -> Iterator[tuple[str, str]]:
    job, now = details.job, details.now
    yield "state", f"{job.state}{f', outcome {job.outcome}' if job.outcome else ''}"
    yield "kind, queue", f"{job.kind}, {job.queue}"
    yield "priority", str(job.priority) if job.priority else ""
    yield "key", job.key if job.key != job.name else ""
    yield "tags", ", ".join(job.tags)
    for name in ("created", "desired", "run", "claimed", "started", "finished", "expires"):
        at: datetime | None = getattr(job, f"{name}_at")
        yield f"{name} at", dated(at, now) if at and not (name == "desired" and at == job.run_at) else ""
    yield "created by", job.created_by or ""
    counted = [f"{number} {word}" for number, word in ((job.failures, "failed"), (job.losses, "lost")) if number]
    yield "tries", ", ".join([tries(job), *counted])
    yield "timeout", duration(job.timeout) if job.timeout else ""
    yield "retry", _policy(job)
    yield "waits for", job.wait_reason or ""
    yield "after", ", ".join(map(str, job.after))
    yield "if a parent fails", job.on_parent_failure.value if job.after else ""
    yield "worker", details.workers.get(job.worker, job.worker) if job.worker else ""
    yield "code version", job.code_version or ""
    yield (
        "schedule",
        f"{job.schedule_id}, for {moment(job.nominal_at) if job.nominal_at else 'no time'}" if job.schedule_id else "",
    )
    yield "correlation id", job.correlation_id or ""
    yield "trace", job.traceparent or ""
    yield "metadata", msgspec.json.encode(job.metadata).decode() if job.metadata else ""
    yield "progress", progress(job)
    script, octets = details.shown.script_sha256, details.shown.script_size
    yield "script", f"{size(octets)}, sha256 {script}" if script and octets else ""
    yield "output at", details.shown.output_location or ""


def _policy(job: JobRecord) -> str:
    if job.retry is None:
        return ""
    return ", ".join(f"{name} {value}" for name, value in msgspec.to_builtins(job.retry).items() if value)


def _texts(details: Details) -> Iterator[tuple[str, str]]:
    yield "Arguments", _short(details.job.payload)
    if details.result is not None:
        yield f"Result ({size(details.result.size)}, {details.result.content_type})", _shown(details.result)
    if error := details.job.error:
        yield "Error", "\n".join(filter(None, [f"{error.type}: {error.message}", (error.traceback or "").rstrip()]))


def _attempts(details: Details) -> Table:
    table = plain_table("no", "outcome", "began", "ran", "worker", "error")
    for attempt in details.attempts:
        began, ended = attempt.started_at or attempt.claimed_at, attempt.finished_at
        table.add_row(
            str(attempt.number),
            state(attempt.outcome or "running"),
            moment(began) if began else "",
            duration((ended - began).total_seconds()) if began and ended else "",
            details.workers.get(attempt.worker, attempt.worker[:13]) if attempt.worker else "",
            f"{attempt.error.type}: {attempt.error.message}" if attempt.error else "",
        )
    return table


def _history(changes: list[Change]) -> Table:
    table = plain_table("at", "what", "by", "detail")
    table.columns[3].no_wrap = False
    for change in changes:
        table.add_row(moment(change.at), state(change.what), change.by or "", change.detail or "")
    return table


def _shown(result: Result) -> str:
    try:
        return _short(result.content.decode(result.meta.get("charset") or "utf-8"))
    except (UnicodeDecodeError, LookupError):
        return "not text; to get it: GET /api/v1/jobs/{id}/result"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters; --json prints all)"


def _plain(data: bytes) -> Any:
    """Data as JSON has it; what is no JSON, as text."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data.decode(errors="replace")
