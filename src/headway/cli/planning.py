"""`headway schedules create | delete | pause | resume | run`: changing schedules."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer
from uuid_utils.compat import uuid7

from headway.cli.access import Change, put_down, who, with_store
from headway.cli.options import By, Json, Store, Yes
from headway.cli.secrets import with_vault
from headway.cli.shapes import print_json
from headway.cli.timing import At, Cron, End, Every, Fold, Gap, Given, Jitter, Start, TimeZone
from headway.client import while_busy
from headway.clock import SystemClock
from headway.components.announced import Announced
from headway.components.create import run_schedule
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies
from headway.model.errors import ConfigurationError, NameTaken
from headway.model.submission import Accepted
from headway.model.words import dated
from headway.schedules import Drafting, changed_schedule, find_schedule, new_schedule, schedule_shape
from headway.store.contract import Store as StoreContract
from headway.store.scripts.schedules import ScheduleFilter, ScheduleRecord
from headway.vault.vault import Vault

T = TypeVar("T")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name, or its id.")]
NewName = Annotated[str | None, typer.Argument(metavar="[NAME]", help="What it is called.")]
Function = Annotated[str | None, typer.Option("--function", help="The function that its jobs call.")]
Args = Annotated[str | None, typer.Option("--args", metavar="JSON", help="Arguments by position, e.g. '[42]'.")]
Kwargs = Annotated[
    str | None, typer.Option("--kwargs", metavar="JSON", help="Arguments by name, e.g. '{\"user_id\": 42}'.")
]
JobBody = Annotated[str | None, typer.Option("--job", metavar="JSON", help="The whole body of its jobs.")]
From = Annotated[
    str | None, typer.Option("--from", metavar="FILE", help="A body as JSON; - is standard input. Flags overrule it.")
]
Misfire = Annotated[
    str | None, typer.Option("--misfire", help="What becomes of missed fires: skip, run_once, run_all.")
]
MisfireLimit = Annotated[int | None, typer.Option("--misfire-limit", help="The most that run_all makes at once.")]
Overlap = Annotated[str | None, typer.Option("--overlap", help="Beside an unfinished job: allow, skip, wait, replace.")]
Description = Annotated[str | None, typer.Option("--description", help="For people.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; repeatable.")]
Paused = Annotated[bool, typer.Option("--paused", help="Make it, but let it wait to be resumed.")]
Replace = Annotated[bool, typer.Option("--replace", help="If there is one of that name, change that.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why, for others.")]


def create(  # noqa: PLR0913 - one parameter per flag
    name: NewName = None,
    cron: Cron = None,
    every: Every = None,
    at: At = None,
    tz: TimeZone = None,
    gap: Gap = None,
    fold: Fold = None,
    function: Function = None,
    args: Args = None,
    kwargs: Kwargs = None,
    job: JobBody = None,
    body: From = None,
    misfire: Misfire = None,
    misfire_limit: MisfireLimit = None,
    overlap: Overlap = None,
    jitter: Jitter = None,
    start: Start = None,
    end: End = None,
    description: Description = None,
    tag: Tags = None,
    paused: Paused = False,
    replace: Replace = False,
    by: By = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Make a schedule: by flags, or from a body in a file or on standard input.

    headway schedules create nightly --cron '0 3 * * *' --tz Europe/Berlin --function reports.nightly --args '[7]'
    """
    asker = who(by)
    given = Given(cron=cron, every=every, at=at, tz=tz, gap=gap, fold=fold, start=start, end=end, jitter=jitter)
    said: dict[str, Any] = {
        "name": name,
        "job": _job(function, args, kwargs, job),
        "misfire": misfire,
        "misfire_limit": misfire_limit,
        "overlap": overlap,
        "description": description,
        "tags": tag or None,
        "paused": paused or None,
    }
    asked = _read(body) | {field: value for field, value in said.items() if value is not None}

    async def make(vault: Vault, opened: StoreContract) -> tuple[ScheduleRecord, tuple[str, ...]]:
        announced = Announced(opened.functions, SystemClock())
        drafting = Drafting(Bodies(load_kinds(), announced, vault), announced)
        return await _make(opened, drafting, asked | given.body(await opened.now()), asker, replace=replace)

    record, warnings = with_vault(store, make, Change(asker, "schedules.create", f"schedules/{asked.get('name')}"))
    for warning in warnings:
        typer.secho(f"note: {warning}", err=True, fg="yellow")
    _tell(record, "made" if record.version == 1 else "changed", as_json=json)


def delete(name: Name, yes: Yes = False, by: By = None, store: Store = None) -> None:
    """Remove a schedule with its ledger; the jobs it made stay."""

    async def remove(opened: StoreContract) -> str:
        found = await _named(opened, name)
        _confirm(found, yes=yes)
        await put_down(opened, Change(who(by), "schedules.delete", f"schedules/{found['name']}"))
        await _patiently(lambda: opened.delete_schedule(found["id"]))
        return str(found["name"])

    typer.echo(f"the schedule {with_store(store, remove)} is removed")


