"""Several worker processes on one machine, replaced when one dies."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from types import FrameType

from headway.clock import SystemClock
from headway.observe.logs import get_logger

RESTART_WAIT = 1.0
QUICK_DEATH = 5.0

log = get_logger("headway.processes")


class Supervisor:
    """Runs this very command in several processes, each with `--processes 1`."""

    def __init__(self, count: int) -> None:
        self._command = [sys.executable, "-m", "headway", *_single(sys.argv[1:])]
        self._children: list[subprocess.Popen[bytes]] = []
        self._count = count
        self._stop = threading.Event()
        self._clock = SystemClock()

    def run(self) -> int:
        """Until a signal ends it. A child that dies is replaced; one that can't even start ends everything."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._children = [self._start() for _ in range(self._count)]
        started = self._clock.monotonic()
        while not self._stop.wait(0.2):
            dead = [child for child in self._children if child.poll() is not None]
            if dead and self._clock.monotonic() - started < QUICK_DEATH and dead[0].returncode == 2:
                self._end()
                return 2
            if dead and not self._stop.wait(RESTART_WAIT):
                self._replace(dead)
        return self._end()

    def _replace(self, dead: list[subprocess.Popen[bytes]]) -> None:
        for child in dead:
            log.warning("processes.replaced", pid=child.pid, status=child.returncode)
            self._children[self._children.index(child)] = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command)  # noqa: S603 - our own command line

    def _end(self) -> int:
        for child in self._children:
            if child.poll() is None:
                child.terminate()
        # One that was just starting ends by the signal itself.
        return max((abs(child.wait()) for child in self._children if child.wait() != -signal.SIGTERM), default=0)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()


def _single(arguments: list[str]) -> list[str]:
    """The arguments without the number of processes."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip or argument.startswith("--processes="):
            skip = False
        elif argument in {"--processes", "-p"}:
            skip = True
        else:
            kept.append(argument)
    return kept
