"""Cluster-wide limits: how many jobs may run at once, and how many may start in a time."""

from __future__ import annotations

import re

import msgspec

from headway.model.errors import InvalidJob

_PERIODS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_RATE = re.compile(r"(\d+)/(\d*)([smhd])")


class Rate(msgspec.Struct, frozen=True):
    """At most `count` starts in any `period` seconds, on the average; at most `count` at once."""

    count: int
    period: float

    @classmethod
    def parse(cls, text: str) -> Rate:
        """`"10/s"`, `"100/m"`, `"5/10s"`."""
        match = _RATE.fullmatch(text.replace(" ", ""))
        if not match or int(match[1]) < 1 or match[2] == "0":
            raise InvalidJob(f"rate must look like '10/s', '100/m' or '5/10s', not {text!r}", field="rate")
        return cls(int(match[1]), float(match[2] or 1) * _PERIODS[match[3]])

    def __str__(self) -> str:
        return f"{self.count}/{self.period:g}s"


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for a queue, or for a key: None means unlimited."""

    max_running: int | None = None
    rate: Rate | None = None

    def __post_init__(self) -> None:
        if self.max_running is not None and self.max_running < 1:
            raise InvalidJob(
                f"max_running must be 1 or more, not {self.max_running}; to stop a queue, pause it", field="max_running"
            )


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A queue's stored settings; a queue without a row has the defaults."""

    name: str
    paused: bool = False
    max_running: int | None = None
    rate: Rate | None = None
    key_max_running: int | None = None
    """Holds for each key within the queue."""
    key_rate: Rate | None = None
    keep_completed: float | None = None
    keep_failed: float | None = None

    def __post_init__(self) -> None:
        Limit(max_running=self.max_running)
        Limit(max_running=self.key_max_running)


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long ended jobs are kept, the ledger of schedules and the audit log, in seconds."""

    completed: float = 7 * 86_400.0
    failed: float = 30 * 86_400.0
    ledger: float = 90 * 86_400.0
    audit: float = 365 * 86_400.0
