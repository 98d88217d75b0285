"""`headway bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from headway.bench.sizes import FULL, NORMAL, QUICK, TINY, Sizes
from headway.model.errors import ConfigurationError

Postgres = Annotated[
    str | None,
    typer.Option(
        "--postgres", metavar="URL", help="A server on which databases may be created; else one is started for this."
    ),
]
SqliteOnly = Annotated[bool, typer.Option("--sqlite-only", help="Leave PostgreSQL out.")]
Size = Annotated[str, typer.Option(help="tiny, quick (a minute), normal (about six), full (with a million in a row).")]
Quick = Annotated[bool, typer.Option("--quick", help="The same as --size quick.")]
Full = Annotated[bool, typer.Option("--full", help="The same as --size full.")]
Repeat = Annotated[int | None, typer.Option(min=1, help="Runs of short measurements; the median counts.")]
Jobs = Annotated[int | None, typer.Option(min=100, help="Jobs of the drain.")]
InARow = Annotated[int | None, typer.Option(min=0, help="Jobs of the long drain; 0 leaves it out.")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        help="submit, drain, metrics, in-a-row, latency, claim, behind, idle, schedules, dispatch, api, callbacks, "
        "scripts; repeatable."
    ),
]
Json = Annotated[Path | None, typer.Option("--json", help="Write all figures to this file.", dir_okay=False)]

SIZES = {"tiny": TINY, "quick": QUICK, "normal": NORMAL, "full": FULL}


def bench(  # noqa: PLR0913 - one parameter per flag
    postgres: Postgres = None,
    sqlite_only: SqliteOnly = False,
    size: Size = "normal",
    quick: Quick = False,
    full: Full = False,
    repeat: Repeat = None,
    jobs: Jobs = None,
    in_a_row: InARow = None,
    only: Only = None,
    json: Json = None,
) -> None:
    """Measure what the README claims, on this machine, beside what the bare driver reaches."""
    # Only now: it measures the service too, and other commands should neither need nor load that.
    from headway.bench.child import run
    from headway.bench.conduct import Wish, conduct, header, introduction, terminal_width
    from headway.bench.report import as_json, table

    given = {"repeat": repeat, "drain": jobs, "in_a_row": in_a_row}
    sizes = _sizes("quick" if quick else "full" if full else size, given)
    wish = Wish(sizes=sizes, postgres=postgres, sqlite_only=sqlite_only, only=tuple(only or ()))
    console = Console()
    console.width = terminal_width(console)
    facts = header(wish)
    console.print(introduction(facts), highlight=False)
    chapters = run(conduct(wish, Console(stderr=True)))
    for chapter in chapters:
        console.print()
        console.print(table(chapter))
    if json is not None:
        json.write_bytes(as_json(chapters, facts))


def _sizes(name: str, given: dict[str, int | None]) -> Sizes:
    if name not in SIZES:
        raise ConfigurationError(f"--size must be one of {', '.join(SIZES)}, not {name!r}")
    return msgspec.structs.replace(SIZES[name], **{field: value for field, value in given.items() if value is not None})
