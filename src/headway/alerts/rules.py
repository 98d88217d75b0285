"""What a rule says, and what follows from it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from headway.model.alerts import Body, Cause, Decision, Happening, RuleDraft, Standing, StoredRule
from headway.model.errors import InvalidRequest
from headway.outgoing.fields import SecretRef, check_url

EXAMPLES = 5
"""Of what has happened, so much is told in full."""
IDLE = timedelta(days=1)
"""After so long without anything new it is forgotten that people were told."""

Seconds = Annotated[float, Meta(ge=0, le=31_536_000)]
Patterns = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...], Meta(max_length=50)]


class Webhook(msgspec.Struct, frozen=True, tag="webhook", tag_field="type", forbid_unknown_fields=True):
    """A POST with JSON; with `sign`, signed as Standard Webhooks has it."""

    url: str | SecretRef
    sign: SecretRef | None = None


class Slack(msgspec.Struct, frozen=True, tag="slack", tag_field="type", forbid_unknown_fields=True):
    """A webhook that takes `{"text": …}`: of Slack, Mattermost and others. Its URL is a secret: best in the vault."""

    url: str | SecretRef


class Email(msgspec.Struct, frozen=True, tag="email", tag_field="type", forbid_unknown_fields=True, kw_only=True):
    """A message by SMTP."""

    host: Annotated[str, Meta(min_length=1, max_length=253)]
    port: Annotated[int, Meta(ge=1, le=65535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: SecretRef | None = None
    sender: Annotated[str, Meta(min_length=3, max_length=320)]
    to: Annotated[list[Annotated[str, Meta(min_length=3, max_length=320)]], Meta(min_length=1, max_length=50)]


Channel = Webhook | Slack | Email


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When to tell whom. Patterns may have `*`; none at all are the same as `*`."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    on: Annotated[Cause, Meta(description="what it is about")]
    channel: Channel
    queues: Patterns = ()
    names: Patterns = ()
    """Of jobs, schedules or workers."""
    due: Annotated[int, Meta(ge=1)] | None = None
    """Backlog: so many due jobs are too many."""
    oldest: Annotated[float, Meta(gt=0)] | None = None
    """Backlog: a job that has been due for so many seconds has waited too long."""
    after: Seconds = 60.0
    """What holds must hold for so long."""
    cooldown: Seconds = 300.0
    """Seconds between two messages about the same; what happens meanwhile is counted and told then."""
    enabled: bool = True

    def __post_init__(self) -> None:
        backlog = self.on is Cause.QUEUE_BACKLOG
        if backlog and self.due is None and self.oldest is None:
            raise ValueError("a rule on queue_backlog needs `due` (jobs) or `oldest` (seconds)")
        if not backlog and (self.due is not None or self.oldest is not None):
            raise ValueError("`due` and `oldest` are for rules on queue_backlog")

    def concerns(self, name: str, queue: str | None) -> bool:
        return _matches(self.names, name) and (queue is None or _matches(self.queues, queue))


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that holds now, of one queue."""

    cause: Cause
    queue: str
    due: int = 0
    oldest: float = 0.0

    def breaks(self, rule: Rule) -> bool:
        """Whether it is what the rule is about."""
        if rule.on is not self.cause or not rule.concerns(self.queue, self.queue):
            return False
        if self.cause is not Cause.QUEUE_BACKLOG:
            return True
        return (rule.due is not None and self.due >= rule.due) or (
            rule.oldest is not None and self.oldest >= rule.oldest
        )


def read_rule(data: Any) -> Rule:
    """A rule as people write it. Raises InvalidRequest, which names the field."""
    try:
        rule = msgspec.convert(data, Rule)
    except msgspec.ValidationError as error:
        words, _, place = str(error).partition(" - at `$")
        raise InvalidRequest(words.replace("`", "'"), field=place.strip("`.") or None) from None
    channel = rule.channel
    if isinstance(channel, Email):
        if re.search(r"[\r\n]", "".join([channel.sender, *channel.to])) or not all(
            "@" in address for address in (channel.sender, *channel.to)
        ):
            raise InvalidRequest("'sender' and 'to' must be addresses, such as ops@example.com", field="channel.to")
    elif isinstance(channel.url, str):
        check_url(channel.url, "channel.url")
    return rule


def stored(rule: StoredRule) -> Rule:
    return msgspec.json.decode(rule.record, type=Rule)


def draft_of(rule_id: UUID, rule: Rule) -> RuleDraft:
    """The rule as it is to be kept."""
    record = msgspec.json.encode(rule).decode()
    return RuleDraft(id=rule_id, name=rule.name, cause=rule.on, enabled=rule.enabled, record=record)


