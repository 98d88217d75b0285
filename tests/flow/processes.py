"""Real processes of users: `headway worker` on a module that the test writes. Each is ended by its pid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Self

import psutil

from headway import Headway
from headway.compose import load_app
from tests.flow.waiting import block_until

PATIENCE = 60.0

PREAMBLE = """
import asyncio, os, signal, sys, time
from pathlib import Path
from headway import Cancel, Dedupe, Fail, Headway, Retry, Rule, Snooze, current

app = Headway({url!r})
here = Path(__file__).parent

def note(word):
    with (here / "notes").open("a") as notes:
        notes.write(f"{{word}}\\n")
"""


class Process:
    """One process, with all that it logs."""

    def __init__(self, command: list[str], directory: Path, name: str, environment: dict[str, str]) -> None:
        self.log = directory / f"{name}.log"
        with self.log.open("ab") as log:
            self._popen = subprocess.Popen(
                command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        self.pid = self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    @property
    def children(self) -> list[psutil.Process]:
        """Its child processes; of a supervisor, the workers."""
        try:
            return psutil.Process(self.pid).children()
        except psutil.NoSuchProcess:
            return []

    def send(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def kill(self) -> None:
        self._popen.kill()
        self._popen.wait(PATIENCE)

    def stop(self) -> int:
        """SIGTERM, and the exit status."""
        self._popen.terminate()
        return self.ended()

    def ended(self) -> int:
        """Its exit status, once it has ended."""
        return self._popen.wait(PATIENCE)

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """What it logged as JSON, of one event or all."""
        found = [json.loads(line) for line in self.text().splitlines() if line.startswith("{")]
        return [line for line in found if event is None or line["event"] == event]

    def wait_for(self, event: str, count: int = 1, patience: float = PATIENCE) -> list[dict[str, Any]]:
        """The lines of an event, once there are so many of it."""

        def enough() -> list[dict[str, Any]] | None:
            assert self.running or len(self.lines(event)) >= count, f"the process has ended:\n{self.text()}"
            lines = self.lines(event)
            return lines if len(lines) >= count else None

        lines: list[dict[str, Any]] = block_until(enough, f"{event} in\n{self.text()}", patience)
        return lines


class Processes:
    """Starts processes and sees to their end, children first of all."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: list[Process] = []
        self._families: dict[int, psutil.Process] = {}

    def python(self, *arguments: str, **variables: str) -> Process:
        name = f"process-{len(self._started)}"
        # Any free port: many run at once.
        environment = {"HEADWAY_PORT": "0", **os.environ, **variables}
        process = Process([sys.executable, *arguments], self._directory, name, environment)
        self._started.append(process)
        return process

    def headway(self, *arguments: str, **variables: str) -> Process:
        return self.python("-m", "headway", *arguments, **variables)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            for child in _family(process):
                _kill(child)
            if process.running:
                process.kill()


class Project:
    """A user's directory: `jobs.py` with an app, and the same app in this process."""

    def __init__(self, directory: Path, url: str, processes: Processes) -> None:
        self.directory = directory
        self.url = url
        self.processes = processes
        self._apps: list[Headway] = []

    def write(self, code: str, module: str = "jobs", url: str | None = None) -> None:
        text = PREAMBLE.format(url=url or self.url) + textwrap.dedent(code)
        (self.directory / f"{module}.py").write_text(text)

    def app(self, code: str, module: str = "jobs") -> Headway:
        """Write the module and import its app here, as a web server of the user's would."""
        self.write(code, module)
        sys.modules.pop(module, None)
        sys.path.insert(0, str(self.directory))
        try:
            app = load_app(f"{module}:app")
        finally:
            sys.path.remove(str(self.directory))
        self._apps.append(app)
        return app

    def worker(self, *arguments: str, module: str = "jobs", **variables: str) -> Process:
        """A worker on the module; returns when it serves."""
        process = self.start_worker(*arguments, module=module, **variables)
        process.wait_for("worker.started", _processes(arguments))
        return process

    def start_worker(self, *arguments: str, module: str = "jobs", **variables: str) -> Process:
        return self.processes.headway("worker", "--app", f"{module}:app", "--log-json", *arguments, **variables)

    def notes(self) -> list[str]:
        """What jobs have noted down, in any process."""
        path = self.directory / "notes"
        return path.read_text().split() if path.exists() else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for app in self._apps:
            app.close()
        for name in [name for name, module in sys.modules.items() if self._ours(module)]:
            del sys.modules[name]

    def _ours(self, module: object) -> bool:
        file = getattr(module, "__file__", None)
        return file is not None and Path(file).parent == self.directory


def _processes(arguments: tuple[str, ...]) -> int:
    return int(arguments[arguments.index("--processes") + 1]) if "--processes" in arguments else 1


def _family(process: Process) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
