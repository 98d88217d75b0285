"""ALERTS: rules, what has happened, how rules stand with it, and messages on their way. What follows from what is
decided by whoever runs the duty, within the transaction that takes what has happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from headway.model.alerts import Body, Decision, Happening, Notification, RuleDraft, Standing, StoredRule
from headway.model.errors import NameTaken, NotFound
from headway.store.scripts.overview import store_time
from headway.store.statements import Row, Script, many, one

AT_ONCE = 1000
KEPT = timedelta(days=30)
"""For how long messages are shown that are delivered or given up."""

Decide = Callable[[Sequence[Happening], Sequence[Standing], datetime], Decision]

_body = msgspec.json.Decoder(Body).decode
_examples = msgspec.json.Decoder(tuple[Happening, ...]).decode


def note(happenings: Sequence[tuple[str, str, int, str, str | None, str | None]]) -> Script[None]:
    """Write down what rules may be about: event, subject, number, name, queue, detail."""
    if happenings:
        yield many("note_alerts", happenings)


def note_failed(job_ids: Sequence[UUID]) -> Script[None]:
    """These jobs have failed for good."""
    if job_ids:
        yield many("note_failures", [(job_id,) for job_id in job_ids])


def put_rule(draft: RuleDraft, by: str | None) -> Script[StoredRule]:
    """Make a rule, or replace the one with its id."""
    taken = yield one("alert_rule_named", name=draft.name)
    if taken and taken[0]["id"] != draft.id:
        raise NameTaken(draft.name, "alert rule")
    [row] = yield one(
        "put_alert_rule",
        id=draft.id,
        name=draft.name,
        event=draft.cause.value,
        enabled=draft.enabled,
        record=draft.record,
        by=by,
    )
    return _rule(row)


def rules(rule_id: UUID | None) -> Script[list[StoredRule]]:
    return [_rule(row) for row in (yield one("alert_rules", id=rule_id))]


def drop_rule(rule_id: UUID) -> Script[None]:
    yield one("drop_alerts_of", id=rule_id)
    yield one("drop_notifications_of", id=rule_id)
    if not (yield one("drop_alert_rule", id=rule_id)):
        raise NotFound(f"there is no alert rule {rule_id}: see `headway alerts list`")


def judge(decide: Decide, ids: Callable[[], UUID]) -> Script[int]:
    """Take what has happened, decide what follows, and write it down; how many messages are to be sent."""
    now = yield from store_time()
    standings = [_standing(row) for row in (yield one("alerts"))]
    happened = [_happening(row) for row in (yield one("take_alert_events", limit=AT_ONCE))]
    happened.sort(key=lambda one: (one.at, one.subject, one.number))
    decided = decide(happened, standings, now)
    if decided.standings:
        yield many("put_alerts", [_alert(standing) for standing in decided.standings])
    if decided.forget:
        yield many("drop_alerts", [(standing.rule_id, standing.subject) for standing in decided.forget])
    if decided.send:
        yield many("add_notifications", [(ids(), rule_id, _json(body)) for rule_id, body in decided.send])
    yield one("drop_old_notifications", until_at=now - KEPT)
    return len(decided.send)


def add_notification(notification_id: UUID, rule_id: UUID, body: Body) -> Script[None]:
    yield many("add_notifications", [(notification_id, rule_id, _json(body))])


def due(limit: int) -> Script[list[Notification]]:
    return [_notification(row) for row in (yield one("due_notifications", limit=limit))]


def note_delivery(notification_id: UUID, error: str | None, wait: float | None) -> Script[None]:
    yield one("note_delivery", id=notification_id, error=error, wait=wait)


def notifications(rule_id: UUID, limit: int) -> Script[list[Notification]]:
    return [_notification(row) for row in (yield one("notifications", id=rule_id, limit=limit))]


def _rule(row: Row) -> StoredRule:
    record = row["record"]
    return StoredRule(
        id=row["id"],
        record=record.encode() if isinstance(record, str) else record,
        version=row["version"],
        changed_at=row["changed_at"],
        changed_by=row["changed_by"],
    )


def _happening(row: Row) -> Happening:
    return Happening(
        event=row["event"],
        subject=row["subject"],
        number=row["number"],
        at=row["happened_at"],
        name=row["name"],
        queue=row["queue"],
        detail=row["detail"],
    )


def _standing(row: Row) -> Standing:
    return Standing(
        rule_id=row["rule_id"],
        subject=row["subject"],
        since=row["since_at"],
        told=row["told_at"],
        firing=bool(row["firing"]),
        pending=row["pending"],
        examples=_examples(row["detail"]) if row["detail"] else (),
    )


def _alert(of: Standing) -> tuple[object, ...]:
    examples = _json(of.examples) if of.examples else None
    return (of.rule_id, of.subject, of.since, of.told, of.firing, of.pending, examples)


def _notification(row: Row) -> Notification:
    return Notification(
        id=row["id"],
        rule_id=row["rule_id"],
        body=_body(row["body"]),
        created_at=row["created_at"],
        due_at=row["due_at"],
        attempts=row["attempts"],
        delivered_at=row["delivered_at"],
        error=row["error"],
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
