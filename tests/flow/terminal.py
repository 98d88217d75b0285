"""The `headway` command as scripts run it, with both streams apart, and as people do, at a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE = 60.0
WIDTH = 100
LOGIN = "ann"

ONE_BY_ONE = """
import contextlib, io, json, shlex, sys
from headway.cli import main

ended = []
for command in sys.argv[1:]:
    sys.argv = ["headway", *shlex.split(command)]
    status, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    ended.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(ended))
"""


class Done:
    """A command that has ended."""

    def __init__(self, status: int, out: str, err: str = "") -> None:
        self.status = status
        self.out = out
        self.err = err
        assert "Traceback" not in err, err

    @property
    def words(self) -> str:
        """What was printed, whatever the lines."""
        return " ".join(self.out.split())

    @property
    def data(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


def refusal(done: Done) -> str:
    assert done.status == 2, done.out + done.err
    assert done.out == ""
    assert done.err.startswith("headway: ")
    return done.err.removeprefix("headway: ").strip()


class Terminal:
    """Runs commands in a directory, on one store."""

    def __init__(self, directory: Path, url: str | None, **environment: str) -> None:
        self._directory = directory
        self._environment = {**os.environ, "COLUMNS": str(WIDTH), "LOGNAME": LOGIN, "NO_COLOR": "1", **environment}
        self._environment.pop("HEADWAY_STORE", None)
        if url is not None:
            self._environment["HEADWAY_STORE"] = url

    def run(self, *arguments: str) -> Done:
        """As in a script: nobody there to answer questions."""
        ended = subprocess.run(
            [sys.executable, "-m", "headway", *arguments],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Done(ended.returncode, ended.stdout, ended.stderr)

    def fine(self, *arguments: str) -> Done:
        """A command that must succeed."""
        done = self.run(*arguments)
        assert done.status == 0, done.out + done.err
        return done

    def json(self, *arguments: str) -> Any:
        """The document that a command prints, and nothing else."""
        done = self.fine(*arguments, "--json")
        assert done.err == ""
        return done.data

    def refused(self, *arguments: str) -> str:
        """What a command says that could not be understood: one sentence, status 2."""
        return refusal(self.run(*arguments))

    def each(self, *commands: str) -> list[Done]:
        """Several commands, one after another in one process: most of the time of one goes into its start."""
        ended = subprocess.run(
            [sys.executable, "-c", ONE_BY_ONE, *commands],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        return [Done(*each) for each in json.loads(ended.stdout)]

    def all_refused(self, commands: Sequence[str]) -> list[str]:
        """What each of these commands says that can't be understood."""
        return [refusal(done) for done in self.each(*commands)]

    def typed(self, *arguments: str, keys: str) -> Done:
        """At a terminal of 100 columns, answering with these keys."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "headway", *arguments],
            cwd=self._directory,
            env={**self._environment, "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        os.write(ours, keys.encode())
        shown = _read_all(ours)
        os.close(ours)
        return Done(process.wait(PATIENCE), shown)


def _read_all(terminal: int) -> str:
    """Until the other side has gone, which a terminal tells by an error."""
    shown = b""
    with suppress(OSError):
        while piece := os.read(terminal, 65536):
            shown += piece
    return shown.decode(errors="replace")
