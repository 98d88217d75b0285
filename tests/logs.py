"""What Headway logs, as data."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

from headway.observe.logs import Line

Captured = list[Mapping[str, Any]]


class _Catcher(logging.Handler):
    def __init__(self, catch: Callable[[Mapping[str, Any]], object]) -> None:
        super().__init__()
        self._catch = catch

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.msg, Line):
            trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else None
            said = {"event": record.msg.event, "level": record.levelname.lower(), **record.msg.fields}
            self._catch(said | ({"exception": trace} if trace else {}))


@contextmanager
def captured(
    level: int = logging.INFO, catch: Callable[[Mapping[str, Any]], object] | None = None
) -> Iterator[Captured]:
    """The lines of this process, from that level on, as they come."""
    lines: Captured = []
    logger, catcher = logging.getLogger("headway"), _Catcher(catch or lines.append)
    before = logger.level
    logger.addHandler(catcher)
    logger.setLevel(level)
    try:
        with _structlog_too(level, catch or lines.append):
            yield lines
    finally:
        logger.setLevel(before)
        logger.removeHandler(catcher)


@contextmanager
def _structlog_too(level: int, catch: Callable[[Mapping[str, Any]], object]) -> Iterator[None]:
    """Lines that are still given to structlog."""

    def note(_logger: object, method: str, line: MutableMapping[str, Any]) -> str:
        catch({"level": method, **line})
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[structlog.processors.format_exc_info, note],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
