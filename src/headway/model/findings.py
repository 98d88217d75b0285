"""What a check found out, in words that say how to mend it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """How bad it is: a warning will hurt some day, a problem hurts now or breaks a promise."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True):
    """One line of a check."""

    check: str
    level: Level
    text: str
    mend: str | None = None


def fine(check: str, text: str) -> Finding:
    return Finding(check, Level.OK, text)


def warning(check: str, text: str, mend: str) -> Finding:
    return Finding(check, Level.WARNING, text, mend)


def problem(check: str, text: str, mend: str) -> Finding:
    return Finding(check, Level.PROBLEM, text, mend)
