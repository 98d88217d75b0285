"""What a job logs is its output."""

from __future__ import annotations

import logging
import threading

from headway.executors.contract import current

_OURS = "headway."
_JOBS = "headway.job"


class CaptureHandler(logging.Handler):
    """Writes each record that is logged inside a job to that job's output; all others pass by."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(_OURS) and not record.name.startswith(_JOBS):
            return  # what the worker says about a job, while it runs it, is not the job's word
        try:
            context = current()
        except LookupError:
            return
        try:
            context.write(f"{self.format(record)}\n".encode("utf-8", "backslashreplace"))
        except Exception:  # logging must never make a job fail
            self.handleError(record)


_handler = CaptureHandler()
_users = 0
_lock = threading.Lock()


def install() -> None:
    """Begin to capture. One handler serves all executors of the process, so that no line comes twice."""
    global _users  # noqa: PLW0603 - the root logger is global, and so is the count of those who use it
    with _lock:
        _users += 1
        if _users == 1:
            logging.getLogger().addHandler(_handler)


def remove() -> None:
    """The counterpart of `install`: the last to leave takes the handler away."""
    global _users  # noqa: PLW0603 - see install
    with _lock:
        _users -= 1
        if _users == 0:
            logging.getLogger().removeHandler(_handler)
