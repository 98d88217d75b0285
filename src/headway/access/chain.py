"""Whether the audit log is as it was written."""

from __future__ import annotations

from headway.store.service import Audit


async def broken(store: Audit) -> int | None:
    """The number of the first line that was changed, or behind which lines are missing; None if all is well."""
    # What is written or pruned while we look lies beyond these ends.
    ends = await store.audit_ends()
    seq, digest = ends.pruned_seq, ends.pruned_digest
    while seq < ends.last_seq:
        lines = await store.audit_after(seq)
        for line in lines:
            if line.seq != seq + 1 or line.digest != line.sealed(digest):
                return line.seq
            seq, digest = line.seq, line.digest
            if seq == ends.last_seq:
                break
        if not lines:
            return ends.last_seq
    return None if digest == ends.last_digest else seq
