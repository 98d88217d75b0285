"""NEWS: what a script has changed, told behind its commit to the log of this process and to whoever watches the store.

A query may carry `News`; the driver acts on it once the transaction is committed, and forgets it if it is not. What
watchers in other processes hear travels with the commit itself (`tell`); jobs that are new are told by `insert_jobs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import msgspec

from headway.model.events import Transition
from headway.model.states import Outcome, State
from headway.observe import trail
from headway.observe.packing import packed
from headway.store.statements import Row, Script, one

STORE = "store"
"""In whose name the log tells of what follows from another change, in the same transaction."""
WATCHED = "\x04watched"
"""What is rung while somebody watches all that happens; no queue can have this name."""
WATCH_EVERY = 5.0
"""Seconds between such rings."""
WATCH_TERM = 15.0
"""Seconds for which a watcher counts as one."""


class News(msgspec.Struct, frozen=True):
    """Changes that a query has made, to be asked for behind the commit."""

    changes: Callable[[], Sequence[Transition]]
    component: str | None = None
    """In whose name the log tells of them; None: whoever called the store does."""


def tell(changes: Sequence[Transition], component: str | None = None) -> Script[None]:
    """These jobs have changed."""
    if changes:
        yield one("tell", told=pages(changes), news=News(lambda: changes, component))


def pages(changes: Sequence[Transition]) -> list[str]:
    """Changes as messages. None at all is one too: some may have been missed."""
    return list(packed(changes)) if changes else ["[]"]


def write_lines(news: Sequence[News]) -> None:
    """The lines that these leave in the log."""
    if trail.heard():
        for each in news:
            if each.component is not None:
                for change in each.changes():
                    trail.changed(
                        each.component,
                        change.job_id,
                        before=change.before,
                        after=change.state,
                        correlation_id=change.correlation_id,
                    )


def changes_of(rows: Sequence[Row], before: State | Mapping[UUID, State]) -> list[Transition]:
    """The changes that a statement's rows tell of: those that return `kind, name, queue, state, outcome, attempt,
    correlation_id` beside the id."""
    return [change_of(row, before if isinstance(before, State) else before[row["id"]]) for row in rows]


def change_of(row: Row, before: State, *, deleted: bool = False) -> Transition:
    return Transition(
        job_id=row["id"],
        kind=row["kind"],
        name=row["name"],
        queue=row["queue"],
        state=State(row["state"]),
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        attempt=row["attempt"],
        before=before,
        correlation_id=row["correlation_id"],
        deleted=deleted,
    )
