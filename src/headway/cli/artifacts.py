"""`headway jobs artifacts`: files that a job has left."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from headway.cli.access import with_store
from headway.cli.jobs import Attempt
from headway.cli.naming import find_job
from headway.cli.options import JobId, Json, Store
from headway.cli.shapes import print_json
from headway.cli.tables import console, plain_table
from headway.model.errors import ConfigurationError, NotFound, OutputUnavailable
from headway.model.job import Artifact, JobRecord
from headway.model.words import size
from headway.output import open_outputs
from headway.settings import load
from headway.store.contract import Store as StoreContract

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="The file to fetch; without one, all are listed.")]
To = Annotated[Path | None, typer.Option("--to", "-o", help="Write it to this file instead of standard output.")]


def artifacts(  # noqa: PLR0913 - one parameter per flag
    job: JobId, name: Name = None, to: To = None, attempt: Attempt = None, store: Store = None, json: Json = False
) -> None:
    """List the files that a job has left, or fetch one of them."""
    if name is None and to is not None:
        raise ConfigurationError("say which file to write there: headway jobs artifacts ID NAME -o FILE")

    async def look(opened: StoreContract) -> None:
        record = await find_job(opened, job)
        number = attempt or max(record.attempt, 1)
        found = [each for each in await opened.artifacts(record.id) if each.attempt == number]
        if name is not None:
            await _fetch(opened, record, _named(found, name, record, number), to)
        elif json:
            print_json({"items": found})
        else:
            _print(found)

    with_store(store, look)


def _named(found: list[Artifact], name: str, job: JobRecord, attempt: int) -> Artifact:
    for each in found:
        if each.name == name:
            if each.sha256 is None:
                raise NotFound(f"{name!r} of job {job.id} was not kept: {each.note}")
            return each
    raise NotFound(f"attempt {attempt} of job {job.id} has left no file {name!r}: see headway jobs artifacts {job.id}")


async def _fetch(store: StoreContract, job: JobRecord, wanted: Artifact, to: Path | None) -> None:
    digest = hashlib.sha256()
    async with open_outputs(load().output, store) as outputs:
        with _written(to) as out:
            async for piece in outputs.load(job.id, wanted.attempt, wanted.name):
                digest.update(piece)
                out.write(piece)
            if digest.hexdigest() != wanted.sha256:
                raise OutputUnavailable(
                    f"{wanted.name!r} of job {job.id} is not, or not whole, where output is kept "
                    f"({outputs.location(job.id) or 'in the store'}): is HEADWAY_OUTPUT that of the worker?"
                )


@contextmanager
def _written(to: Path | None) -> Iterator[BinaryIO]:
    """Standard output; or a file that is there when it is complete, and not before."""
    if to is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = to.with_name(f".{to.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(to)
    except OSError as error:
        raise ConfigurationError(f"{to} can't be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def _print(found: list[Artifact]) -> None:
    if not found:
        typer.echo("the job has left no files", err=True)
        return
    table = plain_table("name", "size", "sha256", "note")
    table.columns[1].justify = "right"
    for each in found:
        table.add_row(each.name, size(each.size), each.sha256 or "", each.note or "")
    console().print(table)
