"""Schedules that code declares: made, brought up to date, and paused when they have vanished from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headway.model.errors import InvalidSchedule
from headway.model.schedule import Schedule, from_body, to_body
from headway.store.scripts.schedules import Draft, as_text, create, hold, put, put_changed, readable
from headway.store.statements import Row, Script, one

VANISHED = "no longer declared in the code"
"""How the reason begins for which a schedule is paused that its app has ceased to declare."""
_WHEN = ("schedule", "timezone", "gap", "fold")
"""Fields that mean something together only."""


def declare(drafts: Sequence[Draft], source: str, code_version: str | None) -> Script[list[str]]:
    """The schedules of an app's code: made, brought up to date, and those that have vanished from it paused. What
    operators changed stays as they left it, and older code changes nothing that newer code has said. Returns what
    was left alone, as sentences."""
    yield from hold(f"schedules of {source}")
    known = {row["name"]: row for row in (yield one("declared_schedules", source=source))}
    notes: list[str] = []
    for draft in sorted(drafts, key=lambda draft: draft.schedule.name):
        note = yield from _declare(known.get(draft.schedule.name), draft, source)
        notes += [note] if note else []
    declared = {draft.schedule.name for draft in drafts}
    for name, row in known.items():
        if name not in declared:
            yield from _pause_vanished(row, source, code_version)
    return notes


def _declare(row: Row | None, draft: Draft, source: str) -> Script[str | None]:
    name, ours = draft.schedule.name, draft.schedule.code_version
    if row is None:
        other = yield one("lock_schedule", id=None, name=name)
        if other:
            owner = other[0]["source"] or "a person"
            return f"schedule {name!r} belongs to {owner} and is left as it is: delete it to let this app keep it"
        try:
            yield from create(draft, by=source, source=source)
        except InvalidSchedule as error:
            return f"schedule {name!r} is not stored: {error}"
        return None
    stored = readable(row)
    if stored is None:
        yield from put(row, draft, by=source, declared=as_text(to_body(draft.schedule)))
    elif newer(stored.code_version, ours):
        return f"schedule {name!r} was declared by newer code ({stored.code_version}) and is left as it is"
    else:
        try:
            yield from _merge(row, stored, draft, by=source)
        except InvalidSchedule as error:
            return f"schedule {name!r} is left as it is: what the code says doesn't fit what operators changed: {error}"
    return None


def _merge(row: Row, stored: Schedule, draft: Draft, *, by: str) -> Script[None]:
    """Take over what the code says now wherever an operator hasn't said otherwise."""
    said, before, current = _plain(to_body(draft.schedule)), _json(row["declared"]), _plain(to_body(stored))
    edited = _edited(current, before)
    if stored.paused and (stored.pause_reason or "").startswith(VANISHED):
        edited -= {"paused", "pause_reason"}
    body = {name: value for name, value in said.items() if name not in edited}
    body |= {name: value for name, value in current.items() if name in edited}
    merged = from_body(
        body,
        id=stored.id,
        created_at=stored.created_at,
        origin=stored.origin,
        code_version=draft.schedule.code_version,
    )
    template = row["template"] if "job" in edited else draft.template_text()
    if (merged, said, template) != (stored, before, row["template"]):
        wanted = Draft(schedule=merged, template=msgspec.json.decode(template, type=type(draft.template)))
        yield from put(row, wanted, by=by, declared=as_text(said))


def _edited(current: Mapping[str, Any], before: Mapping[str, Any]) -> set[str]:
    """What an operator has changed since the code last said it."""
    names = {name for name in {*current, *before} if current.get(name) != before.get(name)}
    return names.union(_WHEN) if names.intersection(_WHEN) else names


def _pause_vanished(row: Row, source: str, code_version: str | None) -> Script[None]:
    stored = readable(row)
    if stored is not None and not stored.paused and not newer(stored.code_version, code_version):
        yield from put_changed(row, by=source, paused=True, pause_reason=f"{VANISHED} of {source}")


def newer(stored: str | None, ours: str | None) -> bool:
    """Whether the stored version is later than ours, numbers being compared as numbers. Without both: no."""
    return bool(stored and ours) and _order(stored or "") > _order(ours or "")


def _order(version: str) -> list[tuple[int, int, str]]:
    parts = re.findall(r"\d+|[^\W\d_]+", version)
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON holds it: what is compared with what was stored."""
    return _json(as_text(body))


def _json(text: str | None) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
