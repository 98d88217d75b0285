"""`headway submit KIND …`: jobs of every kind, to the server that HEADWAY_URL names, else to the store itself."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from headway import compose
from headway.app import Headway
from headway.cli.access import Change, put_down, who
from headway.cli.bodies import Asked, bodies_of
from headway.cli.options import Json, Store
from headway.cli.shapes import print_json
from headway.cli.tables import console
from headway.clock import SystemClock
from headway.components.create import shaped
from headway.components.shapes import JobShape
from headway.components.targets import Asking, Probes
from headway.kinds import load_kinds
from headway.kinds.bodies import Asked as Read
from headway.kinds.bodies import Bodies, Origin
from headway.model.errors import HeadwayError
from headway.model.states import State
from headway.model.words import count
from headway.remote import BATCH, Item, RemoteClient
from headway.store.scripts.submit import Answer

FEW = 20
"""Up to here every job has a line of its own."""

Kind = Annotated[str, typer.Argument(metavar="KIND", help="call, http, fetch, script, or body: whole bodies as JSON.")]
Subjects = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WHAT",
        help="A function, a URL, URLs to fetch, a script's file, or files of bodies; - is standard input.",
    ),
]
Url = Annotated[
    str | None, typer.Option("--url", envvar="HEADWAY_URL", metavar="URL", help="A server; else the store is used.")
]
Token = Annotated[str | None, typer.Option("--token", envvar="HEADWAY_TOKEN", metavar="TOKEN", help="For the server.")]
Args = Annotated[str | None, typer.Option("--args", metavar="JSON", help="call: arguments by position, e.g. '[42]'.")]
Kwargs = Annotated[str | None, typer.Option("--kwargs", metavar="JSON", help="call: arguments by name.")]
Method = Annotated[str | None, typer.Option("--method", help="http: GET, POST and so on.")]
Payload = Annotated[str | None, typer.Option("--payload", metavar="JSON", help="http: what to send.")]
Header = Annotated[
    list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="http, fetch: a header; repeatable.")
]
Target = Annotated[str | None, typer.Option("--target", help="script: the name of the server it runs on.")]
Name = Annotated[str | None, typer.Option("--name", help="What the job is called.")]
Queue = Annotated[str | None, typer.Option("--queue", help="The queue it goes to.")]
Priority = Annotated[int | None, typer.Option("--priority", help="From -100 (last) to 100 (first).")]
RunAt = Annotated[str | None, typer.Option("--run-at", metavar="TIME", help="2030-01-31T12:00:00Z; else now.")]
Delay = Annotated[float | None, typer.Option("--delay", metavar="SECONDS", help="Seconds from now.")]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="How long it may run.")]
OnConflict = Annotated[
    str | None, typer.Option("--on-conflict", help="If one of its name is open: allow, reject, wait, skip, replace.")
]
Tag = Annotated[list[str] | None, typer.Option("--tag", help="A tag; repeatable.")]
Field = Annotated[
    list[str] | None, typer.Option("--field", metavar="NAME=JSON", help="Any other field of the body; repeatable.")
]
Hold = Annotated[bool, typer.Option("--hold", help="Let it wait until `headway jobs release`.")]
Partial = Annotated[bool, typer.Option("--partial", help="Of many, take those that can be taken.")]


def submit(  # noqa: PLR0913 - one parameter per flag
    kind: Kind,
    what: Subjects = None,
    args: Args = None,
    kwargs: Kwargs = None,
    method: Method = None,
    payload: Payload = None,
    header: Header = None,
    target: Target = None,
    name: Name = None,
    queue: Queue = None,
    priority: Priority = None,
    run_at: RunAt = None,
    delay: Delay = None,
    timeout: Timeout = None,
    on_conflict: OnConflict = None,
    tag: Tag = None,
    field: Field = None,
    hold: Hold = False,
    partial: Partial = False,
    url: Url = None,
    token: Token = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Submit jobs.

    headway submit call mail.welcome --args '[42]' --queue mail

    headway submit http https://example.com/hook --payload '{"a": 1}' --run-at 2030-01-31T12:00:00Z

    headway submit fetch https://example.com/ https://example.org/

    headway submit script backup.sh --target web1 --name backup

    headway submit body jobs.jsonl
    """
    common: dict[str, Any] = {
        "name": name,
        "queue": queue,
        "priority": priority,
        "run_at": run_at,
        "delay": delay,
        "timeout": timeout,
        "on_conflict": on_conflict,
        "tags": tag or None,
        "hold": hold or None,
    }
    own: dict[str, Any] = {
        "args": args,
        "kwargs": kwargs,
        "http_method": method,
        "payload": payload,
        "headers": header,
        "target": target,
    }
    bodies = bodies_of(Asked(kind=kind, what=what or [], own=own, common=common, fields=field or []))
    held = compose.settings(url=url, token=token)
    if held.url:
        with RemoteClient(held.url, held.token) as client:
            items = _with_bar(lambda tell: client.submit_many(bodies, partial=partial, on_progress=tell), len(bodies))
    else:
        compose.configure_logs("warning", as_json=False)
        items = asyncio.run(_to_store(compose.app_or_none(None, store), bodies, partial=partial))
    _tell(items, as_json=json)


