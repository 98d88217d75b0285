"""A job body, as REST, messages and files write it.

    {"kind": "call", "function": "mail.welcome", "args": [42], "priority": 5, "delay": 60}

All bodies share the fields of `Common`; the others are their kind's.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headway.kinds.reading import names
from headway.model.errors import InvalidJob
from headway.model.retry import Retry, Rule
from headway.model.submission import Dedupe, OnConflict, OnParentFailure

Time = Annotated[datetime, Meta(tz=True)]
Seconds = Annotated[float, Meta(ge=0)]
Limit = Annotated[float, Meta(gt=0)]

A_TIME = 'a time with its zone, such as "2030-01-31T12:00:00Z"'
_RETRY = (
    'null or an object such as {"max_attempts": 5, "wait": 2, "backoff": "exponential", "max_wait": 600, '
    '"jitter": 0.1, "rules": [{"on": "status", "match": "400-499", "then": "permanent"}]}'
)
_DEDUPE = 'false, a window in seconds, or an object such as {"key": "order 7", "window": 3600}'


class RuleBody(Rule, frozen=True, forbid_unknown_fields=True):
    """A rule as a body writes it: a slip in a field's name must not go unnoticed."""


class RetryBody(Retry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A retry policy as a body writes it."""

    rules: tuple[RuleBody, ...] = ()


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """De-duplication as a body writes it; without a key it is for jobs of the same name and payload."""

    key: str | None = None
    window: Seconds = 3600.0


class Common(msgspec.Struct, kw_only=True):
    """What every body may have."""

    kind: Annotated[str, Meta(description="the kind of the job")]
    id: Annotated[UUID | UnsetType, Meta(description="a UUID of version 7, by which a repeat is known")] = UNSET
    name: Annotated[str | UnsetType, Meta(description="a text")] = UNSET
    queue: Annotated[str | UnsetType, Meta(description="the name of a queue")] = UNSET
    priority: Annotated[
        Annotated[int, Meta(ge=-100, le=100)] | UnsetType,
        Meta(description="a whole number from -100 (last) to 100 (first)"),
    ] = UNSET
    key: Annotated[str | UnsetType, Meta(description="a text that jobs in each other's way share")] = UNSET
    run_at: Annotated[Time | UnsetType | None, Meta(description=A_TIME)] = UNSET
    delay: Annotated[Seconds | UnsetType, Meta(description="seconds from now, in the place of run_at")] = UNSET
    timeout: Annotated[Limit | UnsetType | None, Meta(description="more than 0 seconds, or null for no limit")] = UNSET
    retry: Annotated[RetryBody | UnsetType | None, Meta(description=_RETRY)] = UNSET
    on_conflict: Annotated[OnConflict | UnsetType, Meta(description=f"one of {', '.join(OnConflict)}")] = UNSET
    dedupe: Annotated[Window | Seconds | bool | UnsetType | None, Meta(description=_DEDUPE)] = UNSET
    after: Annotated[list[UUID] | UnsetType, Meta(description="a list of the ids of jobs to wait for")] = UNSET
    on_parent_failure: Annotated[
        OnParentFailure | UnsetType, Meta(description=f"one of {', '.join(OnParentFailure)}")
    ] = UNSET
    expires: Annotated[Seconds | Time | UnsetType | None, Meta(description=f"seconds from now, or {A_TIME}")] = UNSET
    retain: Annotated[Seconds | UnsetType, Meta(description="seconds for which the ended job is kept")] = UNSET
    tags: Annotated[list[str] | UnsetType, Meta(description="a list of texts")] = UNSET
    metadata: Annotated[dict[str, Any] | UnsetType, Meta(description="an object of at most 4 KiB")] = UNSET
    hold: Annotated[bool | UnsetType, Meta(description="true or false")] = UNSET

    def options(self) -> dict[str, Any]:
        """The same as options of a submission (`options.py`); what the body doesn't say is left out."""
        said = {name: value for name in _OPTIONS if (value := getattr(self, name)) is not UNSET}
        if said.get("run_at", UNSET) is None:
            del said["run_at"]
        if "dedupe" in said:
            said["dedupe"] = _dedupe(said["dedupe"])
        return said


COMMON = frozenset(names(Common))
_OPTIONS = tuple(name for name in Common.__struct_fields__ if name != "kind")


def _dedupe(said: Window | float | bool | None) -> Dedupe | float | None:
    if said is True:
        raise InvalidJob(f"dedupe: true doesn't say for how long; dedupe must be {_DEDUPE}", field="dedupe")
    if said is None or said is False:
        return None
    if isinstance(said, Window):
        if said.key is not None and "\0" in said.key:
            raise InvalidJob("dedupe.key must not contain the character U+0000", field="dedupe.key")
        return said.window if said.key is None else Dedupe(said.key, said.window)
    return said
