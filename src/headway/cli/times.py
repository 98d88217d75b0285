"""Times as people type them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from headway.model.errors import ConfigurationError

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_PART = rf"({_NUMBER})(s|min|m|h|d|w)"
_LENGTH = re.compile(rf"(?:{_PART})+|{_NUMBER}")
_RELATIVE = re.compile(rf"([+-])((?:{_PART})+)")


def moment(text: str, now: datetime, flag: str) -> datetime:
    """RFC 3339, `now`, or relative to now: `-1h`, `+2d`, `-1h30m`."""
    if text == "now":
        return now
    if match := _RELATIVE.fullmatch(text):
        return _moved(now, _seconds(match[2]) * (1 if match[1] == "+" else -1), f"{flag} {text!r}")
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{flag} {text!r} is no time: write 2030-01-31T06:00:00Z, or relative to now -1h, -30m, +2d"
        ) from None
    if at.tzinfo is None:
        raise ConfigurationError(
            f"{flag} {text!r} has no time zone: write {at.isoformat()}Z for UTC, or an offset like +01:00 behind it"
        )
    return at


def length(text: str, flag: str) -> float:
    """A length of time in seconds: `90`, `90s`, `7d`, `1h30m`."""
    if not _LENGTH.fullmatch(text):
        raise ConfigurationError(f"{flag} {text!r} is no length of time: write seconds, or 90s, 30m, 12h, 7d")
    return _seconds(text) if text[-1].isalpha() else float(text)


def _moved(now: datetime, seconds: float, told: str) -> datetime:
    try:
        return now + timedelta(seconds=seconds)
    except OverflowError:
        raise ConfigurationError(f"{told} is no time that a calendar has") from None


def _seconds(text: str) -> float:
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))
