"""The vault's rows: keys by name, sealed content, named secrets, attachments. Nothing here can read what is sealed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import msgspec

from headway.model.errors import AttachmentNotFound, HeadwayError, SecretNotFound, VaultKeyRetired
from headway.model.sealed import Attachment, Sealed, SecretInfo, VaultKey
from headway.model.submission import Submission
from headway.store.scripts.rows import ids
from headway.store.statements import Row, Script, many, one

Rewrap = Callable[[Sealed], Sealed]
"""The same content, its key wrapped by another. `data` is neither needed nor given."""


# Keys


def keys() -> Script[list[VaultKey]]:
    """All there were, the oldest first, with how much is sealed with each."""
    return [_key(row) for row in (yield one("vault_keys"))]


def current_key() -> Script[VaultKey | None]:
    rows = yield one("current_key")
    return _key(rows[0]) if rows else None


def add_key(key: VaultKey) -> Script[VaultKey]:
    """Make a key known; the first one is the current one from then on. Returns the current one."""
    yield one("add_key", key_id=key.id, proof=key.proof)
    [row] = yield one("current_key")
    return _key(row)


def change_key(key: VaultKey) -> Script[None]:
    """From now on content is sealed with this key."""
    yield one("add_key", key_id=key.id, proof=key.proof)
    yield one("step_down", key_id=key.id)
    yield one("step_up", key_id=key.id)


def rewrap(rewrapped: Rewrap, key_id: str, limit: int) -> Script[int]:
    """One step of bringing everything under this key; how much was still under another."""
    rows = yield one("stale_sealed", key_id=key_id, limit=limit)
    if rows:
        made = [rewrapped(_sealed(row, b"")) for row in rows]
        yield many("rewrap_sealed", [(each.id, each.key_id, each.wrapped) for each in made])
    return len(rows)


def retire_keys() -> Script[list[str]]:
    """Of keys with which nothing is sealed any more, nothing may be from now on; returns them."""
    yield one("hold_old_keys")
    return sorted(row["key_id"] for row in (yield one("retire_keys")))


def _key(row: Row) -> VaultKey:
    return VaultKey(
        id=row["key_id"],
        proof=row["proof"],
        current=bool(row["current"]),
        uses=row["uses"],
        made_at=row["made_at"],
        retired_at=row["retired_at"],
    )


# Secrets


def put_secret(name: str, sealed: Sealed, *, note: str | None, by: str | None) -> Script[SecretInfo]:
    """Make or replace a secret. Raises VaultKeyRetired."""
    yield from store_sealed([sealed])
    [row] = yield one("put_secret", name=name, sealed_id=sealed.id, note=note, by=by)
    return _info(row)


def open_secrets(names: Sequence[str]) -> Script[list[Sealed]]:
    """Sealed secrets, in the order of the names, marked as used. Raises SecretNotFound."""
    asked = [(name,) for name in names]
    found = {row["name"]: _sealed(row) for row in (yield many("open_secrets", asked))}
    for name in names:
        if name not in found:
            raise SecretNotFound(name)
    yield many("touch_secrets", asked)
    return [found[name] for name in names]


def missing_secrets(names: Sequence[str]) -> Script[list[str]]:
    """Which of these are not there; looking is no use of them."""
    there = {row["name"] for row in (yield many("open_secrets", [(name,) for name in names]))}
    return [name for name in names if name not in there]


def list_secrets(after_name: str, limit: int) -> Script[list[SecretInfo]]:
    return [_info(row) for row in (yield one("list_secrets", after_name=after_name, limit=limit))]


def delete_secret(name: str) -> Script[None]:
    """Raises SecretNotFound."""
    if not (yield one("delete_secret", name=name)):
        raise SecretNotFound(name)


def _info(row: Row) -> SecretInfo:
    return SecretInfo(**{name: row[name] for name in SecretInfo.__struct_fields__})


# Attachments


def check_attachments(jobs: Sequence[Submission]) -> Script[dict[UUID, HeadwayError]]:
    """What stands in the way of each submission: content that it shares is gone, or its key is. Whatever is there
    stays until the end of this transaction."""
    attached = [(job.id, each) for job in jobs for each in job.attachments]
    if not attached:
        return {}
    shared = sorted({each.id for _, each in attached if each.sealed is None})
    there = {row["id"] for row in (yield many("hold_attachments", ids(shared)))} if shared else set()
    missing_keys = yield from _retired([each.sealed for _, each in attached if each.sealed])
    problems: dict[UUID, HeadwayError] = {}
    for job_id, each in attached:
        if each.sealed is None and each.id not in there:
            problems[job_id] = AttachmentNotFound(each.role, each.name)
        elif each.sealed is not None and each.sealed.key_id in missing_keys:
            problems[job_id] = VaultKeyRetired(each.sealed.key_id)
    return problems


def attach(owners: Sequence[tuple[UUID, Sequence[Attachment]]]) -> Script[None]:
    """Store what owners bring and note what they use; `check_attachments` went before, in the same transaction."""
    attached = [(owner, each) for owner, attachments in owners for each in attachments]
    brought = {each.id: each for _, each in attached if each.sealed is not None}
    if brought:
        yield many("insert_sealed", [_row(each.sealed) for each in brought.values() if each.sealed])
        yield many("insert_attachments", [(each.id, each.size, each.sha256) for each in brought.values()])
    if attached:
        yield many("insert_uses", [(owner, each.role, each.name, each.id) for owner, each in attached])


def reattach(owner: UUID, attachments: Sequence[Attachment]) -> Script[None]:
    """What an owner uses from now on, and nothing else. Raises what stands in the way."""
    yield from require(attachments)
    # What it goes on to use must not be gone in between: noted anew before the old notes go.
    kept = _attachments((yield many("list_attachments", ids([owner]))))
    if kept:
        yield from attach([(HOLD, kept)])
        yield many("drop_uses", ids([owner]))
    yield from attach([(owner, attachments)])
    if kept:
        yield many("drop_uses", ids([HOLD]))


HOLD = UUID(int=0)
"""Owns attachments only within a transaction, while they change hands."""


def require(attachments: Sequence[Attachment]) -> Script[None]:
    """Raises AttachmentNotFound or VaultKeyRetired."""
    shared = sorted({each.id for each in attachments if each.sealed is None})
    there = {row["id"] for row in (yield many("hold_attachments", ids(shared)))} if shared else set()
    for each in attachments:
        if each.sealed is None and each.id not in there:
            raise AttachmentNotFound(each.role, each.name)
    yield from _refuse_retired([each.sealed for each in attachments if each.sealed])


def upload(attachment: Attachment) -> Script[None]:
    """Keep an attachment that nobody uses yet; unused it is gone after a day. Raises VaultKeyRetired."""
    assert attachment.sealed is not None
    yield from store_sealed([attachment.sealed])
    yield many("insert_attachments", [(attachment.id, attachment.size, attachment.sha256)])


def uploaded(upload_ids: Sequence[UUID]) -> Script[dict[UUID, tuple[int, str | None]]]:
    """Size and digest of attachments, whoever uses them; unknown ones are left out."""
    return {row["id"]: (row["size"], row["sha256"]) for row in (yield many("hold_attachments", ids(upload_ids)))}


def attachments(owner_ids: Sequence[UUID]) -> Script[dict[UUID, list[Attachment]]]:
    """What these jobs (or schedules) use, by reference."""
    found: dict[UUID, list[Attachment]] = {owner: [] for owner in owner_ids}
    for row in (yield many("list_attachments", ids(owner_ids))):
        found[row["owner_id"]] += _attachments([row])
    return found


def open_attachments(attachment_ids: Sequence[UUID]) -> Script[dict[UUID, Sealed]]:
    return {row["id"]: _sealed(row) for row in (yield many("open_attachments", ids(attachment_ids)))}


def prune_uploads(age: float, limit: int) -> Script[int]:
    return len((yield one("prune_uploads", age=age, limit=limit)))


def _attachments(rows: Sequence[Row]) -> list[Attachment]:
    return [Attachment(**{name: row[name] for name in ("id", "role", "name", "size", "sha256")}) for row in rows]


# Sealed content


def store_sealed(sealed: Sequence[Sealed]) -> Script[None]:
    """Raises VaultKeyRetired."""
    yield from _refuse_retired(sealed)
    yield many("insert_sealed", [_row(each) for each in sealed])


def _refuse_retired(sealed: Sequence[Sealed]) -> Script[None]:
    for key_id in (yield from _retired(sealed)):
        raise VaultKeyRetired(key_id)


def _retired(sealed: Sequence[Sealed | None]) -> Script[set[str]]:
    """Keys that nothing may be sealed with. Whoever retires one waits until those who got it past here are done."""
    asked = sorted({each.key_id for each in sealed if each is not None})
    if not asked:
        return set()
    return set(asked) - {row["key_id"] for row in (yield many("hold_keys", [(key_id,) for key_id in asked]))}


def _row(sealed: Sealed) -> tuple[object, ...]:
    return (sealed.id, sealed.key_id, sealed.wrapped, sealed.data)


def _sealed(row: Row, data: bytes | None = None) -> Sealed:
    return Sealed(
        id=row["id"], key_id=row["key_id"], wrapped=row["wrapped"], data=row["data"] if data is None else data
    )


def bare(job: Submission) -> Submission:
    """The submission with its attachments by reference, as templates keep it."""
    if not job.attachments:
        return job
    return msgspec.structs.replace(job, attachments=tuple(each.bare() for each in job.attachments))
