"""Which jobs are meant: flags for the filters that library, messages and REST have too."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, get_args
from uuid import UUID

import msgspec
import typer

from headway.cli.times import moment
from headway.model.errors import ConfigurationError
from headway.model.filters import JobFilter, TimeField

States = Annotated[
    list[str] | None,
    typer.Option("--state", "-s", help="A state or label, in any case; repeat it or separate by commas."),
]
Kind = Annotated[str | None, typer.Option("--kind", help="call, or a kind that a plug-in adds.")]
Queue = Annotated[str | None, typer.Option("--queue", "-q", help="Jobs of this queue.")]
Name = Annotated[str | None, typer.Option("--name", help="Jobs of this name; mail.* for all that begin with it.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Jobs with this tag; repeated, with all of them.")]
Time = Annotated[str, typer.Option("--time", help="Which time is meant: created, run, started or finished.")]
From = Annotated[
    str | None, typer.Option("--from", metavar="TIME", help="Not before: 2030-01-31T06:00:00Z, or -1h for an hour ago.")
]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Before this time, written as for --from.")]


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of one command."""

    states: list[str] | None = None
    kind: str | None = None
    queue: str | None = None
    name: str | None = None
    tags: list[str] | None = None
    time: str = "created"
    since: str | None = None
    until: str | None = None

    @property
    def any(self) -> bool:
        return self != Given(time=self.time)

    def wanted(self, now: datetime, *, limit: int, cursor: UUID | None = None) -> JobFilter:
        """The filter that these flags stand for."""
        if self.time not in get_args(TimeField):
            raise ConfigurationError(f"--time must be one of {', '.join(get_args(TimeField))}, not {self.time!r}")
        prefix = self.name.removesuffix("*") if self.name and self.name.endswith("*") else None
        return JobFilter(
            states=tuple(word.strip() for text in self.states or () for word in text.split(",") if word.strip()),
            kind=self.kind,
            queue=self.queue,
            name=None if prefix is not None else self.name,
            name_prefix=prefix,
            tags=tuple(self.tags or ()),
            time=self.time,  # type: ignore[arg-type]  # checked above
            since=moment(self.since, now, "--from") if self.since else None,
            until=moment(self.until, now, "--to") if self.until else None,
            cursor=cursor,
            limit=limit,
        )

    def __str__(self) -> str:
        told = {
            "state": ", ".join(self.states or ()),
            "kind": self.kind,
            "queue": self.queue,
            "name": self.name,
            "tag": ", ".join(self.tags or ()),
            f"{self.time} from": self.since,
            f"{self.time} before": self.until,
        }
        return "; ".join(f"{name} {value}" for name, value in told.items() if value)
