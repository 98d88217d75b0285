"""The audit log: a chain of lines that grows at one end and is pruned at the other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from headway.model.access import AuditFilter, AuditLine, Entry
from headway.store.statements import Row, Script, many, one

LAST = "last"
PRUNED = "pruned"


class Ends(msgspec.Struct, frozen=True):
    """Between which digests the lines that are kept must lie."""

    pruned_seq: int
    pruned_digest: str
    last_seq: int
    last_digest: str


def record(entries: Sequence[Entry]) -> Script[int]:
    """Add lines, in this order, at one moment; those that are there already are left out. How many were new."""
    [mark] = yield one("take_audit_mark", name=LAST)
    known = {row["id"] for row in (yield many("known_audit", [(entry.id,) for entry in entries]))}
    new = [entry for entry in entries if entry.id not in known]
    if not new:
        return 0
    [clock] = yield one("store_time")
    lines = _chained(new, clock["now_at"], mark["seq"], mark["digest"])
    yield many("put_audit", [msgspec.structs.astuple(line) for line in lines])
    yield one("put_audit_mark", name=LAST, seq=lines[-1].seq, digest=lines[-1].digest)
    return len(lines)


def find(wanted: AuditFilter) -> Script[list[AuditLine]]:
    """Lines, the latest first."""
    prefix = wanted.action if wanted.action and wanted.action.endswith(".") else None
    rows = yield one(
        "find_audit",
        actor=wanted.actor,
        action=None if prefix else wanted.action,
        action_prefix=prefix,
        object=wanted.object,
        since=wanted.since,
        until=wanted.until,
        before=wanted.before,
        limit=wanted.limit,
    )
    return [_line(row) for row in rows]


def after(seq: int, limit: int) -> Script[list[AuditLine]]:
    """Lines in the order in which they were written."""
    return [_line(row) for row in (yield one("audit_after", seq=seq, limit=limit))]


def ends() -> Script[Ends]:
    marks = {row["name"]: (row["seq"], row["digest"]) for row in (yield one("audit_marks"))}
    return Ends(*marks.get(PRUNED, (0, "")), *marks.get(LAST, (0, "")))


def prune(age: float, limit: int) -> Script[int]:
    """Remove the oldest lines, if they are older than `age` seconds; how many went."""
    [mark] = yield one("take_audit_mark", name=PRUNED)
    [clock] = yield one("store_time")
    before = clock["now_at"] - timedelta(seconds=age)
    oldest = yield from after(mark["seq"], limit)
    # Up to the first that stays: a clock that was set back must not tear a hole into the chain.
    young = next((place for place, line in enumerate(oldest) if line.made_at >= before), len(oldest))
    if not young:
        return 0
    last = oldest[young - 1]
    yield one("drop_audit", seq=last.seq)
    yield one("put_audit_mark", name=PRUNED, seq=last.seq, digest=last.digest)
    return young


def _chained(entries: Sequence[Entry], made_at: datetime, seq: int, digest: str) -> list[AuditLine]:
    lines: list[AuditLine] = []
    for number, entry in enumerate(entries, start=seq + 1):
        line = AuditLine(
            seq=number,
            id=entry.id,
            made_at=made_at,
            actor=entry.actor,
            action=entry.action,
            object=entry.object,
            address=entry.address,
            detail=msgspec.json.encode(entry.detail, order="deterministic").decode(),
            count=entry.count,
            digest="",
        )
        digest = line.sealed(digest)
        lines.append(msgspec.structs.replace(line, digest=digest))
    return lines


def _line(row: Row) -> AuditLine:
    return AuditLine(**{name: row[name] for name in AuditLine.__struct_fields__})
