"""A line between a process and those it has started: when it is gone, however that happened, they end as well."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence

from headway.observe.logs import get_logger

VARIABLE = "_HEADWAY_LIFELINE"

log = get_logger("headway.processes")


class Lifeline:
    """The parent's end. Nobody else has it, so the system lets go of it when the process ends."""

    def __init__(self) -> None:
        self._theirs, self._ours = os.pipe()

    def start(self, command: Sequence[str], environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
        """A process that may hold on to it."""
        variables = {**(os.environ if environment is None else environment), VARIABLE: str(self._theirs)}
        return subprocess.Popen(command, env=variables, pass_fds=(self._theirs,))  # noqa: S603 - our own command line


def hold_on() -> bool:
    """End this process, as by SIGTERM, once its parent is gone. Whether there is a line, and so a parent that watches
    over this process."""
    given = os.environ.pop(VARIABLE, None)
    if given is not None:
        os.set_inheritable(int(given), False)
        threading.Thread(target=_hold, args=(int(given),), name="headway-lifeline", daemon=True).start()
    return given is not None


def _hold(line: int) -> None:
    while os.read(line, 1):
        continue
    log.warning("processes.orphaned", help="the process that watched over this one is gone")
    os.kill(os.getpid(), signal.SIGTERM)