def _with_bar(act: Any, total: int) -> list[Item]:
    """A bar where somebody looks at it, and it takes a while."""
    columns = (TextColumn("submitting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = total <= BATCH or not sys.stderr.isatty()
    with Progress(*columns, console=console(err=True), disable=hidden, transient=True) as progress:
        bar = progress.add_task("submitting", total=total)
        items: list[Item] = act(lambda done: progress.update(bar, completed=done))
        return items


async def _to_store(app: Headway, bodies: Sequence[dict[str, Any]], *, partial: bool) -> list[Item]:
    reader = Bodies(load_kinds(), app.announced, app.vault)
    try:
        probes = Probes(Asking(reach=app.client, bodies=reader, clock=SystemClock()), by=who(None))
        read = [await _read(reader, probes, body) for body in bodies]
        items = await _submitted(app, read, partial=partial)
        made = [item.job for item in items if item.job is not None and not item.deduplicated]
        if made:
            change = Change(who(None), "jobs.create", f"jobs/{made[0].id}", count=len(made))
            await app.client.call_patiently(lambda opened: put_down(opened, change))
        return items
    finally:
        await app.aclose()


async def _read(reader: Bodies, probes: Probes, body: dict[str, Any]) -> Read | HeadwayError:
    try:
        asked = await reader.read(body, Origin(by=who(None)))
        await probes.require(body, asked.submission)
    except HeadwayError as error:
        return error
    return asked


async def _submitted(app: Headway, read: Sequence[Read | HeadwayError], *, partial: bool) -> list[Item]:
    """All of them or none; with `partial`, those that can be."""
    refused = [_refusal(each) for each in read if isinstance(each, HeadwayError)]
    if refused and not partial:
        return refused
    asked = [each for each in read if not isinstance(each, HeadwayError)]
    try:
        answers = iter(await app.client.submit_many([each.submission for each in asked], partial=partial))
    except HeadwayError as error:
        return [_refusal(error)]
    return [await _item(app, each, each if isinstance(each, HeadwayError) else next(answers)) for each in read]


async def _item(app: Headway, asked: Read | HeadwayError, answer: Answer) -> Item:
    if isinstance(asked, HeadwayError) or isinstance(answer, HeadwayError):
        return _refusal(answer)
    job = await shaped(app.client, asked, answer)
    return Item(status=200 if answer.earlier else 201, job=job, deduplicated=answer.deduplicated)


def _refusal(error: Answer) -> Item:
    return Item(status=422, error={"detail": str(error), "field": getattr(error, "field", None)})


def _tell(items: Sequence[Item], *, as_json: bool) -> None:
    """Jobs on standard output, refusals and warnings on standard error; status 1 if one was refused."""
    refused = [item for item in items if item.job is None]
    jobs = [item for item in items if item.job is not None]
    if as_json:
        print_json({"items": [msgspec.to_builtins(item) for item in items]})
    elif len(jobs) <= FEW:
        for item in jobs:
            typer.echo(_line(item))
    else:
        earlier = sum(item.deduplicated for item in jobs)
        typer.echo(
            f"{count(len(jobs), 'job')} submitted" + (f", {earlier:,} of them were there before" * (earlier > 0))
        )
    for warning in dict.fromkeys(text for item in jobs if item.job for text in item.job.warnings):
        typer.secho(f"note: {warning}", err=True, fg="yellow")
    for item in refused[:FEW]:
        typer.secho(f"refused: {(item.error or {}).get('detail', item.status)}", err=True, fg="red")
    if len(refused) > FEW:
        typer.secho(f"… and {len(refused) - FEW:,} more", err=True, fg="red")
    if refused:
        raise typer.Exit(1)


def _line(item: Item) -> str:
    job: JobShape | None = item.job
    assert job is not None
    told = f"there already, {job.state}" if item.deduplicated else str(State(job.state))
    return f"{job.id}  {job.name}  {told}"
