"""Flags that say when a schedule fires."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer

from headway.cli.times import length, moment
from headway.model.errors import ConfigurationError

Cron = Annotated[
    str | None,
    typer.Option("--cron", help="minute hour day month weekday, e.g. '0 6 * * MON-FRI'; six: seconds first."),
]
Every = Annotated[str | None, typer.Option("--every", metavar="TIME", help="An interval: 300, 5m, 1h30m.")]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help="Once: 2030-01-31T06:00:00Z, +2h.")]
TimeZone = Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="An IANA name such as Europe/Berlin.")]
Gap = Annotated[
    str | None, typer.Option("--gap", help="Times that clocks skip in spring: after (one run at the end), skip.")
]
Fold = Annotated[str | None, typer.Option("--fold", help="Times that come twice in autumn: first, both.")]
Jitter = Annotated[str | None, typer.Option("--jitter", metavar="TIME", help="Run up to so much later: 30, 5m.")]
Start = Annotated[str | None, typer.Option("--start", metavar="TIME", help="Not before.")]
End = Annotated[str | None, typer.Option("--end", metavar="TIME", help="Not after.")]


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What flags say of a schedule."""

    cron: str | None = None
    every: str | None = None
    at: str | None = None
    tz: str | None = None
    gap: str | None = None
    fold: str | None = None
    start: str | None = None
    end: str | None = None
    jitter: str | None = None

    def body(self, now: datetime) -> dict[str, Any]:
        """The same in the words of a body; what isn't said is left out."""
        said = {
            "schedule": self._when(now),
            "timezone": self.tz,
            "gap": self.gap,
            "fold": self.fold,
            "start": moment(self.start, now, "--start") if self.start else None,
            "end": moment(self.end, now, "--end") if self.end else None,
            "jitter": length(self.jitter, "--jitter") if self.jitter else None,
        }
        return {name: value for name, value in said.items() if value is not None}

    def _when(self, now: datetime) -> Any:
        ways = [flag for flag in ("cron", "every", "at") if getattr(self, flag) is not None]
        if len(ways) > 1:
            raise ConfigurationError(f"--{ways[0]} and --{ways[1]} contradict each other: say one of them")
        if self.every is not None:
            return {"every": length(self.every, "--every")}
        return {"at": moment(self.at, now, "--at")} if self.at is not None else self.cron
