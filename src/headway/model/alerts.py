"""Telling people that something is wrong: what happens, what holds, how a rule stands with it, what is sent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec


class Cause(StrEnum):
    """What a rule is about. The first three happen; the others hold for a while."""

    JOB_FAILED = "job_failed"
    SCHEDULE_MISSED = "schedule_missed"
    WORKER_LOST = "worker_lost"
    QUEUE_BACKLOG = "queue_backlog"
    QUEUE_UNSERVED = "queue_unserved"


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened: a job failed, a schedule missed its time, a worker was lost."""

    event: str
    subject: str
    """The id of the job, schedule or worker."""
    number: int = 0
    """Tells what happened to the same subject before from this."""
    at: datetime
    name: str
    queue: str | None = None
    detail: str | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How a rule stands with one subject."""

    rule_id: UUID
    subject: str
    since: datetime | None = None
    """Since when the condition holds."""
    told: datetime | None = None
    """When people were last told."""
    firing: bool = False
    """They were told that it holds, and not yet that it is over."""
    pending: int = 0
    """What has happened that they have not been told."""
    examples: tuple[Happening, ...] = ()


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What people are told. `state`: `happened`, `firing`, `resolved` or `test`."""

    rule: str
    on: str
    state: str
    subject: str
    summary: str
    count: int = 1
    at: datetime
    details: list[dict[str, Any]] = []


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A message on its way: `due_at` is when it is tried (again); None: it is delivered, or given up."""

    id: UUID
    rule_id: UUID
    body: Body
    created_at: datetime
    due_at: datetime | None = None
    attempts: int = 0
    delivered_at: datetime | None = None
    error: str | None = None


class RuleDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as it is to be kept."""

    id: UUID
    name: str
    cause: Cause
    enabled: bool
    record: str


class StoredRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as it is kept; its record is read by those who know what rules look like."""

    id: UUID
    record: bytes
    version: int
    changed_at: datetime
    changed_by: str | None


class Decision(msgspec.Struct, frozen=True):
    """What follows from what has happened: how rules stand now, what to forget, what to send."""

    standings: Sequence[Standing]
    forget: Sequence[Standing]
    send: Sequence[tuple[UUID, Body]]
    """By rule."""
