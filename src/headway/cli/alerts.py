"""`headway alerts list | show | create | delete | test | messages`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import msgspec
import typer
from uuid_utils.compat import uuid7

from headway import compose
from headway.alerts.making import make_courier
from headway.alerts.rules import draft_of, read_rule, stored
from headway.alerts.watch import try_rule
from headway.cli.access import who, with_store
from headway.cli.options import By, Json, Store, Yes
from headway.cli.shapes import print_json
from headway.cli.tables import console, plain_table
from headway.clock import SystemClock
from headway.model.alerts import Notification, StoredRule
from headway.model.errors import ConfigurationError, NotFound
from headway.model.words import moment
from headway.store.contract import Store as StoreContract
from headway.vault.source import KeySource
from headway.vault.vault import Direct, Vault

RuleName = Annotated[str, typer.Argument(metavar="NAME", help="The rule's name, or its id.")]
From = Annotated[str, typer.Option("--from", metavar="FILE", help="The rule as JSON; - is standard input.")]
Replace = Annotated[bool, typer.Option("--replace", help="If there is one of that name, change that.")]


def list_rules(store: Store = None, json: Json = False) -> None:
    """List the rules for telling people."""
    found = with_store(store, lambda opened: opened.alert_rules())
    if json:
        print_json({"items": [_shape(rule) for rule in found], "cursor": None})
        return
    table = plain_table("rule", "on", "to", "enabled", "changed", "by")
    for kept in found:
        rule = stored(kept)
        kind = type(rule.channel).__name__.lower()
        enabled = "yes" if rule.enabled else "no"
        table.add_row(rule.name, rule.on, kind, enabled, moment(kept.changed_at), kept.changed_by or "")
    console().print(
        table if found else "there are no alert rules: make one with `headway alerts create --from rule.json`"
    )


def show(name: RuleName, store: Store = None) -> None:
    """Show a rule, as JSON."""
    print_json(_shape(with_store(store, lambda opened: _find(opened, name))))


def create(body: From, replace: Replace = False, by: By = None, store: Store = None, json: Json = False) -> None:
    """Make a rule. Its fields: docs/operating.md."""
    rule = read_rule(_read(body))

    async def put(opened: StoreContract) -> StoredRule:
        same = [kept.id for kept in await opened.alert_rules() if replace and stored(kept).name == rule.name]
        return await opened.put_alert_rule(draft_of(same[0] if same else uuid7(), rule), by=who(by))

    kept = with_store(store, put)
    if json:
        print_json(_shape(kept))
    else:
        typer.echo(f"the alert rule {rule.name} is kept; try it with `headway alerts test {rule.name}`")


def delete(name: RuleName, yes: Yes = False, store: Store = None) -> None:
    """Delete a rule and its messages."""
    if not yes:
        typer.confirm(f"Delete the alert rule {name}?", abort=True)

    async def drop(opened: StoreContract) -> None:
        await opened.drop_alert_rule((await _find(opened, name)).id)

    with_store(store, drop)
    typer.echo(f"the alert rule {name} is gone")


def try_out(name: RuleName, store: Store = None, json: Json = False) -> None:
    """Send a message that says it is a test; status 1 if it was not taken."""

    async def send(opened: StoreContract) -> Notification:
        url = compose.store_url(store)
        vault = Vault(Direct(opened), KeySource(url))
        courier = make_courier((url,), vault, SystemClock())
        try:
            return await try_rule(opened, courier, (await _find(opened, name)).id, uuid7())
        finally:
            await courier.close()

    sent = with_store(store, send)
    if json:
        print_json(sent)
    else:
        typer.echo("delivered" if sent.error is None else f"not delivered: {sent.error}", err=sent.error is not None)
    sys.exit(0 if sent.error is None else 1)


def messages(name: RuleName, store: Store = None, json: Json = False) -> None:
    """Show the latest messages of a rule: delivered, to be tried again, given up."""

    async def look(opened: StoreContract) -> list[Notification]:
        return await opened.notifications((await _find(opened, name)).id)

    found = with_store(store, look)
    if json:
        print_json({"items": found, "cursor": None})
        return
    table = plain_table("at", "what", "tries", "what came of it")
    for message in found:
        table.add_row(moment(message.created_at), message.body.summary, str(message.attempts), _end(message))
    console().print(table if found else "there are no messages")


def _end(message: Notification) -> str:
    if message.delivered_at is not None:
        return f"delivered {moment(message.delivered_at)}"
    if message.due_at is None:
        return f"given up: {message.error}"
    return f"to be tried {moment(message.due_at)}: {message.error}" if message.error else "to be delivered"


async def _find(opened: StoreContract, named: str) -> StoredRule:
    for kept in await opened.alert_rules():
        if named in {str(kept.id), stored(kept).name}:
            return kept
    raise NotFound(f"there is no alert rule {named!r}: see `headway alerts list`")


def _shape(kept: StoredRule) -> dict[str, Any]:
    rule: dict[str, Any] = msgspec.to_builtins(stored(kept))
    about: dict[str, UUID | Any] = {"id": kept.id, "version": kept.version, "changed_at": kept.changed_at}
    return {**about, "changed_by": kept.changed_by, **rule}


def _read(source: str) -> Any:
    try:
        return msgspec.json.decode(sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes())
    except OSError as error:
        raise ConfigurationError(f"the rule {source} can't be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"the rule {source} is no JSON: {error}") from error