def pause(name: Name, reason: Reason = None, by: By = None, store: Store = None, json: Json = False) -> None:
    """Fire no more until it is resumed."""
    asker = who(by)

    async def act(opened: StoreContract) -> ScheduleRecord:
        found = await find_schedule(opened, name)
        return await _patiently(lambda: opened.pause_schedule(found.id, by=asker, reason=reason))

    change = Change(asker, "schedules.pause", f"schedules/{name}", {"reason": reason} if reason else {})
    _tell(with_store(store, act, change), "paused", as_json=json)


def resume(name: Name, by: By = None, store: Store = None, json: Json = False) -> None:
    """Go on from now; what was missed meanwhile is told by the ledger."""
    asker = who(by)

    async def act(opened: StoreContract) -> ScheduleRecord:
        found = await find_schedule(opened, name)
        return await _patiently(lambda: opened.resume_schedule(found.id, by=asker))

    _tell(with_store(store, act, Change(asker, "schedules.resume", f"schedules/{name}")), "resumed", as_json=json)


def run(name: Name, by: By = None, store: Store = None, json: Json = False) -> None:
    """Make one job of it at once, beside its timetable."""
    asker, job_id = who(by), uuid7()

    async def act(opened: StoreContract) -> Accepted:
        found = await find_schedule(opened, name)
        return await _patiently(lambda: run_schedule(opened, found.id, job_id, by=asker))

    accepted = with_store(store, act, Change(asker, "schedules.run", f"schedules/{name}"))
    if json:
        print_json({"job_id": accepted.job_id, "state": accepted.state, "deduplicated": accepted.deduplicated})
    elif accepted.deduplicated:
        typer.echo(f"an earlier job has not ended and stands for it: {accepted.job_id}")
    else:
        typer.echo(f"job {accepted.job_id} is {accepted.state}")


async def _make(
    store: StoreContract, drafting: Drafting, body: Mapping[str, Any], by: str, *, replace: bool
) -> tuple[ScheduleRecord, tuple[str, ...]]:
    draft, warnings = await drafting.draft(new_schedule(body, await store.now()))
    try:
        return await _patiently(lambda: store.create_schedule(draft, by=by)), warnings
    except NameTaken:
        if not replace:
            raise
    before = (await find_schedule(store, draft.schedule.name)).schedule
    changed, warnings = await drafting.draft(changed_schedule(before, body))
    return await _patiently(lambda: store.change_schedule(changed, None, by=by)), warnings


async def _named(store: StoreContract, name: str) -> dict[str, Any]:
    """Also one that can't be read: it must be possible to remove it."""
    found = await store.find_schedules(ScheduleFilter(name=name, limit=1))
    return schedule_shape(found[0] if found else await find_schedule(store, name))


def _confirm(found: Mapping[str, Any], *, yes: bool) -> None:
    if yes:
        return
    source = found.get("source")
    comes_back = f" The code of {source} declares it: it comes back when that starts again." if source else ""
    if not sys.stdin.isatty():
        raise ConfigurationError(f"to delete the schedule {found['name']} without a terminal to ask at, add --yes")
    if not typer.confirm(f"Delete the schedule {found['name']} with its ledger?{comes_back}", err=True):
        typer.echo("nothing was done", err=True)
        raise typer.Exit(1)


def _tell(record: ScheduleRecord, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(schedule_shape(record))
        return
    told = f"the schedule {record.name} is {what}"
    if record.paused:
        typer.echo(f"{told}{', paused' * (what != 'paused')}; to let it fire: headway schedules resume {record.name}")
    elif record.next_at is None:
        typer.echo(f"{told}; it can't fire again")
    else:
        typer.echo(f"{told}; it fires next at {dated(record.next_at, record.updated_at)}")


def _job(function: str | None, args: str | None, kwargs: str | None, job: str | None) -> dict[str, Any] | None:
    if function is not None and job is not None:
        raise ConfigurationError("--function and --job contradict each other: say one of them")
    if job is not None:
        whole: dict[str, Any] = _json(job, "--job", dict)
        return whole
    if function is None:
        if args is not None or kwargs is not None:
            raise ConfigurationError("--args and --kwargs go with --function")
        return None
    body: dict[str, Any] = {"kind": "call", "function": function}
    if args is not None:
        body["args"] = _json(args, "--args", list)
    if kwargs is not None:
        body["kwargs"] = _json(kwargs, "--kwargs", dict)
    return body


def _read(source: str | None) -> dict[str, Any]:
    if source is None:
        return {}
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text()
    except OSError as error:
        raise ConfigurationError(f"--from {source}: {error.strerror}") from error
    body: dict[str, Any] = _json(text, "--from", dict)
    return body


_EXAMPLES = {
    "--job": '{"kind": "call", "function": "mail.welcome", "args": [42]}',
    "--from": '{"name": "nightly", "schedule": "0 3 * * *", "job": {…}}',
    "--args": "[42]",
    "--kwargs": '{"user_id": 42}',
}


def _json(text: str, flag: str, kind: type[dict[str, Any]] | type[list[Any]]) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{flag} must be JSON such as {_EXAMPLES[flag]}: {error}") from error


async def _patiently(act: Callable[[], Awaitable[T]]) -> T:
    return await while_busy(act, SystemClock())
