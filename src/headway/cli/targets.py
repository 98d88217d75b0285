"""`headway targets list | show | create | set | trust | probe | delete`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from headway import compose
from headway.cli.access import Change, who, with_store
from headway.cli.options import By, Json, Store
from headway.cli.secrets import read_value, with_vault
from headway.cli.shapes import print_json
from headway.cli.tables import console, plain_table
from headway.clock import SystemClock
from headway.components import targets
from headway.components.targets import Asking, CredentialBody, TargetBody, TargetChange, target_shape
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies
from headway.kinds.reading import read
from headway.model.errors import ConfigurationError, InvalidRequest
from headway.model.target import TargetRecord

Name = Annotated[str, typer.Argument(metavar="NAME", help="The target.")]
_Text = str | None
Host = Annotated[_Text, typer.Option("--host", help="The name or address of the server.")]
Port = Annotated[int | None, typer.Option("--port", help="Its SSH port.", show_default="22")]
User = Annotated[_Text, typer.Option("--user", help="The user there.")]
Password = Annotated[bool, typer.Option("--password", help="Ask for a password.")]
PasswordFrom = Annotated[_Text, typer.Option("--password-from", metavar="FILE", help="Read it; - is standard input.")]
KeyFrom = Annotated[_Text, typer.Option("--key-from", metavar="FILE", help="Read a private key.")]
Passphrase = Annotated[bool, typer.Option("--passphrase", help="Ask for the key's passphrase.")]
Labels = Annotated[list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="For people; may be repeated.")]
Connections = Annotated[int | None, typer.Option("--max-connections", help="Of one worker at once.", show_default="4")]
Directory = Annotated[_Text, typer.Option("--directory", help="Where runs get directories.", show_default="~/.headway")]
Local = Annotated[bool, typer.Option("--local", help="The worker's own machine, where workers allow it.")]
HostKey = Annotated[str, typer.Argument(metavar="KEY", help="The public key: 'ssh-ed25519 AAAA…'.")]
Queue = Annotated[str, typer.Option("--queue", help="A worker of this queue tries.")]
Force = Annotated[bool, typer.Option("--force", help="Although open jobs name it: its server is gone for good.")]


def list_targets(store: Store = None, json: Json = False) -> None:
    """List targets: where they are, and whether they can be used."""
    found = with_store(store, lambda opened: opened.find_targets(limit=10_000))
    if json:
        print_json({"items": [target_shape(record) for record in found], "cursor": None})
        return
    table = plain_table("target", "where", "credential", "host key", "labels")
    for record in found:
        target = record.target
        where = f"{target.user}@{target.host}:{target.port}" if target.host else "the worker's own machine"
        labels = " ".join(f"{name}={value}" for name, value in target.labels.items())
        table.add_row(target.name, where, record.credential or "none", target.host_fingerprint or "none", labels)
    console().print(table if found else "there is no target yet: make one with `headway targets create NAME`")


def show(name: Name, store: Store = None) -> None:
    """Show all of a target but its credential, as JSON."""
    print_json(target_shape(with_store(store, lambda opened: opened.target(name))))


def create(  # noqa: PLR0913 - one parameter per flag
    name: Name,
    host: Host = None,
    port: Port = None,
    user: User = None,
    password: Password = False,
    password_from: PasswordFrom = None,
    key_from: KeyFrom = None,
    passphrase: Passphrase = False,
    label: Labels = None,
    max_connections: Connections = None,
    directory: Directory = None,
    local: Local = False,
    by: By = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Make a target. Then probe it, compare the fingerprint, and trust its key."""
    said = _fields(host=host, port=port, user=user, max_connections=max_connections, directory=directory, label=label)
    said |= {"kind": "local"} if local else {}
    body = read(TargetBody, {"name": name, **said, **_credential(password, password_from, key_from, passphrase)})
    asker = who(by)
    change = Change(asker, "targets.create", f"targets/{name}")
    made = with_vault(store, lambda vault, _: targets.create_target(vault, body, by=asker), change)
    _tell(made, json, f"the target {name} is made; try it with `headway targets probe {name}`")


