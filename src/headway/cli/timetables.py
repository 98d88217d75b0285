"""Schedules in tables and sentences, readable at 100 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headway.cli.tables import plain_table, state
from headway.model.job import JobRecord
from headway.model.schedule import Schedule, to_body
from headway.model.when import At, Cron, Every, Fire, When
from headway.model.words import ago, dated, duration, moment
from headway.store.scripts.ledger import Line
from headway.store.scripts.schedules import Found, ScheduleRecord, Unreadable

NOTES = {"gap": "clocks go forward: for the times skipped", "overlap": "clocks go back: comes twice"}
_SHORT = 24


def when(timed: When) -> str:
    """`0 6 * * * Europe/Berlin`, `every 5 min`, `at 2030-01-31 06:00:00 UTC`."""
    match timed:
        case Cron():
            return timed.expression if timed.timezone == "UTC" else f"{timed.expression} {timed.timezone}"
        case Every():
            return f"every {duration(timed.seconds)}"
        case At():
            return f"at {moment(timed.at)}"


def upcoming(record: ScheduleRecord, now: datetime) -> Text:
    """When it fires next, or why it does not."""
    if record.paused:
        return Text("paused", style="yellow")
    if record.next_at is None:
        return Text("can't fire again", style="bright_black")
    if record.next_at <= now:
        return Text(f"due {ago(record.next_at, now)}", style="red")
    return Text(ago(record.next_at, now))


def schedules_table(found: Sequence[Found], now: datetime) -> Table:
    """One line per schedule."""
    table = plain_table("name", "when", "next", "last", "job")
    table.columns[0].max_width, table.columns[1].max_width, table.columns[4].max_width = 28, 30, _SHORT
    for record in found:
        if isinstance(record, Unreadable):
            table.add_row(record.name, Text("can't be read", style="red"), "", "", "")
        else:
            last = ago(record.last_at, now) if record.last_at else ""
            table.add_row(record.name, when(record.schedule.when), upcoming(record, now), last, record.template.name)
    return table


def fires_table(fires: Iterable[Fire], timezone: str, now: datetime) -> Table:
    """Coming fires, by the zone's clocks and by UTC."""
    table = plain_table("local time", *([] if timezone == "UTC" else ["UTC"]), "in", "")
    table.columns[-1].no_wrap = False
    for fire in fires:
        local = f"{datetime.fromisoformat(fire.local):%Y-%m-%d %H:%M:%S %z}"
        utc = [] if timezone == "UTC" else [f"{fire.at:%Y-%m-%d %H:%M:%S}"]
        table.add_row(local, *utc, ago(fire.at, now).removeprefix("in "), NOTES[fire.note] if fire.note else "")
    return table


def ledger_table(lines: Sequence[Line], jobs: Mapping[UUID, JobRecord]) -> Table:
    """What became of each nominal time."""
    table = plain_table("nominal time (UTC)", "count", "what became of it")
    table.columns[1].justify = "right"
    table.columns[2].no_wrap = False
    for line in lines:
        table.add_row(_span(line.nominal_at, line.until_at), f"{line.count:,}", _became(line, jobs))
    return table


def _span(first: datetime, last: datetime) -> str:
    """`2030-01-31 06:00:00 … 07:00:00`."""
    start = f"{first:%Y-%m-%d %H:%M:%S}"
    if first == last:
        return start
    return f"{start} … {last:%H:%M:%S}" if first.date() == last.date() else f"{start} … {last:%Y-%m-%d %H:%M:%S}"


def _became(line: Line, jobs: Mapping[UUID, JobRecord]) -> Text:
    if line.job_id is None:
        return Text(f"skipped, {line.reason}{f': {line.detail}' if line.detail else ''}", style="yellow")
    job = jobs.get(line.job_id)
    return Text.assemble(f"job {line.job_id} ", state(job.label) if job else ("removed since", "bright_black"))


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule with all that belongs to it."""

    record: ScheduleRecord
    now: datetime
    fires: list[Fire]
    lines: list[Line]
    jobs: dict[UUID, JobRecord]
    schedulers: int


def print_details(details: Details, out: Console) -> None:
    """From what one asks first to what one rarely needs."""
    record = details.record
    out.print(Text.assemble((record.name, "bold"), "  ", when(record.schedule.when), f"  {record.id}"))
    out.print(_standing(details))
    _section(out, "Fields", _grid(record))
    _section(out, "Job", Text(msgspec.json.format(msgspec.json.encode(record.schedule.job)).decode()))
    if details.fires:
        _section(out, "Coming fires", fires_table(details.fires, record.schedule.when.timezone, details.now))
    if details.lines:
        _section(out, "Last occurrences", ledger_table(details.lines, details.jobs))


def _standing(details: Details) -> str:
    record = details.record
    if record.paused:
        why = f": {record.schedule.pause_reason}" if record.schedule.pause_reason else ""
        return f"It is paused{why}. To go on: headway schedules resume {record.name}"
    if record.next_at is None:
        return "It can't fire again: its times are over."
    told = f"It fires next at {dated(record.next_at, details.now)}."
    return told if details.schedulers else f"{told} But no scheduler runs: start `headway scheduler`."


def _grid(record: ScheduleRecord) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, value in _fields(record.schedule, record):
        grid.add_row(Text(name, style="dim"), value)
    return grid


def _fields(schedule: Schedule, record: ScheduleRecord) -> Iterable[tuple[str, str]]:
    told = ("description", "timezone", "gap", "fold", "misfire", "misfire_limit", "overlap", "jitter")
    body = to_body(schedule)
    yield from (
        (name, f"{value:g} s" if name == "jitter" else str(value)) for name in told if (value := body.get(name))
    )
    yield from ((name, moment(at)) for name in ("start", "end") if (at := body[name]) is not None)
    if schedule.tags:
        yield "tags", ", ".join(schedule.tags)
    if record.source is not None:
        yield "declared by", f"the code of {record.source}" + _version(schedule)
    if record.last_at is not None:
        yield "last", moment(record.last_at)
    yield "created", moment(schedule.created_at)
    yield "changed", f"{moment(record.updated_at)}{f' by {record.updated_by}' if record.updated_by else ''}"
    yield "version", str(record.version)


def _version(schedule: Schedule) -> str:
    return f", version {schedule.code_version}" if schedule.code_version else ""


def _section(out: Console, title: str, content: Table | Text) -> None:
    out.print()
    out.print(Text(title, style="bold"))
    out.print(Padding(content, (0, 0, 0, 2)))
