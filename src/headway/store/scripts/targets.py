"""Targets kept: made, changed, given a credential, trusted, removed. A credential stays only with host and port."""

from __future__ import annotations

from uuid import UUID

import msgspec

from headway.model.errors import NameTaken, TargetInUse, TargetNotFound, VersionConflict
from headway.model.job import OUTLIVING, encode
from headway.model.sealed import Sealed
from headway.model.target import Target, TargetRecord
from headway.store.scripts.vault import store_sealed
from headway.store.statements import Row, Script, one


class Key(msgspec.Struct, frozen=True):
    """What a target is opened with from now on; None takes it away."""

    sealed: Sealed | None
    form: str | None = None


KEEP = Key(None, "keep")
"""The credential that is there stays, if host and port do."""
NAMED = 3
"""Jobs of which a refusal tells."""


def create(target: Target, key: Key, *, by: str | None) -> Script[TargetRecord]:
    """Raises NameTaken, VaultKeyRetired."""
    made = yield one("insert_target", id=target.id, name=target.name, record=encode(target), by=by)
    if not made and not _is(target, (yield from _rows(target.id))):
        raise NameTaken(target.name, "target")
    if key.sealed is not None:
        yield from _put(target, key, by=by)
    return (yield from get(target.id))


def change(target: Target, key: Key, version: int | None, *, by: str | None) -> Script[TargetRecord]:
    """Another form of a target. With another host or port the credential is gone, unless a new one comes along, and so
    is the host key that was trusted there, unless it is given with it. Raises TargetNotFound, VersionConflict,
    NameTaken, TargetInUse, VaultKeyRetired."""
    row = yield from _lock(target.id)
    if version is not None and version != row["version"]:
        raise VersionConflict(row["name"], row["version"], what="target")
    if target.name != row["name"]:
        if (yield from _rows(target.name)):
            raise NameTaken(target.name, "target")
        yield from _spare(row["name"])
    before = read(row)
    if key is KEEP:
        stays = before.address == target.address and before.kind is target.kind
        key = Key(None, row["credential"] if stays else None)
    if before.address != target.address and before.host_key == target.host_key:
        target = msgspec.structs.replace(target, host_key=None)
    yield from _put(target, key, by=by, stays=row["sealed_id"] if key.sealed is None and key.form else None)
    return (yield from get(target.id))


def get(named: UUID | str) -> Script[TargetRecord]:
    """By id or by name. Raises TargetNotFound."""
    return record((yield from _one(named)))


def open_target(named: UUID | str) -> Script[tuple[TargetRecord, Sealed | None]]:
    """A target with its credential, sealed. Raises TargetNotFound."""
    row = yield from _one(named)
    sealed = None
    if row["sealed_id"] is not None:
        sealed = Sealed(id=row["sealed_id"], key_id=row["key_id"], wrapped=row["wrapped"], data=row["data"])
    return record(row), sealed


def find(after_name: str, limit: int) -> Script[list[TargetRecord]]:
    return [record(row) for row in (yield one("find_targets", after_name=after_name, limit=limit))]


def delete(target_id: UUID, *, force: bool) -> Script[None]:
    """With its credential. Raises TargetNotFound, TargetInUse."""
    row = yield from _lock(target_id)
    if not force:
        yield from _spare(row["name"])
    yield one("delete_target", id=target_id)


def read(row: Row) -> Target:
    return msgspec.json.decode(row["record"], type=Target)


def record(row: Row) -> TargetRecord:
    told = {name: row[name] for name in ("credential", "version", "created_at", "updated_at", "updated_by")}
    return TargetRecord(target=read(row), **told)


def _put(target: Target, key: Key, *, by: str | None, stays: UUID | None = None) -> Script[None]:
    if key.sealed is not None:
        yield from store_sealed([key.sealed])
    yield one(
        "update_target",
        id=target.id,
        name=target.name,
        record=encode(target),
        sealed_id=stays if key.sealed is None else key.sealed.id,
        credential=key.form,
        by=by,
    )


def _lock(target_id: UUID) -> Script[Row]:
    rows = yield one("lock_target", id=target_id, name=None)
    if not rows:
        raise TargetNotFound(target_id)
    return rows[0]


def _spare(name: str) -> Script[None]:
    """Only under its name is what was begun there found again, and seen to end."""
    rows = yield one("jobs_of_target", name=name, kind=OUTLIVING, limit=NAMED + 1)
    if rows:
        raise TargetInUse(name, [row["id"] for row in rows[:NAMED]], more=len(rows) > NAMED)


def _one(named: UUID | str) -> Script[Row]:
    rows = yield from _rows(named)
    if not rows:
        raise TargetNotFound(named)
    return rows[0]


def _rows(named: UUID | str) -> Script[list[Row]]:
    by_id = isinstance(named, UUID)
    return (yield one("get_target", id=named if by_id else None, name=None if by_id else named))


def _is(target: Target, rows: list[Row]) -> bool:
    """A repeat of what was stored before, after a commit of unknown outcome."""
    return bool(rows) and read(rows[0]) == target
