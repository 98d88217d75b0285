"""Times, numbers and jobs in words, the same in sentences, tables and logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def duration(seconds: float) -> str:
    """`3 h 5 min`, `45 s`, `0.4 s`: two units at most, never more than it was."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f}".removesuffix(".0") + " s"
    left = int(seconds)
    parts: list[tuple[int, str]] = []
    for unit, size in _UNITS:
        parts.append((left // size, unit))
        left %= size
    first = next(place for place, (number, _) in enumerate(parts) if number)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number)


def moment(at: datetime) -> str:
    """`2030-01-31 06:00:00 UTC`."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def ago(at: datetime, now: datetime) -> str:
    """`5 s ago`, `in 3 h 5 min`."""
    seconds = (at - now).total_seconds()
    return f"in {duration(seconds)}" if seconds > 0 else f"{duration(abs(seconds))} ago"


def dated(at: datetime, now: datetime) -> str:
    """`2030-01-31 06:00:00 UTC (in 3 h 5 min)`."""
    return f"{moment(at)} ({ago(at, now)})"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 job`, `1,200 jobs`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[str], most: int = 3) -> str:
    """`a`, `a and b`, `a, b, c and 4 more`."""
    shown, left = list(words[:most]), len(words) - most
    if left > 0:
        shown.append(f"{left:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def size(octets: float) -> str:
    """`512 B`, `1.4 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if octets < 1024:
            return f"{octets:.0f} B" if unit == "B" else f"{octets:.1f} {unit}"
        octets /= 1024
    return f"{octets:.1f} TiB"
