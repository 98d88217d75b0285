"""What may follow what: the one table of a job's life.

Everything that needs to know about states reads it here: the stores, the contract tests (generated from
`TRANSITIONS`) and the diagram in the documentation (`diagram()`).
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The stored state of a job."""

    CREATING = "creating"
    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """The job has ended; only a person's retry brings it back."""
        return self in TERMINAL


class Outcome(StrEnum):
    """How an attempt, or the whole job, ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    POISON = "poison"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    UNKNOWN = "unknown"


class Label(StrEnum):
    """Words for people, computed from a job's row; usable as filters like states."""

    PENDING = "pending"
    RETRYING = "retrying"
    SUBMITTED = "submitted"
    PARKED = "parked"


TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})
OPEN = frozenset(State) - TERMINAL
HELD = frozenset({State.RUNNING, State.CANCELLING})
"""A worker holds the job by a lease."""

TRANSITIONS: dict[State, frozenset[State]] = {
    State.CREATING: frozenset({State.SCHEDULED, State.BLOCKED, State.CANCELLED}),
    State.SCHEDULED: frozenset({State.RUNNING, State.BLOCKED, State.CANCELLED}),
    State.BLOCKED: frozenset({State.SCHEDULED, State.CANCELLED}),
    State.RUNNING: frozenset({State.COMPLETED, State.FAILED, State.CANCELLED, State.SCHEDULED, State.CANCELLING}),
    State.CANCELLING: frozenset({State.CANCELLED, State.COMPLETED}),
    State.COMPLETED: frozenset({State.SCHEDULED, State.BLOCKED}),
    State.FAILED: frozenset({State.SCHEDULED, State.BLOCKED}),
    State.CANCELLED: frozenset({State.SCHEDULED, State.BLOCKED}),
}

NO_CODE = "no_code"
"""The `wait_reason` of a parked job: no worker of its queue knows its function."""
PARENT_FAILED = "parent_failed"
"""The `wait_reason` of a job that a person must release because a parent didn't complete."""


def may_follow(before: State, after: State) -> bool:
    """Whether the table allows the step `before` → `after`."""
    return after in TRANSITIONS[before]


def label(state: State, *, due: bool, failures: int, wait_reason: str | None) -> str:
    """The word shown to people: the most telling label, or the state itself."""
    if state is not State.SCHEDULED:
        return state.value
    if wait_reason == NO_CODE:
        return Label.PARKED.value
    if failures:
        return Label.RETRYING.value
    return Label.PENDING.value if due else state.value


def diagram() -> str:
    """The table as a Mermaid state diagram, for the documentation."""
    lines = ["stateDiagram-v2", "    [*] --> creating", "    [*] --> scheduled", "    [*] --> blocked"]
    lines += [f"    {before} --> {after}" for before in State for after in sorted(TRANSITIONS[before])]
    return "\n".join(lines)