def change(  # noqa: PLR0913 - one parameter per flag
    name: Name,
    host: Host = None,
    port: Port = None,
    user: User = None,
    password: Password = False,
    password_from: PasswordFrom = None,
    key_from: KeyFrom = None,
    passphrase: Passphrase = False,
    label: Labels = None,
    max_connections: Connections = None,
    directory: Directory = None,
    by: By = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Change a target. With another host or port its credential and its trusted key are gone."""
    said = _fields(host=host, port=port, user=user, max_connections=max_connections, directory=directory, label=label)
    said |= _credential(password, password_from, key_from, passphrase)
    if not said:
        raise ConfigurationError("nothing to change is named: see `headway targets set --help`")
    body = read(TargetChange, said, InvalidRequest)

    async def act(vault: Any, opened: Any) -> TargetRecord:
        return await targets.change_target(vault, await opened.target(name), body, by=who(by))

    changed = with_vault(store, act, Change(who(by), "targets.change", f"targets/{name}", {"fields": sorted(said)}))
    lost = "" if changed.credential else "; it has no credential: enter one with --password or --key-from"
    _tell(changed, json, f"the target {name} is changed{lost}")


def trust(name: Name, key: HostKey, by: By = None, store: Store = None, json: Json = False) -> None:
    """Save the key that the server must show from now on. Compare its fingerprint by another way first."""

    async def act(vault: Any, opened: Any) -> TargetRecord:
        return await targets.trust(vault, await opened.target(name), key, by=who(by))

    trusted = with_vault(store, act, Change(who(by), "targets.trust", f"targets/{name}"))
    _tell(trusted, json, f"{name} must show the key {trusted.target.host_fingerprint} from now on")


def probe(name: Name, queue: Queue = "default", by: By = None, store: Store = None, json: Json = False) -> None:
    """Have a worker try to reach a target; tells how far it came, and which key the server showed."""
    app = compose.app_or_none(None, store)
    asking = Asking(reach=app.client, bodies=Bodies(load_kinds(), app.announced, app.vault), clock=SystemClock())
    try:
        found = app.block(targets.probe(asking, name, queue=queue, by=who(by)), "probe")
    finally:
        app.close()
    if json:
        print_json(found)
    elif found.ok:
        typer.echo(f"{name} can be reached by {found.worker}")
    else:
        typer.echo(f"{name} can't be reached, it failed at {found.failed}: {found.message}")
        if found.host_key and not found.trusted:
            right = f"headway targets trust {name} '{found.host_key}'"
            typer.echo(f"it shows the key {found.fingerprint}; if that is right: {right}")
    raise typer.Exit(0 if found.ok else 1)


def delete(name: Name, force: Force = False, by: By = None, store: Store = None) -> None:
    """Delete a target with its credential; not while open jobs name it."""

    async def act(opened: Any) -> None:
        await opened.delete_target((await opened.target(name)).id, force=force)

    with_store(store, act, Change(who(by), "targets.delete", f"targets/{name}"))
    typer.echo(f"the target {name} is deleted")


def _fields(*, label: list[str] | None, **said: Any) -> dict[str, Any]:
    fields = {name: value for name, value in said.items() if value is not None}
    if label is not None:
        pairs = [each.partition("=") for each in label]
        fields["labels"] = {name: value for name, _, value in pairs}
    return fields


def _credential(ask: bool, password_from: str | None, key_from: str | None, passphrase: bool) -> dict[str, Any]:
    if sum([ask, password_from is not None, key_from is not None]) > 1:
        raise ConfigurationError("--password, --password-from and --key-from exclude each other")
    if key_from is not None:
        phrase = read_value(None, "The passphrase").decode() if passphrase else None
        key = CredentialBody(private_key=read_value(key_from, "").decode(), passphrase=phrase)
        return {"credential": msgspec.to_builtins(key)}
    if ask or password_from is not None:
        password = read_value(password_from, "The password").decode().removesuffix("\n")
        return {"credential": {"password": password}}
    return {}


def _tell(record: TargetRecord, json: bool, words: str) -> None:
    if json:
        print_json(target_shape(record))
    else:
        typer.echo(words)
