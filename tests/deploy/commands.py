"""Command lines of deployments, as the command itself reads them."""

from __future__ import annotations

from collections.abc import Sequence

from headway.cli import TREE
from headway.cli.tree import grow


def read_as_headway_does(arguments: Sequence[str]) -> None:
    """Raises click's own error where `headway` would refuse the arguments. Nothing is run."""
    name, *rest = arguments
    grow(TREE).commands[name].make_context(name, rest)
