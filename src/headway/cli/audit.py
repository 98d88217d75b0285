"""`headway audit`."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import typer

from headway.access.chain import broken
from headway.cli.access import with_store
from headway.cli.options import Json, Store
from headway.cli.shapes import print_json
from headway.cli.tables import console, plain_table
from headway.cli.times import moment
from headway.model.access import AuditFilter, AuditLine
from headway.model.words import moment as dated
from headway.store.contract import Store as StoreContract

Actor = Annotated[str | None, typer.Option("--actor", help="Who: user:ann, token:ci, cli:ann, bus.")]
Action = Annotated[str | None, typer.Option("--action", help="What: jobs.cancel; or all that begin: jobs.")]
Thing = Annotated[str | None, typer.Option("--object", help="To what: users/ann.")]
From = Annotated[str | None, typer.Option("--from", metavar="TIME", help="RFC 3339, or -1h.")]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="RFC 3339, or -1h.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000)]
Cursor = Annotated[int | None, typer.Option("--cursor", help="Go on before the line of this number.")]
Verify = Annotated[bool, typer.Option("--verify", help="See whether somebody has changed or removed lines.")]


def audit(  # noqa: PLR0913 - one parameter per flag
    actor: Actor = None,
    action: Action = None,
    thing: Thing = None,
    since: From = None,
    until: To = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    verify: Verify = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Who did what, when and from where; the latest first."""
    if verify:
        _verify(store, as_json=json)
        return

    async def look(opened: StoreContract) -> list[AuditLine]:
        now = await opened.now()
        wanted = AuditFilter(
            actor=actor,
            action=action,
            object=thing,
            since=moment(since, now, "--from") if since else None,
            until=moment(until, now, "--to") if until else None,
            before=cursor,
            limit=limit,
        )
        return await opened.audit(wanted)

    lines = with_store(store, look)
    if json:
        items = [msgspec.structs.asdict(line) | {"detail": msgspec.json.decode(line.detail)} for line in lines]
        print_json({"items": items, "cursor": lines[-1].seq if len(lines) == limit else None})
        return
    table = plain_table("line", "time (UTC)", "who", "what", "to what", "from", "count", "detail")
    for line in lines:
        cells = (line.actor, line.action, line.object, line.address or "", str(line.count))
        table.add_row(str(line.seq), dated(line.made_at), *cells, "" if line.detail == "{}" else line.detail)
    console().print(table if lines else "nothing is written down that matches")


def _verify(store: str | None, *, as_json: bool) -> None:
    at = with_store(store, broken)
    if as_json:
        print_json({"ok": at is None, "line": at})
    else:
        typer.echo("no line was changed or removed" if at is None else f"at line {at} the log was tampered with")
    sys.exit(0 if at is None else 1)
