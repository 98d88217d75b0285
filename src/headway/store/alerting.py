"""The part of a store over SQL that keeps rules for telling people: `Alerts` of the contract, by scripts."""

from __future__ import annotations

from uuid import UUID

from uuid_utils.compat import uuid7

from headway.model.alerts import Body, Notification, RuleDraft, StoredRule
from headway.store.driver import Driver, Lane
from headway.store.scripts import alerts
from headway.store.scripts.alerts import Decide


class SqlAlerts:
    """Alerts through a driver."""

    _driver: Driver

    async def put_alert_rule(self, draft: RuleDraft, *, by: str | None) -> StoredRule:
        return await self._driver.run(lambda: alerts.put_rule(draft, by), Lane.KEYED)

    async def alert_rules(self, rule_id: UUID | None = None) -> list[StoredRule]:
        return await self._driver.run(lambda: alerts.rules(rule_id), Lane.READ, single=True)

    async def drop_alert_rule(self, rule_id: UUID) -> None:
        await self._driver.run(lambda: alerts.drop_rule(rule_id), Lane.KEYED)

    async def judge_alerts(self, decide: Decide) -> int:
        return await self._driver.run(lambda: alerts.judge(decide, uuid7), Lane.KEYED)

    async def add_notification(self, notification_id: UUID, rule_id: UUID, body: Body) -> None:
        await self._driver.run(lambda: alerts.add_notification(notification_id, rule_id, body), Lane.KEYED)

    async def due_notifications(self, limit: int = 50) -> list[Notification]:
        return await self._driver.run(lambda: alerts.due(limit), Lane.READ, single=True)

    async def note_delivery(self, notification_id: UUID, *, error: str | None, wait: float | None) -> None:
        await self._driver.run(lambda: alerts.note_delivery(notification_id, error, wait), Lane.KEYED, single=True)

    async def notifications(self, rule_id: UUID, limit: int = 50) -> list[Notification]:
        return await self._driver.run(lambda: alerts.notifications(rule_id, limit), Lane.READ, single=True)
