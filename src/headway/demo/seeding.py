"""Fills a store with what the shop of `scene.py` has been up to: a past to draw, jobs in every state, schedules."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from headway.app import Headway
from headway.demo.scene import QUEUES, furnish
from headway.demo.warehouse import Warehouse
from headway.functions import Call
from headway.model.errors import HeadwayError
from headway.model.history import MINUTE, Figures, Row, Spread, floor
from headway.model.when import Cron, Every, cron, every
from headway.schedules import ScheduleOptions
from headway.serve import AppWorker
from headway.store.contract import Store

PAST_MINUTES = 24 * 60
TAG = "demo"


class Shop:
    """The shop of the demo in this process, once it is open."""

    def __init__(self, app: Headway, worker: AppWorker) -> None:
        self._app = app
        self._worker = worker
        self._warehouse: Warehouse | None = None

    async def seed(self) -> None:
        """The whole scene. A second time it adds jobs again, nothing else."""
        app, warehouse = self._app, await self._open()
        await app.client.call(_draw_past)
        await _plan(app)
        await _trade(app, warehouse.url)
        await _submit(app)
        for name in TRADE:
            await app.arun_schedule(name)

    async def reopen(self) -> None:
        """Serve a store that was seeded before: its schedules still make jobs for the shop."""
        if await self._app.aschedules(tag=TAG):
            warehouse = await self._open()
            await _trade(self._app, warehouse.url)

    def close(self) -> None:
        if self._warehouse is not None:
            self._warehouse.close()

    async def _open(self) -> Warehouse:
        """Let this process run the shop's functions, and reach its warehouse."""
        if self._warehouse is None:
            self._warehouse = Warehouse()
            self._worker.near.add(self._warehouse.endpoint)
        furnish(self._app)
        await self._app.client.call(lambda store: store.announce(self._app.registry.infos()))
        assert self._worker.worker is not None
        for queue in QUEUES:
            self._worker.worker.start_queue(queue)
        return self._warehouse


async def _draw_past(store: Store) -> None:
    """Figures of the last day, once for each store: charts that begin empty say nothing."""
    now = floor(await store.now(), MINUTE)
    chance = random.Random(7)
    for first in range(0, PAST_MINUTES, 240):
        rows = [row for ago in range(first + 1, first + 241) for row in _minute(now - ago * MINUTE, chance)]
        await store.add_figures(uuid5(NAMESPACE_URL, f"headway-demo-{first}"), rows)


def _minute(at: datetime, chance: random.Random) -> list[Row]:
    busy = 0.4 + 0.6 * (1 - abs((at.hour + at.minute / 60) - 14) / 14)
    trouble = 14 <= at.minute < 19
    rows = []
    for queue, usual in zip(QUEUES, (60, 35, 6, 2), strict=True):
        done = max(0, round(chance.gauss(usual * busy, usual * 0.12)))
        failed = sum(chance.random() < (0.12 if trouble else 0.015) for _ in range(done))
        wait, run = [
            Spread.of(chance.expovariate(1 / mean) for _ in range(done)) for mean in (0.9 if trouble else 0.05, 0.35)
        ]
        due = round(chance.expovariate(1 / (18 if trouble else 2)))
        figures = Figures(completed=done, failed=failed, retried=failed * 2, wait=wait, run=run, due=due, running=2)
        rows.append(Row(at, queue, figures))
    return rows


async def _plan(app: Headway) -> None:
    """Schedules of every sort. Those that are there stay as they are."""
    plans: list[tuple[str, Cron | Every, Call, ScheduleOptions]] = [
        (
            "shop-visitors",
            every(2),
            app.function("shop.visitors").call(),
            {"overlap": "allow", "description": "People come by and buy"},
        ),
        (
            "morning-digest",
            cron("0 6 * * MON-FRI", tz="Europe/Berlin"),
            app.function("mail.digest").call("regulars"),
            {"description": "What is new, for those who want to know at breakfast"},
        ),
        (
            "stock-digest",
            cron("*/10 * * * *"),
            app.function("mail.digest").call("stock"),
            {"description": "Stock levels for the warehouse"},
        ),
        (
            "monthly-report",
            cron("30 2 1 * *", tz="Europe/Berlin"),
            app.function("reports.monthly").call("last"),
            {"misfire": "run_all", "overlap": "wait"},
        ),
        (
            "archive-import",
            cron("15 3 * * *"),
            app.function("media.import-archive").call("/srv/legacy/orders.dat"),
            {"paused": True, "description": "Paused until somebody understands the old format"},
        ),
    ]
    there = {schedule.name for schedule in await app.aschedules()}
    for name, when, job, options in plans:
        if name not in there:
            options["tags"] = [TAG]
            await app.aschedule(name, when, job, **options)


async def _trade(app: Headway, warehouse: str) -> None:
    """Schedules that send requests. They are told anew where the warehouse is."""
    order = {"sku": "teapot", "quantity": 2, "deliver_to": "the shop"}
    send = {"kind": "http", "callback_url": f"{warehouse}/orders", "payload": order, "queue": "billing"}
    await _arrange(app, "restock", every(15), send, "Orders what is running out: an HTTP request")
    fetch = {"kind": "fetch", "url": f"{warehouse}/prices", "queue": "media"}
    await _arrange(app, "price-list", every(30), fetch, "Fetches what the warehouse asks for its goods")


TRADE = ("restock", "price-list")


async def _arrange(app: Headway, name: str, when: Every, job: dict[str, Any], description: str) -> None:
    await app.aschedule(name, when, job, replace=True, overlap="allow", description=description, tags=[TAG])


async def _submit(app: Headway) -> None:
    """Jobs that complete, fail, wait, depend on each other, and run for a while."""
    welcome, charge, thumbnails = (app.function(f"{name}") for name in _COMMON)
    calls = [welcome.options(tags=[TAG]).call(number) for number in range(25)]
    calls += [charge.options(tags=[TAG]).call(10_000 + number, 9.5 + number) for number in range(25)]
    calls += [thumbnails.options(tags=[TAG]).call(number) for number in range(4)]
    calls += [app.function("media.import-archive").call(f"/srv/legacy/part-{number}.dat") for number in range(3)]
    await app.asubmit_many(calls)
    await _chain(app)
    await welcome.options(delay=timedelta(days=1), tags=[TAG]).asubmit(4242)
    await welcome.options(hold=True, tags=[TAG]).asubmit(4711)
    try:
        await app.function("reports.monthly").options(on_conflict="reject", tags=[TAG]).asubmit("2026-10")
    except HeadwayError:
        return  # one of them is under way already, from an earlier click


_COMMON = ("mail.welcome", "billing.charge", "media.thumbnails")


async def _chain(app: Headway) -> None:
    """Three steps, each after the one before."""
    extract = await app.function("reports.extract").options(tags=[TAG]).asubmit("2026-11-15")
    report = (
        await app.function("reports.monthly")
        .options(after=[extract], on_conflict="allow", tags=[TAG])
        .asubmit("2026-11")
    )
    await app.function("mail.digest").options(after=[report], tags=[TAG]).asubmit("management")
