"""What people are told when an API starts: how to get in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from headway.access.first import ADMIN, ensure_admin, link, new_link
from headway.access.origin import is_loopback
from headway.model.access import Caller, Subject
from headway.model.errors import TokenNotFound
from headway.settings import Settings

if TYPE_CHECKING:
    from headway.api.process import AppApi


async def welcome(api: AppApi, held: Settings) -> None:
    """See that there is an administrator, and print a link to log in with: at the first start, and, unless a token is
    given, at every start where only this machine listens."""
    reach = api.app.client.call_patiently
    started = await ensure_admin(reach, held.data_directory, held.admin_token)
    if started.file is not None:
        typer.echo(f"headway: the administrator's token is in {started.file}", err=True)
    if started.first or (is_loopback(held.host) and held.admin_token is None):
        await _print_link(api, held)
    if not is_loopback(held.host) and held.tls_cert is None and not held.trusted_proxies:
        typer.echo(
            "headway: the line to other machines is not encrypted: logins, secrets and scripts from there are refused "
            "(set HEADWAY_TLS_CERT and HEADWAY_TLS_KEY, or HEADWAY_TRUSTED_PROXIES)",
            err=True,
        )


def base_url(held: Settings, url: str | None = None) -> str:
    """How people reach the page."""
    if held.public_url:
        return held.public_url
    url = url or f"{'https' if held.tls_cert else 'http'}://{held.host}:{held.port}"
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


async def _print_link(api: AppApi, held: Settings) -> None:
    try:
        code = await new_link(api.app.client.call_patiently, Subject(token=ADMIN), Caller("start"))
    except TokenNotFound:
        typer.echo("headway: log in with a password, or make a link with `headway login-link`", err=True)
        return
    typer.echo(f"headway: log in (once, within 15 minutes): {link(base_url(held, api.url), code)}", err=True)
