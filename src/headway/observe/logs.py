"""Log lines as data: an event and its fields, through the standard library's logging.

    log = get_logger("headway.worker")
    log.info("worker.started", queues=["mail"], slots=10)

Headway follows the logging of the process it lives in. Where nobody has set any up, warnings and errors appear on
standard error as `event key=value`, and nothing else does. Processes of our own set up `observe/rendering.py`.

A line whose level is off costs the question and nothing more, so lines may stand on hot paths.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from headway.observe.discretion import discreet

ExcInfo = bool | BaseException | tuple[type[BaseException], BaseException, TracebackType | None] | None


class Line:
    """What a record says. Formatters that know nothing of it print `event key=value`."""

    __slots__ = ("event", "fields")

    def __init__(self, event: str, fields: Mapping[str, Any]) -> None:
        self.event = event
        self.fields = fields

    def __str__(self) -> str:
        words = [self.event, *(f"{name}={_shown(value)}" for name, value in self.fields.items())]
        return discreet(" ".join(words))


class Log:
    """A named source of lines."""

    __slots__ = ("_logger", "enabled")

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        self.enabled = self._logger.isEnabledFor
        """Whether a line of this level would be heard: for those who would have to gather its fields first."""

    def debug(self, event: str, /, **fields: Any) -> None:
        if self.enabled(logging.DEBUG):
            self.write(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: Any) -> None:
        if self.enabled(logging.INFO):
            self.write(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: Any) -> None:
        if self.enabled(logging.WARNING):
            self.write(logging.WARNING, event, fields)

    def error(self, event: str, /, exc_info: ExcInfo = None, **fields: Any) -> None:
        if self.enabled(logging.ERROR):
            self.write(logging.ERROR, event, fields, exc_info)

    def exception(self, event: str, /, **fields: Any) -> None:
        """An error, with the exception that is being handled."""
        if self.enabled(logging.ERROR):
            self.write(logging.ERROR, event, fields, exc_info=True)

    def write(self, level: int, event: str, fields: Mapping[str, Any], exc_info: ExcInfo = None) -> None:
        """A line, whether its level is on or not: for those who have asked."""
        # Who called is two frames up. The library's own search for the caller takes longer than all the rest.
        caller = sys._getframe(2)
        code = caller.f_code
        record = self._logger.makeRecord(
            self._logger.name,
            level,
            code.co_filename,
            caller.f_lineno,
            Line(event, fields),
            (),
            _exception(exc_info) if exc_info else None,
            code.co_name,
        )
        self._logger.handle(record)


def get_logger(name: str) -> Log:
    """The source of that name; all of ours begin with `headway.`"""
    return Log(name)


def _exception(given: ExcInfo) -> Any:
    if isinstance(given, BaseException):
        return type(given), given, given.__traceback__
    return sys.exc_info() if given is True else given


def _shown(value: object) -> str:
    text = str(value)
    return repr(text) if " " in text or "\n" in text or not text else text
