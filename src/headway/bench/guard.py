"""Ends a private PostgreSQL server when its owner is gone, even by SIGKILL, and removes its files.

A script that needs the standard library alone, started as `python guard.py DIRECTORY`: the end of its standard input
is the owner's end. The server's data lies in DIRECTORY/data.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

PATIENCE = 10.0
STEP = 0.05


def guard(directory: Path) -> None:
    """Wait until the owner closes our standard input, if only by dying; then remove its server."""
    sys.stdin.read()
    with suppress(OSError, ValueError):
        pid = int((directory / "data/postmaster.pid").read_text().split()[0])
        # The file outlives a killed server, and its number may belong to a stranger by now.
        if str(directory / "data") in command_of(pid):
            end(pid)
    shutil.rmtree(directory, ignore_errors=True)


def end(pid: int) -> None:
    """An immediate shutdown, which takes all backends along; by force where the server doesn't hear of it."""
    os.kill(pid, signal.SIGQUIT)
    os.kill(pid, signal.SIGCONT)
    for _ in range(int(PATIENCE / STEP)):
        if not command_of(pid):
            return
        threading.Event().wait(STEP)
    os.kill(pid, signal.SIGKILL)


def command_of(pid: int) -> str:
    """The command line of a process; empty when it has ended."""
    if Path("/proc/self").exists():
        with suppress(OSError):
            return Path(f"/proc/{pid}/cmdline").read_text()
        return ""
    found = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607 - fixed words and a number
    return found.stdout.strip()


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
