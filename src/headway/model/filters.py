"""Which jobs are meant: one form for library, CLI, messages and REST."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from headway.model.errors import InvalidRequest
from headway.model.moments import check_moment
from headway.model.states import Label, State

TimeField = Literal["created", "run", "started", "finished"]


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """All given conditions must hold. Listed newest first; `cursor` is the id after which to go on."""

    states: tuple[str, ...] = ()
    """States and labels, any case."""
    kind: str | None = None
    queue: str | None = None
    name: str | None = None
    name_prefix: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    """All of them."""
    created_by: str | None = None
    schedule_id: UUID | None = None
    """Jobs that this schedule made."""
    error: str | None = None
    """Jobs whose last error says this somewhere, in any case."""
    time: TimeField = "created"
    since: datetime | None = None
    until: datetime | None = None
    cursor: UUID | None = None
    limit: int = 50
    one_more: bool = False
    """Give one job more than `limit`, if there is one: that tells whether another page follows."""

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= 1000:
            raise InvalidRequest(f"limit must be from 1 to 1000, not {self.limit}", field="limit")
        for field, moment in (("from", self.since), ("to", self.until)):
            if moment is not None:
                check_moment(field, moment, InvalidRequest)
        known = {*State, *Label}
        for state in self.states:
            if state.lower() not in known:
                raise InvalidRequest(f"unknown state {state!r}: use one of {', '.join(sorted(known))}", field="state")
