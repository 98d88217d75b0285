"""Several worker processes on one machine, replaced when one dies, and ended when nobody watches over them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from types import FrameType

from headway.cli.lifeline import Lifeline
from headway.clock import SystemClock
from headway.observe import series
from headway.observe.family import Family
from headway.observe.logs import get_logger
from headway.observe.page import Address, reported, usable
from headway.serve import REPLACE

RESTART_WAIT = 1.0
QUICK_DEATH = 60.0

log = get_logger("headway.processes")


class Supervisor:
    """Runs this very command in several processes. By the lifeline each knows that it is one of them, and works."""

    def __init__(self, count: int, family: Family | None = None) -> None:
        self._command = [sys.executable, "-m", "headway", *sys.argv[1:]]
        self._family = family
        self._lifeline = Lifeline()
        self._children: list[subprocess.Popen[bytes]] = []
        self._count = count
        self._stop = threading.Event()
        self._clock = SystemClock()

    def run(self) -> int:
        """Until a signal ends it. A child that dies is replaced; one that can't even start ends everything."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._children = [self._start(place) for place in range(self._count)]
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
            series.process_restarts.add()
            place = self._children.index(child)
            self._children[place] = self._start(place)

    def _start(self, place: int) -> subprocess.Popen[bytes]:
        environment = self._family.environment(place) if self._family is not None else None
        return self._lifeline.start(self._command, environment)

    def _end(self) -> int:
        for child in self._children:
            if child.poll() is None:
                child.terminate()
        # One that was just starting ends by the signal itself.
        return max((abs(child.wait()) for child in self._children if child.wait() != -signal.SIGTERM), default=0)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()


def supervise(count: int, address: Address | None) -> int:
    """So many processes, and one page with the numbers of all and how they are; the exit status."""
    if address is None or not usable(address):
        return Supervisor(count).run()
    family = Family()
    try:
        with reported(address, more=family.series, signs=family.signs, process="parent"):
            return Supervisor(count, family).run()
    finally:
        family.close()


def depart(status: int, left: int, *, supervised: bool = False) -> int:
    """How a process ends whose worker has stopped, with so many jobs that could not be: the exit status, or no return.

    One that must be replaced and that nobody watches over begins anew in its own place: whoever started it, a person
    or a process manager, sees the same process go on.
    """
    if status == REPLACE and not supervised:
        log.warning("processes.restarted", help="a job in a thread could not be stopped")
        _flush()
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - our own command line
    if left:
        # The loop would wait for them for ever. Their leases lapse, and other workers see to the jobs.
        _flush()
        os._exit(status)
    return status


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
