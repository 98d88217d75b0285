"""No code path connects to a server whose key is not pinned."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import headway

SOURCE = Path(headway.__file__).parent
HOME = SOURCE / "executors" / "script" / "ssh.py"
DIALS = {"connect", "create_connection", "connect_reverse", "listen", "scp", "run_client", "SSHClientConnection"}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """All calls of something of asyncssh, by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "asyncssh":
                yield node.func.attr, node


def test_only_one_file_knows_asyncssh_and_its_bench() -> None:
    users = {
        path.relative_to(SOURCE)
        for path in SOURCE.rglob("*.py")
        if "asyncssh" in path.read_text() and "import asyncssh" in path.read_text()
    }
    assert {path for path in users if path.parts[0] != "bench"} == {HOME.relative_to(SOURCE)}


def test_every_connection_names_the_keys_it_trusts() -> None:
    for path in SOURCE.rglob("*.py"):
        if "asyncssh" not in path.read_text():
            continue
        for name, call in calls(ast.parse(path.read_text())):
            if name not in DIALS:
                continue
            trusted = [keyword.value for keyword in call.keywords if keyword.arg == "known_hosts"]
            assert len(trusted) == 1, f"{path}: a connection without known_hosts"
            # ([key], [], []): one key, no authorities, nothing from a file.
            assert isinstance(trusted[0], ast.Tuple), f"{path}: known_hosts must be given as keys"
            keys, *others = trusted[0].elts
            assert isinstance(keys, ast.List), path
            assert len(keys.elts) == 1, path
            assert all(isinstance(other, ast.List) and not other.elts for other in others), path
    assert "connect" in {name for name, _ in calls(ast.parse(HOME.read_text()))}


def test_nothing_switches_the_check_off() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        for word in ("known_hosts=None", '"known_hosts": None', "StrictHostKeyChecking", "trust_on_first_use"):
            assert word not in text, f"{path}: {word}"
