"""`headway users …`, `headway tokens …`, `headway login-link`."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from headway import compose
from headway.access.first import ADMIN, link, new_link
from headway.access.managing import Issued, change_user, check_name, create_user, issue_token
from headway.access.trail import Reach, entry
from headway.cli.access import caller, who, with_store
from headway.cli.entrance import base_url
from headway.cli.options import By, Json, Store
from headway.cli.shapes import print_json
from headway.cli.tables import console, plain_table
from headway.cli.times import moment
from headway.client import while_busy
from headway.clock import SystemClock
from headway.model.access import Role, Subject, Token, User
from headway.model.errors import ConfigurationError
from headway.model.words import moment as dated
from headway.store.contract import Store as StoreContract

UserName = Annotated[str, typer.Argument(metavar="NAME", help="The user.")]
TokenName = Annotated[str, typer.Argument(metavar="NAME", help="The token.")]
RoleFlag = Annotated[Role, typer.Option("--role", help="What they may do.")]
MaybeRole = Annotated[Role | None, typer.Option("--role", help="What they may do.")]
Password = Annotated[
    bool | None,
    typer.Option(
        "--password/--no-password", help="Ask for a password (or read a line of standard input), or have none."
    ),
]
Disabled = Annotated[bool | None, typer.Option("--lock/--unlock", help="Lock them out, or let them in again.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", help="May submit jobs of this kind only. Repeatable.")]
Queues = Annotated[list[str] | None, typer.Option("--queue", help="May submit to this queue only. Repeatable.")]
Expires = Annotated[str | None, typer.Option("--expires", metavar="TIME", help="RFC 3339, or +30d.")]
ForUser = Annotated[str | None, typer.Option("--user", help="Whose link.", show_default="the administrator's token")]


def list_users(store: Store = None, json: Json = False) -> None:
    """List users, their roles and whether they are locked out."""
    found = with_store(store, lambda opened: opened.users())
    if json:
        print_json({"items": [_user_shape(user) for user in found], "cursor": None})
        return
    table = plain_table("user", "role", "password", "locked", "made", "by")
    for user in found:
        made = dated(user.created_at) if user.created_at else ""
        cells = ("yes" if user.password else "none", "yes" if user.disabled else "")
        table.add_row(user.name, user.role, *cells, made, user.created_by or "")
    console().print(table if found else "there is no user yet: make one with `headway users create NAME --role viewer`")


def create(  # noqa: PLR0913 - one parameter per flag
    name: UserName,
    role: RoleFlag = Role.VIEWER,
    password: Password = None,
    by: By = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Make a user. Without a password they come by login links only."""
    check_name(name)
    given = _ask_password() if password else None
    user = with_store(store, lambda opened: create_user(_reach(opened), name, role, given, caller(who(by))))
    _tell_user(user, "made", as_json=json)


def change(  # noqa: PLR0913 - one parameter per flag
    name: UserName,
    role: MaybeRole = None,
    password: Password = None,
    lock: Disabled = None,
    by: By = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Change a user's role or password, or lock them out. They have to log in again."""
    changes: dict[str, Any] = {}
    if role is not None:
        changes["role"] = role
    if password is not None:
        changes["password"] = _ask_password() if password else None
    if lock is not None:
        changes["disabled"] = lock
    user = with_store(store, lambda opened: change_user(_reach(opened), name, changes, caller(who(by))))
    _tell_user(user, "changed", as_json=json)


def delete(name: UserName, by: By = None, store: Store = None) -> None:
    """Remove a user and their sessions."""
    line = entry(caller(who(by)), "users.delete", f"users/{name}")
    with_store(store, lambda opened: opened.delete_user(name, line))
    typer.echo(f"the user {name} is gone")


def list_tokens(store: Store = None, json: Json = False) -> None:
    """List tokens: what they may do, until when, and when they were last used."""
    found = with_store(store, lambda opened: opened.tokens())
    if json:
        print_json({"items": found, "cursor": None})
        return
    table = plain_table("token", "role", "limits", "expires", "last used", "made by")
    for token in found:
        expires, used = (dated(at) if at else "" for at in (token.expires_at, token.used_at))
        table.add_row(token.name, token.role, _limits(token), expires, used, token.created_by or "")
    console().print(table if found else "there is no token yet: make one with `headway tokens create NAME`")


def create_token(  # noqa: PLR0913 - one parameter per flag
    name: TokenName,
    role: RoleFlag = Role.OPERATOR,
    kind: Kinds = None,
    queue: Queues = None,
    expires: Expires = None,
    by: By = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Make a token. It is printed once, and can't be shown again."""
    check_name(name)

    async def act(opened: StoreContract) -> Issued:
        until: datetime | None = moment(expires, await opened.now(), "--expires") if expires else None
        kinds, queues = (frozenset(names) if names else None for names in (kind, queue))
        token = Token(name=name, role=role, kinds=kinds, queues=queues, expires_at=until)
        return await issue_token(_reach(opened), token, caller(who(by)))

    issued = with_store(store, act)
    if json:
        print_json({"name": name, "role": role, "token": issued.secret, "expires_at": issued.token.expires_at})
        return
    typer.echo(issued.secret)
    typer.echo(f"headway: keep it well: the token {name} ({role}) can't be shown again", err=True)


def delete_token(name: TokenName, by: By = None, store: Store = None) -> None:
    """Take a token back: it is refused everywhere within seconds."""
    line = entry(caller(who(by)), "tokens.delete", f"tokens/{name}")
    with_store(store, lambda opened: opened.delete_token(name, line))
    typer.echo(f"the token {name} is of no use any more")


def login_link(user: ForUser = None, by: By = None, store: Store = None, json: Json = False) -> None:
    """Print a link to log in with, once, within 15 minutes."""
    subject = Subject(user=user) if user else Subject(token=ADMIN)
    code = with_store(store, lambda opened: new_link(_reach(opened), subject, caller(who(by))))
    made = link(base_url(compose.settings(store=store)), code)
    if json:
        print_json({"link": made})
    else:
        typer.echo(made)


def _reach(store: StoreContract) -> Reach:
    async def reach(act: Any) -> Any:
        return await while_busy(lambda: act(store), SystemClock())

    return reach


def _ask_password() -> str:
    """Never from the command line, where others on the machine could see it."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline().rstrip("\n")
        if not line:
            raise ConfigurationError("there is no password on standard input, and nobody to be asked")
        return line
    asked: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return asked


def _tell_user(user: User, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(_user_shape(user))
    else:
        typer.echo(f"the user {user.name} ({user.role}{', locked out' if user.disabled else ''}) is {what}")
        if user.password is None:
            typer.echo(f"without a password; a link to log in with: headway login-link --user {user.name}", err=True)


def _user_shape(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "role": user.role,
        "disabled": user.disabled,
        "has_password": user.password is not None,
        "created_at": user.created_at,
        "created_by": user.created_by,
        "changed_at": user.changed_at,
    }


def _limits(token: Token) -> str:
    told = [f"kind {name}" for name in sorted(token.kinds or ())]
    return ", ".join(told + [f"queue {name}" for name in sorted(token.queues or ())])
