"""The duty: one process at a time asks the rules what follows from what has happened, and delivers the messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from uuid_utils.compat import uuid7

from headway.alerts.courier import Courier
from headway.alerts.rules import Holding, Judge, Rule, stored
from headway.clock import Clock, sleep
from headway.model.alerts import Body, Cause, Happening, Notification
from headway.model.errors import NotFound, StoreUnavailable
from headway.model.overview import QueueStats, WorkerStats
from headway.observe.logs import get_logger
from headway.store.contract import Store

EVERY = 5.0
TERM = 15.0
"""Seconds for which one process is the one that tells."""
FIRST_WAIT = 10.0
LONGEST_WAIT = 3600.0
TRIES = 14
"""After so many tries, which is about eight hours, a message is given up; it stays to be seen."""

T = TypeVar("T")
Reach = Callable[[Callable[[Store], Awaitable[T]]], Awaitable[T]]

log = get_logger("headway.alerts")


class Watch:
    """Tells people of one store, in the name of one process."""

    def __init__(self, call: Reach[object], courier: Courier, clock: Clock, holder: UUID | None = None) -> None:
        self._call = call
        self._courier = courier
        self._clock = clock
        self._holder = holder or uuid7()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self.run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._courier.close()

    async def run(self) -> None:
        while True:
            try:
                await self._call(self.turn)
            except StoreUnavailable as error:
                log.warning("alerts.delayed", error=str(error))
            except Exception:
                # Whatever it was, the next turn may go better, and nothing else depends on it.
                log.exception("alerts.failed")
            await sleep(self._clock, EVERY)

    async def turn(self, store: Store) -> int:
        """One look; how many messages were delivered."""
        if not await store.take_duty("alerts", self._holder, TERM):
            return 0
        rules = [(rule.id, stored(rule)) for rule in await store.alert_rules()]
        if not rules:
            return 0
        queues, workers = await store.queue_stats(), await store.worker_stats()
        judge, lost = Judge(rules, holding(queues)), silent(workers, await store.now())
        await store.judge_alerts(lambda happened, standings, now: judge([*happened, *lost], standings, now))
        return await self._deliver(store, dict(rules))

    async def _deliver(self, store: Store, rules: dict[UUID, Rule]) -> int:
        due = await store.due_notifications()
        taken = await asyncio.gather(*(attempt(store, self._courier, rules.get(one.rule_id), one) for one in due))
        return sum(error is None for error in taken)


async def attempt(store: Store, courier: Courier, rule: Rule | None, message: Notification) -> str | None:
    """Try to deliver one, and write down what came of it; the error, if any."""
    if rule is None:
        return "its rule is gone"
    error = await courier.deliver(rule, message)
    wait = None if error is None or message.attempts + 1 >= TRIES else _wait(message.attempts)
    await store.note_delivery(message.id, error=error, wait=wait)
    if error is not None:
        log.warning(
            "alerts.refused", rule=rule.name, notification=str(message.id), tries=message.attempts + 1, error=error
        )
    return error


async def try_rule(store: Store, courier: Courier, rule_id: UUID, new_id: UUID) -> Notification:
    """Send a message that says it is a test, now, and tell what came of it. It is not tried again."""
    found = await store.alert_rules(rule_id)
    if not found:
        raise NotFound(f"there is no alert rule {rule_id}: see `headway alerts list`")
    rule, now = stored(found[0]), await store.now()
    summary = f"this is a test of the rule {rule.name}: if you can read it, messages arrive"
    body = Body(rule=rule.name, on=rule.on, state="test", subject=rule.name, summary=summary, at=now)
    message = Notification(id=new_id, rule_id=rule_id, body=body, created_at=now, attempts=TRIES)
    await store.add_notification(new_id, rule_id, body)
    await attempt(store, courier, rule, message)
    return next(one for one in await store.notifications(rule_id) if one.id == new_id)


def holding(queues: Sequence[QueueStats]) -> list[Holding]:
    """What holds of queues now."""
    backlog = [
        Holding(cause=Cause.QUEUE_BACKLOG, queue=queue.name, due=queue.due, oldest=queue.oldest_due or 0.0)
        for queue in queues
        if queue.due
    ]
    unserved = [
        Holding(cause=Cause.QUEUE_UNSERVED, queue=queue.name, due=queue.due, oldest=queue.oldest_due or 0.0)
        for queue in queues
        if queue.due and not queue.workers and queue.pause is None
    ]
    return backlog + unserved


def silent(workers: Sequence[WorkerStats], now: datetime) -> list[Happening]:
    """Workers that give no sign of life; those whose rows are removed are written down by whoever removes them."""
    return [
        Happening(event=Cause.WORKER_LOST.value, subject=str(worker.info.id), at=now, name=worker.info.name)
        for worker in workers
        if not worker.alive
    ]


def _wait(attempts: int) -> float:
    return min(FIRST_WAIT * 2.0**attempts, LONGEST_WAIT)
