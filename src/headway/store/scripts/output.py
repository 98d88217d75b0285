"""What jobs leave besides their result: taken out again, or kept as files."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from headway.model.job import Artifact, Claim
from headway.store.statements import Script, many, one


def trim(claim: Claim, first: int, last: int) -> Script[None]:
    """Take chunks of a running job's output out again; nothing happens if it is no longer this worker's."""
    yield one("trim_chunks", job_id=claim.id, token=claim.token, first_seq=first, last_seq=last)


def put_artifacts(claim: Claim, artifacts: Sequence[Artifact]) -> Script[bool]:
    """Note down files of a running job; False when it is no longer this worker's."""
    rows = yield many(
        "put_artifacts", [(claim.id, claim.token, each.name, each.size, each.sha256, each.note) for each in artifacts]
    )
    return bool(rows)


def artifacts(job_id: UUID) -> Script[list[Artifact]]:
    """All files of a job, those of the last attempt first."""
    rows = yield one("get_artifacts", job_id=job_id)
    return [
        Artifact(
            name=row["name"],
            size=row["size"],
            sha256=row["sha256"],
            note=row["note"],
            attempt=row["attempt"],
            at=row["stored_at"],
        )
        for row in rows
    ]
