"""Rules for telling people that something is wrong, and the messages that went out. For administrators: a rule says
where messages go, and that may be a secret."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.responses import Response
from uuid_utils.compat import uuid7

from headway.alerts.making import make_courier
from headway.alerts.rules import Channel, draft_of, read_rule
from headway.alerts.rules import stored as read_stored
from headway.alerts.watch import try_rule
from headway.api.call import Call, answer, nothing
from headway.api.table import Answer, Body, Route
from headway.model.access import Permission
from headway.model.alerts import Notification, StoredRule
from headway.model.errors import NotFound


class RuleShape(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, as it is kept."""

    id: UUID
    name: str
    on: str
    channel: Channel
    queues: tuple[str, ...]
    names: tuple[str, ...]
    due: int | None
    oldest: float | None
    after: float
    cooldown: float
    enabled: bool
    version: int
    changed_at: datetime
    changed_by: str | None


class RulePage(msgspec.Struct, frozen=True):
    """All rules, by name."""

    items: list[RuleShape]
    cursor: None = None


class MessagePage(msgspec.Struct, frozen=True):
    """The latest messages of a rule."""

    items: list[Notification]
    cursor: None = None


class MessageQuery(msgspec.Struct, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=500, description="how many at most")] = 50


async def list_rules(call: Call) -> Response:
    return answer(RulePage([rule_shape(rule) for rule in await call.store(lambda store: store.alert_rules())]))


async def show_rule(call: Call) -> Response:
    return answer(rule_shape(await _rule(call)))


async def create_rule(call: Call) -> Response:
    made = await _put(call, uuid7())
    return answer(rule_shape(made), 201, {"Location": f"/api/v1/alerts/{made.id}"})


async def replace_rule(call: Call) -> Response:
    return answer(rule_shape(await _put(call, (await _rule(call)).id)))


async def delete_rule(call: Call) -> Response:
    rule_id = _id(call)
    await call.store(lambda store: store.drop_alert_rule(rule_id))
    return nothing()


async def try_out(call: Call) -> Response:
    rule_id, new_id, service = _id(call), uuid7(), call.service
    courier = make_courier((service.app.url, service.app.bus), service.app.vault, service.clock)
    try:
        sent = await call.store(lambda store: try_rule(store, courier, rule_id, new_id))
    finally:
        await courier.close()
    return answer(sent)


async def messages(call: Call) -> Response:
    rule = await _rule(call)
    return answer(MessagePage(await call.store(lambda store: store.notifications(rule.id, call.query.limit))))


async def _put(call: Call, rule_id: UUID) -> StoredRule:
    draft = draft_of(rule_id, read_rule(call.body))
    return await call.store(lambda store: store.put_alert_rule(draft, by=call.by))


async def _rule(call: Call) -> StoredRule:
    rule_id = _id(call)
    found = await call.store(lambda store: store.alert_rules(rule_id))
    if not found:
        raise _unknown(str(rule_id))
    return found[0]


def _id(call: Call) -> UUID:
    text = call.path("rule_id")
    try:
        return UUID(text)
    except ValueError:
        raise _unknown(text) from None


def _unknown(named: str) -> NotFound:
    return NotFound(f"there is no alert rule {named}: see GET /api/v1/alerts")


def rule_shape(kept: StoredRule) -> RuleShape:
    rule = read_stored(kept)
    return RuleShape(
        id=kept.id,
        name=rule.name,
        on=rule.on,
        channel=rule.channel,
        queues=rule.queues,
        names=rule.names,
        due=rule.due,
        oldest=rule.oldest,
        after=rule.after,
        cooldown=rule.cooldown,
        enabled=rule.enabled,
        version=kept.version,
        changed_at=kept.changed_at,
        changed_by=kept.changed_by,
    )


_BODIES: dict[str, Any] = {
    "job failures to a signed webhook": {
        "name": "failures",
        "on": "job_failed",
        "queues": ["mail"],
        "channel": {"type": "webhook", "url": "https://ops.example.com/alerts", "sign": {"secret": "alerts-key"}},
    },
    "a backlog to Slack": {
        "name": "backlog",
        "on": "queue_backlog",
        "due": 1000,
        "oldest": 300,
        "channel": {"type": "slack", "url": {"secret": "slack-url"}},
    },
    "a lost worker by mail": {
        "name": "workers",
        "on": "worker_lost",
        "channel": {
            "type": "email",
            "host": "smtp.example.com",
            "user": "headway",
            "password": {"secret": "smtp-password"},
            "sender": "headway@example.com",
            "to": ["ops@example.com"],
        },
    },
}
_ID = "0199c5e2-7a1b-7c3d-9e4f-0123456789ab"
_RULE: dict[str, Any] = {
    "id": _ID,
    "name": "failures",
    "on": "job_failed",
    "channel": {"type": "slack", "url": {"secret": "slack-url"}},
    "queues": ["mail"],
    "names": [],
    "due": None,
    "oldest": None,
    "after": 60.0,
    "cooldown": 300.0,
    "enabled": True,
    "version": 1,
    "changed_at": "2030-01-31T06:00:00Z",
    "changed_by": "user:ann",
}
_MESSAGE: dict[str, Any] = {
    "id": _ID,
    "rule_id": _ID,
    "body": {
        "rule": "failures",
        "on": "job_failed",
        "state": "happened",
        "subject": "mail.send",
        "summary": "job mail.send in queue mail failed: ValueError: no address",
        "count": 1,
        "at": "2030-01-31T06:00:00Z",
        "details": [],
    },
    "created_at": "2030-01-31T06:00:00Z",
    "due_at": None,
    "attempts": 1,
    "delivered_at": "2030-01-31T06:00:01Z",
    "error": None,
}
_TAKES = Body(schema={"type": "object"}, examples=_BODIES)
_ANSWERS = [Answer(form=RuleShape, words="The rule.", example=_RULE)]


def _route(method: str, path: str, handler: Any, summary: str, **more: Any) -> Route:
    return Route(
        method=method,
        path=f"/alerts{path}",
        handler=handler,
        permission=Permission.ADMINISTER,
        summary=summary,
        tag="Alerts",
        **more,
    )


ROUTES = [
    _route(
        "GET",
        "",
        list_rules,
        "List the rules for telling people",
        answers=[Answer(form=RulePage, words="All rules.", example={"items": [_RULE], "cursor": None})],
    ),
    _route(
        "POST",
        "",
        create_rule,
        "Make a rule",
        body=_TAKES,
        answers=[Answer(status=201, form=RuleShape, words="The new rule.", example=_RULE)],
        problems=[409],
    ),
    _route("GET", "/{rule_id}", show_rule, "Look at a rule", answers=_ANSWERS),
    _route("PUT", "/{rule_id}", replace_rule, "Replace a rule", body=_TAKES, answers=_ANSWERS, problems=[409]),
    _route("DELETE", "/{rule_id}", delete_rule, "Delete a rule", answers=[Answer(status=204, words="It is gone.")]),
    _route(
        "POST",
        "/{rule_id}/test",
        try_out,
        "Send a message that says it is a test",
        description="Delivered at once, and not tried again; `error` says why it was not.",
        answers=[Answer(form=Notification, words="What came of it.", example=_MESSAGE)],
    ),
    _route(
        "GET",
        "/{rule_id}/messages",
        messages,
        "The messages of a rule, delivered and not, newest first",
        query=MessageQuery,
        answers=[Answer(form=MessagePage, words="The messages.", example={"items": [_MESSAGE], "cursor": None})],
    ),
]
