"""`--reload`: the command in a child process, started afresh whenever a source file changes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

import headway
from headway.model.errors import ConfigurationError
from headway.observe.logs import get_logger

GRACE = "HEADWAY_GRACE"
SHORT = "0.2"
"""Seconds that running jobs get to end before a restart; then they are given back, uncharged."""
FLAG = "--reload"
PATIENCE = 20.0
"""Seconds after which a child that doesn't end is killed; the leases see to its jobs."""

log = get_logger("headway.reload")


class Reloader:
    """Runs this very command without `--reload`, again and again."""

    def __init__(self, port: int | None = None) -> None:
        self._command = [sys.executable, "-m", "headway", *(each for each in sys.argv[1:] if each != FLAG)]
        self._environment = {GRACE: SHORT, **os.environ, **({"HEADWAY_PORT": str(port)} if port else {})}
        self._stop = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Until a signal ends it; the exit status of the last child."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        changes = _changes(self._stop)
        self._start()
        for changed in changes:
            log.warning("reload.changed", files=sorted(Path(file).name for _, file in changed))
            self._end()
            self._start()
        return self._end()

    def _start(self) -> None:
        self._child = subprocess.Popen(self._command, env=self._environment)  # noqa: S603 - our own command line

    def _end(self) -> int:
        """The child's exit status, once it has ended. One that couldn't start has ended before."""
        child = self._child
        assert child is not None
        if child.poll() is None:
            child.terminate()
        try:
            return child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            log.warning("reload.killed", pid=child.pid)
            child.kill()
            return child.wait()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()


def free_port(host: str) -> int:
    """A port for all children, one after another: whoever watches them finds them again."""
    with socket.create_server((host, 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def _changes(stop: threading.Event):  # type: ignore[no-untyped-def]  # watchfiles' own type, which may not be there
    try:
        from watchfiles import PythonFilter, watch
    except ImportError as error:
        raise ConfigurationError("--reload needs the package 'watchfiles': pip install 'headway[server]'") from error
    places = {Path.cwd(), Path(headway.__file__).parent}
    return watch(*places, watch_filter=PythonFilter(), stop_event=stop, debounce=200, step=50, raise_interrupt=False)