class Judge:
    """Decides what follows from what has happened, by the rules there are and what holds now."""

    def __init__(self, rules: Sequence[tuple[UUID, Rule]], holding: Sequence[Holding]) -> None:
        self._rules = [(rule_id, rule) for rule_id, rule in rules if rule.enabled]
        self._holding = holding

    def __call__(self, happened: Sequence[Happening], standings: Sequence[Standing], now: datetime) -> Decision:
        known = {(standing.rule_id, standing.subject): standing for standing in standings}
        after: dict[tuple[UUID, str], Standing] = {}
        send: list[tuple[UUID, Body]] = []
        for rule_id, rule in self._rules:
            mine = {subject: standing for (owner, subject), standing in known.items() if owner == rule_id}
            ask = _happened if rule.on in _HAPPENS else self._held
            for standing, body in ask(rule_id, rule, mine, happened, now):
                after[rule_id, standing.subject] = standing
                if body is not None:
                    send.append((rule_id, body))
        idle = [standing for key, standing in {**known, **after}.items() if _idle(standing, now)]
        changed = [standing for key, standing in after.items() if standing != known.get(key) and standing not in idle]
        return Decision(changed, idle, send)

    def _held(
        self, rule_id: UUID, rule: Rule, known: dict[str, Standing], _happened: Sequence[Happening], now: datetime
    ) -> Iterable[tuple[Standing, Body | None]]:
        holding = {found.queue: found for found in self._holding if found.breaks(rule)}
        for queue in sorted({*holding, *known}):
            standing = known.get(queue) or Standing(rule_id=rule_id, subject=queue)
            found = holding.get(queue)
            if found is None:
                over = msgspec.structs.replace(standing, since=None, firing=False)
                yield over, _resolved(rule, standing, now) if standing.firing else None
                continue
            since = standing.since or now
            standing = msgspec.structs.replace(standing, since=since)
            if not standing.firing and (now - since).total_seconds() >= rule.after and _cool(rule, standing, now):
                yield msgspec.structs.replace(standing, firing=True, told=now), _firing(rule, found, since, now)
            else:
                yield standing, None


_HAPPENS = frozenset({Cause.JOB_FAILED, Cause.SCHEDULE_MISSED, Cause.WORKER_LOST})


def _happened(
    rule_id: UUID, rule: Rule, known: dict[str, Standing], happened: Sequence[Happening], now: datetime
) -> Iterable[tuple[Standing, Body | None]]:
    news: dict[str, list[Happening]] = {}
    for one in happened:
        if one.event == rule.on and rule.concerns(one.name, one.queue):
            # A worker is lost once; of jobs and schedules those of one name belong together.
            news.setdefault(one.subject if rule.on is Cause.WORKER_LOST else one.name, []).append(one)
    for subject in sorted({*news, *known}):
        standing = known.get(subject) or Standing(rule_id=rule_id, subject=subject)
        if rule.on is Cause.WORKER_LOST and standing.told is not None:
            yield standing, None
            continue
        new = news.get(subject, [])
        examples = (*standing.examples, *new)[:EXAMPLES]
        standing = msgspec.structs.replace(standing, pending=standing.pending + len(new), examples=examples)
        if standing.pending and _cool(rule, standing, now):
            yield msgspec.structs.replace(standing, pending=0, told=now, examples=()), _told(rule, standing, now)
        else:
            yield standing, None


def _cool(rule: Rule, standing: Standing, now: datetime) -> bool:
    return standing.told is None or (now - standing.told).total_seconds() >= rule.cooldown


def _idle(standing: Standing, now: datetime) -> bool:
    """Nothing holds and nothing is left to tell: kept only as long as it says when people were told."""
    busy = standing.since is not None or standing.firing or standing.pending
    return not busy and (standing.told is None or now - standing.told >= IDLE)


def _told(rule: Rule, standing: Standing, now: datetime) -> Body:
    first, count = standing.examples[0], standing.pending
    times = "" if count == 1 else f" {count} times"
    match rule.on:
        case Cause.JOB_FAILED:
            summary = f"job {first.name} in queue {first.queue} failed{times}: {_error(first.detail)}"
        case Cause.SCHEDULE_MISSED:
            summary = f"schedule {first.name} missed its time{times}: {first.detail}"
        case _:
            summary = f"worker {first.name} is lost: it gives no sign of life"
    details = [_detail(one) for one in standing.examples]
    return Body(
        rule=rule.name, on=rule.on, state="happened", subject=first.name, summary=summary, count=count, at=now,
        details=details,
    )  # fmt: skip


def _firing(rule: Rule, found: Holding, since: datetime, now: datetime) -> Body:
    if found.cause is Cause.QUEUE_UNSERVED:
        summary = f"queue {found.queue} has {found.due} due jobs and no worker"
    else:
        summary = f"queue {found.queue} has {found.due} due jobs, the oldest waits for {found.oldest:.0f} s"
    detail = {"due": found.due, "oldest_due": found.oldest, "since": since.isoformat()}
    return Body(
        rule=rule.name, on=rule.on, state="firing", subject=found.queue, summary=summary, at=now, details=[detail]
    )


def _resolved(rule: Rule, standing: Standing, now: datetime) -> Body:
    what = "is served again, or empty" if rule.on is Cause.QUEUE_UNSERVED else "has caught up"
    return Body(
        rule=rule.name, on=rule.on, state="resolved", subject=standing.subject, at=now,
        summary=f"queue {standing.subject} {what}",
    )  # fmt: skip


def _detail(one: Happening) -> dict[str, Any]:
    told: dict[str, Any] = {"id": _id(one), "name": one.name, "at": one.at.isoformat()}
    if one.queue is not None:
        told["queue"] = one.queue
    if one.detail is not None:
        told["detail"] = _error(one.detail) if one.event == Cause.JOB_FAILED else one.detail
    return told


def _id(one: Happening) -> str:
    try:
        return str(UUID(one.subject))
    except ValueError:
        return one.subject


def _error(detail: str | None) -> str:
    """The error's own words, without its traceback."""
    if detail is None:
        return "no error was recorded"
    try:
        error = msgspec.json.decode(detail)
        return f"{error['type']}: {error['message']}"[:500]
    except (msgspec.DecodeError, KeyError, TypeError):
        return detail[:500]


def _matches(patterns: Sequence[str], name: str) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
