"""Which times are taken in. Pure."""

from __future__ import annotations

from datetime import datetime

from headway.model.errors import InvalidJob
from headway.model.zones import FIRST_YEAR, LAST_YEAR

KNOWN = f"from {FIRST_YEAR + 1} to {LAST_YEAR - 1}"
"""The years in which times may lie, wherever they come from."""


def definite(moment: datetime) -> bool:
    """Whether it means one instant, with room on both sides: stores and screens turn it into other zones, and add to
    it."""
    return moment.tzinfo is not None and FIRST_YEAR < moment.year < LAST_YEAR


def check_moment(field: str, moment: datetime, error: type[InvalidJob] = InvalidJob) -> None:
    """Raise `error` for a time that can't be kept."""
    if not definite(moment):
        raise error(
            f"{field} must be a time with its zone, {KNOWN}, such as 2030-01-31T12:00:00Z, not {moment.isoformat()}",
            field=field,
        )
