"""`headway secrets set | list | delete | rotate | key`."""

from __future__ import annotations

import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from headway import compose
from headway.cli.access import Change, who, with_store
from headway.cli.options import By, Json, Store, Yes
from headway.cli.shapes import print_json
from headway.cli.tables import console, plain_table
from headway.model.errors import ConfigurationError
from headway.model.words import count, listed, moment
from headway.store.contract import Store as StoreContract
from headway.vault.source import KeySource
from headway.vault.vault import Direct, Vault

T = TypeVar("T")

SecretName = Annotated[str, typer.Argument(metavar="NAME", help="The secret.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="FILE", help="Read the value from a file, as it is; - is standard input."),
]
Note = Annotated[str | None, typer.Option("--note", help="What it is for, for people.")]


def set_secret(  # noqa: PLR0913 - one parameter per flag
    name: SecretName,
    source: From = None,
    note: Note = None,
    by: By = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Make or replace a secret. Its value is asked for, or read from a file or standard input; it is never shown
    again."""
    value = read_value(source, f"The value of {name}")
    change = Change(who(by), "secrets.replace", f"secrets/{name}")
    info = with_vault(store, lambda vault, _: vault.set_secret(name, value, note=note, by=who(by)), change)
    if json:
        print_json(info)
    else:
        typer.echo(f'the secret {name} is set; refer to it as {{"secret": "{name}"}}')


def list_secrets(store: Store = None, json: Json = False) -> None:
    """List secrets by name; their values are never shown."""
    found = with_store(store, lambda opened: opened.list_secrets(limit=10_000))
    if json:
        print_json({"items": found, "cursor": None})
        return
    table = plain_table("secret", "set", "by", "last used", "note")
    for info in found:
        used = moment(info.used_at) if info.used_at else ""
        table.add_row(info.name, moment(info.updated_at), info.updated_by or "", used, info.note or "")
    console().print(table if found else "there is no secret yet: make one with `headway secrets set NAME`")


def delete(name: SecretName, by: By = None, store: Store = None) -> None:
    """Delete a secret. Jobs that refer to it fail from now on."""
    change = Change(who(by), "secrets.delete", f"secrets/{name}")
    with_store(store, lambda opened: opened.delete_secret(name), change)
    typer.echo(f"the secret {name} is deleted")


def rotate(yes: Yes = False, store: Store = None, json: Json = False) -> None:
    """Change the key that everything is sealed with, or go on with an interrupted change. Workers may run meanwhile."""
    from headway.vault.rotation import Rotated
    from headway.vault.rotation import rotate as rotated

    async def act(_: Vault, opened: StoreContract, source: KeySource) -> Rotated:
        if source.keys.in_file and not yes:
            await _refuse_elsewhere(opened, source)
        return await rotated(opened, source)

    done = with_keys(store, act, Change(who(None), "secrets.rotate", "secrets"))
    if json:
        print_json(done)
        return
    again = "the interrupted change of the key has been completed: " if done.resumed else ""
    typer.echo(f"{again}{count(done.rewrapped, 'item')} came under the key {done.key_id}")


def key(json: Json = False) -> None:
    """Print a new key, for HEADWAY_SECRET_KEY. Nothing is stored."""
    from headway.vault.envelope import Key
    from headway.vault.keys import encode

    made = encode(Key.fresh())
    if json:
        print_json({"key": made})
    else:
        typer.echo(made)


def read_value(source: str | None, question: str) -> bytes:
    """Never from the command line, where others on the machine could see it."""
    if source == "-":
        return sys.stdin.buffer.read()
    if source is not None:
        try:
            return Path(source).read_bytes()
        except OSError as error:
            raise ConfigurationError(f"{source} can't be read: {error.strerror}") from error
    if not sys.stdin.isatty():
        raise ConfigurationError("nobody is there to be asked: use --from FILE, or --from - for standard input")
    value: str = typer.prompt(question, hide_input=True, confirmation_prompt=True)
    return value.encode()


def with_vault(url: str | None, act: Callable[[Vault, StoreContract], Awaitable[T]], change: Change | None = None) -> T:
    """`act` with the vault of the store that is named."""
    return with_keys(url, lambda vault, store, _: act(vault, store), change)


def with_keys(
    url: str | None, act: Callable[[Vault, StoreContract, KeySource], Awaitable[T]], change: Change | None = None
) -> T:
    """The same for who needs the keys themselves."""
    source = KeySource(compose.store_url(url))
    return with_store(url, lambda opened: act(Vault(Direct(opened), source), opened, source), change)


async def _refuse_elsewhere(store: StoreContract, source: KeySource) -> None:
    """A key in a file is on this machine only, and after the change workers elsewhere would stand before a lock."""
    here = socket.gethostname()
    hosts = sorted({worker.info.host for worker in await store.worker_stats() if worker.alive} - {here})
    if hosts:
        raise ConfigurationError(
            f"workers run on {listed(hosts)} too, and the new key would be in {source.keys.where} on this machine "
            "only: let all machines have it by HEADWAY_SECRET_KEY=NEW,OLD first (docs/secrets.md), or use --yes if "
            "they share this directory"
        )
