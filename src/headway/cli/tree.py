"""Commands that are loaded when somebody uses them: a short command would spend most of its time on all the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import typer

from headway.cli.config import with_config


class Branch(NamedTuple):
    """A command with commands below it."""

    help: str
    below: Mapping[str, str | Branch]
    """A leaf is `module.function` of `headway.cli`."""


def grow(tree: Branch) -> Any:
    """The command `headway`."""
    root = typer.Typer(name="headway", help=tree.help, no_args_is_help=True, callback=_headway)
    return _with_below(root, tree)


class _Commands(Mapping[str, Any]):
    """The commands below one, each made when it is asked for."""

    def __init__(self, below: Mapping[str, str | Branch]) -> None:
        self._below = below
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made(name, self._below[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._below)

    def __len__(self) -> int:
        return len(self._below)


def _made(name: str, what: str | Branch) -> Any:
    if isinstance(what, Branch):
        group = typer.Typer(name=name, help=what.help, no_args_is_help=True, add_completion=False, callback=_group)
        return _with_below(group, what)
    module, _, function = what.rpartition(".")
    alone = typer.Typer(add_completion=False)
    alone.command(name)(getattr(import_module(f"headway.cli.{module}"), function))
    return with_config(typer.main.get_command(alone))


def _with_below(group: typer.Typer, branch: Branch) -> Any:
    command: Any = with_config(typer.main.get_command(group))
    command.commands = _Commands(branch.below)
    return command


def _group() -> None: ...


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headway {version('headway')}")
        raise typer.Exit


def _headway(
    shown: Annotated[
        bool,
        typer.Option("--version", help="Say which version this is.", is_eager=True, callback=_say_version),
    ] = False,
) -> None: ...
