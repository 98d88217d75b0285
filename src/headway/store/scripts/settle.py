"""What hangs on a job's end, settled in the transaction that ended it: those that wait for it, the slots it held,
its place in de-duplication, and its own removal if that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headway.model.job import ErrorInfo, encode
from headway.model.states import PARENT_FAILED, Outcome, State
from headway.model.submission import OnParentFailure
from headway.store.scripts import gates
from headway.store.scripts.news import STORE, change_of, changes_of, tell
from headway.store.scripts.rows import ids
from headway.store.statements import Script, many, one


def settle(ended: Sequence[UUID]) -> Script[None]:
    """Settle everything tied to these jobs, and to those that end because of it, until nothing is left."""
    while ended:
        ties = yield many("ties_of", ids(ended))
        freed = [row["id"] for row in ties if row["deduped"] and row["state"] != State.COMPLETED]
        if freed:
            yield many("free_dedupes", ids(freed))
        gated = [row["id"] for row in ties if row["gated"]]
        if gated:
            yield from gates.leave(gated)
        waited_for = [row["id"] for row in ties if row["waiters"]]
        cascade = (yield from release_children(waited_for)) if waited_for else []
        doomed = [row["id"] for row in ties if row["doomed"]]
        if doomed:
            yield many("delete_jobs", ids(doomed))
            yield from tell([change_of(row, State(row["state"]), deleted=True) for row in ties if row["doomed"]])
        ended = cascade


def release_children(parents: Sequence[UUID]) -> Script[list[UUID]]:
    """Cut the edges from these ended parents; the children they held go on as their policy says.

    Returns the children that were cancelled because a parent didn't complete. The children are locked before any edge
    is cut: of two parents that end at once, the second to get the lock sees the first one's cut.
    """
    children = sorted({row["child_id"] for row in (yield many("children_of", ids(parents)))})
    if not children:
        return []
    completed = {
        row["id"]
        for row in (yield many("lock_jobs", ids(sorted({*children, *parents}))))
        if row["state"] == State.COMPLETED
    }
    yield many("inherit_edges", ids(parents))
    yield many("drop_edges_to", ids(parents))
    cut = yield many("cut_edges", ids(parents))
    # Of several that failed at once the last is named, and RETURNING promises no order.
    failed = dict(
        sorted(
            (row["child_id"], row["parent_id"])
            for row in cut
            if row["kind"] == "after" and row["parent_id"] not in completed
        )
    )
    return (yield from _move_on(children, failed))


def _move_on(children: Sequence[UUID], failed: dict[UUID, UUID]) -> Script[list[UUID]]:
    cancelled: list[tuple[UUID, str, str]] = []
    before: dict[UUID, State] = {}
    held: list[tuple[UUID, str]] = []
    promoted: list[UUID] = []
    for row in (yield many("free_children", ids(children))):
        child, policy = row["id"], row["on_parent_failure"]
        if child in failed and policy == OnParentFailure.CANCEL:
            error = encode(
                ErrorInfo("ParentFailed", f"job {failed[child]}, which this one waited for, did not complete")
            )
            cancelled.append((child, Outcome.CANCELLED.value, error))
            before[child] = State(row["state"])
        elif child in failed and policy == OnParentFailure.HOLD:
            held.append((child, PARENT_FAILED))
        elif row["free"] and row["wait_reason"] != PARENT_FAILED:
            promoted.append(child)
    if held:
        yield many("hold_back", held)
    if promoted:
        yield from promote(promoted)
    return (yield from _cancel_children(cancelled, before)) if cancelled else []


def promote(job_ids: Sequence[UUID]) -> Script[int]:
    """Blocked jobs that wait for nothing any more may be claimed."""
    promoted = yield many("promote_jobs", ids(job_ids))
    if promoted:
        yield many("add_history", [(row["id"], State.SCHEDULED.value, None, None) for row in promoted])
        yield from tell(changes_of(promoted, State.BLOCKED), STORE)
        yield one("wake", wake=sorted({row["queue"] for row in promoted}))
    return len(promoted)


def _cancel_children(cancelled: Sequence[tuple[UUID, str, str]], before: dict[UUID, State]) -> Script[list[UUID]]:
    ended = yield many("cancel_waiting", cancelled)
    yield from tell(changes_of(ended, before), STORE)
    return [row["id"] for row in ended]
