"""How the lines of our own processes look: JSON for machines, columns for people, on standard error."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec
import structlog

from headway.observe.discretion import discreet
from headway.observe.logs import Line, Log

Fields = dict[str, Any]
Render = Callable[[Fields], str]

_encode = msgspec.json.Encoder(enc_hook=str).encode


def set_up(level: int, *, as_json: bool, stream: TextIO | None = None) -> None:
    """All records of this process, ours and other libraries', become lines of one form. Others are not heard below
    INFO, whatever is asked of us."""
    out = stream or sys.stderr
    handler = Lines(out, _json if as_json else _columns(out))
    # What jobs log is their output at any level (`executors/contract.py`): here only what was asked for is heard of it.
    handler.setLevel(level)
    root = logging.getLogger()
    for earlier in [each for each in root.handlers if isinstance(each, Lines)]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(max(level, logging.INFO))
    logging.getLogger("headway").setLevel(level)
    _join_structlog(level)


class Lines(logging.Handler):
    """Writes one line for each record."""

    def __init__(self, stream: TextIO, render: Render) -> None:
        super().__init__()
        self._stream = stream
        self._render = render
        self._second = -1
        self._day_and_time = ""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._stream.write(f"{discreet(self._render(self._fields(record)))}\n")
            self._stream.flush()
        except Exception:  # a line that can't be written must not break what it tells of
            self.handleError(record)

    def _fields(self, record: logging.LogRecord) -> Fields:
        said: Any = record.msg
        ours = isinstance(said, Line)
        line: Fields = {
            "timestamp": self._time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": said.event if ours else record.getMessage(),
        }
        if ours:
            line.update(said.fields)
        if record.exc_info and record.exc_info[0]:
            line["exception"] = "".join(traceback.format_exception(*record.exc_info)).rstrip()
        return line

    def _time(self, created: float) -> str:
        """RFC 3339 in UTC. Lines come many to a second: its words are kept."""
        second = int(created)
        if second != self._second:
            self._day_and_time = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._second = second
        return f"{self._day_and_time}.{int((created - second) * 1e6):06d}Z"


def _json(line: Fields) -> str:
    return _encode(line).decode()


def _columns(stream: TextIO) -> Render:
    console = structlog.dev.ConsoleRenderer(colors=stream.isatty())
    return lambda line: str(console(None, line["level"], line))


def _join_structlog(level: int) -> None:
    """Lines that are still given to structlog take the same way."""

    def hand_over(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> tuple[tuple[str], Fields]:
        event = line.pop("event")
        return (str(event),), dict(line)

    structlog.configure(
        processors=[hand_over],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *names: Log(names[0] if names else "headway"),
    )
