"""`headway jobs list | show | why | output`: looking at jobs."""

from __future__ import annotations

import sys
from typing import Annotated
from uuid import UUID

import typer

from headway.cli.access import with_store
from headway.cli.details import Details, gather, print_details
from headway.cli.filters import From, Given, Kind, Name, Queue, States, Tags, Time, To
from headway.cli.following import follow
from headway.cli.naming import find_job
from headway.cli.options import JobId, Json, Store
from headway.cli.shapes import print_json
from headway.cli.tables import console, jobs_table
from headway.components.shapes import job_shape
from headway.components.status import find_jobs
from headway.model.errors import ConfigurationError
from headway.model.job import JobRecord
from headway.model.why import Why
from headway.store.contract import Store as StoreContract

Limit = Annotated[int, typer.Option("--limit", "-n", help="So many at most, up to 1000.")]
Cursor = Annotated[str | None, typer.Option("--cursor", help="Go on behind this id, which the page before named.")]
Attempt = Annotated[int | None, typer.Option("--attempt", min=1, help="Of this attempt instead of the last one.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")]


def list_jobs(  # noqa: PLR0913 - one parameter per flag
    state: States = None,
    time: Time = "created",
    since: From = None,
    until: To = None,
    kind: Kind = None,
    queue: Queue = None,
    name: Name = None,
    tag: Tags = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """List jobs, newest first."""
    given = Given(states=state, kind=kind, queue=queue, name=name, tags=tag, time=time, since=since, until=until)
    after = _cursor(cursor)

    async def look(opened: StoreContract) -> None:
        now = await opened.now()
        page = await find_jobs(opened, given.wanted(now, limit=limit, cursor=after))
        if json:
            print_json({"items": [job_shape(job) for job in page.jobs], "cursor": page.cursor})
            return
        out, none = console(), "no job matches" if given.any else "there are no jobs"
        out.print(jobs_table(page.jobs, now, out.width) if page.jobs else none)
        if page.cursor:
            typer.echo(f"there are more: --cursor {page.cursor}", err=True)

    with_store(store, look)


def show(job: JobId, store: Store = None, json: Json = False) -> None:
    """Show all about a job: fields, arguments, result, error, attempts, history, and why it is where it is."""

    async def look(opened: StoreContract) -> Details:
        return await gather(opened, await find_job(opened, job))

    details = with_store(store, look)
    if json:
        print_json(details.shape())
    else:
        print_details(details, console())


def why(job: JobId, store: Store = None, json: Json = False) -> None:
    """Tell why a job is not running now, and what to do about it."""

    async def look(opened: StoreContract) -> tuple[JobRecord, Why]:
        record = await find_job(opened, job)
        answer = await opened.why(record.id)
        if answer is None:
            raise ConfigurationError(f"job {record.id} is gone: it was deleted just now")
        return record, answer

    record, answer = with_store(store, look)
    if json:
        print_json({"id": record.id, "name": record.name, "state": record.state, **_shape(answer)})
        return
    out = console()
    for line in [answer.sentence, answer.advice, *(f"Also: {text}." for text in answer.warnings)]:
        if line:
            out.print(line, soft_wrap=not out.is_terminal)


def output(job: JobId, attempt: Attempt = None, following: Follow = False, store: Store = None) -> None:
    """Print what a job wrote and logged."""

    async def look(opened: StoreContract) -> int:
        record = await find_job(opened, job)
        if attempt is not None and attempt > record.attempt:
            raise ConfigurationError(
                f"job {record.id} has had {record.attempt} attempts, there is no attempt {attempt}"
            )
        return await follow(opened, record, attempt, to_the_end=following, out=sys.stdout.buffer)

    written = with_store(store, look)
    if not written:
        typer.echo("the job has written nothing", err=True)


def _shape(answer: Why) -> dict[str, object]:
    return {name: getattr(answer, name) for name in ("reason", "sentence", "advice", "warnings")}


def _cursor(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        raise ConfigurationError(f"--cursor {text!r} is no id: take it from the page before") from None
