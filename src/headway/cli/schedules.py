"""`headway schedules list | show | preview | occurrences`: looking at schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated
from uuid import UUID

import typer

from headway.cli.access import with_store
from headway.cli.options import Json, Store
from headway.cli.shapes import print_json
from headway.cli.tables import console
from headway.cli.times import moment
from headway.cli.timetables import Details, fires_table, ledger_table, print_details, schedules_table
from headway.cli.timing import At, Cron, End, Every, Fold, Gap, Given, Start, TimeZone
from headway.clock import SystemClock
from headway.model.errors import ConfigurationError
from headway.model.job import JobRecord
from headway.model.schedule import Schedule
from headway.schedules import find_schedule, new_schedule, schedule_shape
from headway.store.contract import Store as StoreContract
from headway.store.scripts.ledger import Line
from headway.store.scripts.schedules import ScheduleFilter

ScheduleName = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name, or its id.")]
NameFilter = Annotated[
    str | None, typer.Option("--name", help="Schedules of this name; mail.* for all that begin with it.")
]
Tag = Annotated[str | None, typer.Option("--tag", help="Schedules with this tag.")]
Paused = Annotated[bool | None, typer.Option("--paused/--active", help="Only those that are paused, or are not.")]
Source = Annotated[str | None, typer.Option("--source", help="Those declared by the code of this app.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="So many at most.")]
Cursor = Annotated[str, typer.Option("--cursor", help="Go on behind this name, which the page before ended with.")]
Count = Annotated[int, typer.Option("--count", "-n", min=1, max=1000, help="So many fires.")]
After = Annotated[str | None, typer.Option("--after", metavar="TIME", help="Those after this time instead of now.")]
Before = Annotated[str | None, typer.Option("--before", metavar="TIME", help="Those before this time.")]
MaybeName = Annotated[str | None, typer.Argument(metavar="[NAME]", help="A stored schedule; else say when by flags.")]


def list_schedules(  # noqa: PLR0913 - one parameter per flag
    name: NameFilter = None,
    tag: Tag = None,
    paused: Paused = None,
    source: Source = None,
    limit: Limit = 50,
    cursor: Cursor = "",
    store: Store = None,
    json: Json = False,
) -> None:
    """List schedules by name: when they fire, when next, which job they make."""
    prefix = name.removesuffix("*") if name and name.endswith("*") else None
    wanted = ScheduleFilter(
        name=None if prefix is not None else name,
        name_prefix=prefix,
        tag=tag,
        paused=paused,
        source=source,
        cursor=cursor,
        limit=limit + 1,
    )

    async def look(opened: StoreContract) -> None:
        found = await opened.find_schedules(wanted)
        page, more = found[:limit], len(found) > limit
        if json:
            items = [schedule_shape(record) for record in page]
            print_json({"items": items, "cursor": items[-1]["name"] if more else None})
            return
        out = console()
        out.print(schedules_table(page, await opened.now()) if page else "no schedule matches")
        if more:
            typer.echo(f"there are more: --cursor {schedule_shape(page[-1])['name']!r}", err=True)

    with_store(store, look)


def show(name: ScheduleName, store: Store = None, json: Json = False) -> None:
    """Show all about a schedule: its fields, its job, the coming fires, what became of the last ones."""

    async def look(opened: StoreContract) -> Details:
        record, now = await find_schedule(opened, name), await opened.now()
        lines = await opened.occurrences(record.id, limit=5)
        fires = [] if record.paused or record.ended else list(islice(record.schedule.preview(now), 5))
        return Details(
            record=record,
            now=now,
            fires=fires,
            lines=lines,
            jobs=await _jobs(opened, lines),
            schedulers=await opened.schedulers(),
        )

    details = with_store(store, look)
    if json:
        print_json({**schedule_shape(details.record), "preview": details.fires, "occurrences": details.lines})
    else:
        print_details(details, console())


def preview(  # noqa: PLR0913 - one parameter per flag
    name: MaybeName = None,
    cron: Cron = None,
    every: Every = None,
    at: At = None,
    tz: TimeZone = None,
    gap: Gap = None,
    fold: Fold = None,
    start: Start = None,
    end: End = None,
    count: Count = 10,
    after: After = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show the coming fires of a schedule, stored or only thought of, with the jumps of the zone's clocks marked."""
    given = Given(cron=cron, every=every, at=at, tz=tz, gap=gap, fold=fold, start=start, end=end)
    if (name is None) == (given == Given()):
        raise ConfigurationError("preview a stored schedule by its name, or say when by --cron, --every or --at")
    stored = None if name is None else with_store(store, lambda opened: _stored(opened, name))
    now = stored[1] if stored else SystemClock().now()
    schedule = stored[0] if stored else new_schedule(given.body(now) | _THOUGHT, now)
    since = moment(after, now, "--after") if after else now
    fires = list(islice(schedule.preview(since), count))
    if json:
        print_json({"items": fires, "cursor": None})
        return
    out = console()
    out.print(fires_table(fires, schedule.when.timezone, now) if fires else "it can't fire again: its times are over")


def occurrences(
    name: ScheduleName, limit: Limit = 50, before: Before = None, store: Store = None, json: Json = False
) -> None:
    """Show what became of a schedule's nominal times, latest first: which job, or why none."""

    async def look(opened: StoreContract) -> tuple[list[Line], dict[UUID, JobRecord]]:
        record, now = await find_schedule(opened, name), await opened.now()
        until: datetime | None = moment(before, now, "--before") if before else None
        lines = await opened.occurrences(record.id, before=until, limit=limit)
        return lines, await _jobs(opened, lines)

    lines, jobs = with_store(store, look)
    if json:
        print_json({"items": lines, "cursor": lines[-1].nominal_at if len(lines) == limit else None})
        return
    console().print(ledger_table(lines, jobs) if lines else "it has not fired yet")


_THOUGHT = {"name": "thought of", "job": {"kind": "call"}}


async def _stored(store: StoreContract, name: str) -> tuple[Schedule, datetime]:
    return (await find_schedule(store, name)).schedule, await store.now()


async def _jobs(store: StoreContract, lines: Sequence[Line]) -> dict[UUID, JobRecord]:
    ids = [line.job_id for line in lines if line.job_id is not None]
    return {job.id: job for job in await store.get(ids) if job is not None} if ids else {}
