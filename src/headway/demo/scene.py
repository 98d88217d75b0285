"""A believable shop, for those who want to see Headway at work before their own jobs are there: `headway up --demo`,
and the button on the empty page."""

from __future__ import annotations

import logging
import random
from typing import Any

from headway.app import Headway
from headway.clock import SystemClock, sleep
from headway.executors.contract import current
from headway.model.retry import Retry

QUEUES = ("billing", "mail", "media", "reports")

clock = SystemClock()
shop = logging.getLogger("headway.job.shop")
"""What is logged here is the output of the jobs."""


class PaymentDeclined(Exception):
    """The bank said no."""


class LegacyFormatError(ValueError):
    """A file of the old system that nobody understands any more."""


def furnish(app: Headway) -> None:
    """Give the app the shop's functions, once."""
    if "shop.visitors" in app.registry:
        return
    _mail(app)
    _billing(app)
    _media(app)
    _reports(app)
    _shop(app)


def _mail(app: Headway) -> None:
    @app.job(name="mail.welcome", queue="mail", timeout=30)
    async def welcome(user: int, language: str = "en") -> dict[str, Any]:
        shop.info("\x1b[36mrendering\x1b[0m welcome for user %s in %s", user, language)
        await sleep(clock, random.uniform(0.1, 0.8))
        shop.info("\x1b[32msent\x1b[0m in one piece")
        return {"user": user, "language": language, "message_id": f"{random.getrandbits(40):010x}"}

    @app.job(name="mail.digest", queue="mail", retry=Retry(max_attempts=4, wait=2.0))
    async def digest(segment: str) -> int:
        await sleep(clock, random.uniform(0.2, 1.0))
        if random.random() < 0.35:
            raise ConnectionError("mail relay closed the connection (421 try again later)")
        return random.randint(40, 400)


def _billing(app: Headway) -> None:
    @app.job(name="billing.charge", queue="billing", priority=10, retry=Retry(max_attempts=3, wait=1.0))
    async def charge(order: int, amount: float) -> dict[str, Any]:
        await sleep(clock, random.uniform(0.1, 0.5))
        if random.random() < 0.15:
            raise PaymentDeclined(f"order {order}: the issuer declined {amount:.2f} EUR (code 51)")
        return {"order": order, "amount": amount, "authorisation": f"{random.getrandbits(24):06x}"}


def _media(app: Headway) -> None:
    @app.job(name="media.thumbnails", queue="media")
    async def thumbnails(product: int, sizes: int = 12) -> int:
        for done in range(sizes):
            current().progress(done, sizes, f"size {done + 1} of {sizes}")
            shop.info("resized product-%s to %s px", product, 64 * (done + 1))
            await sleep(clock, random.uniform(0.4, 1.2))
        return sizes

    @app.job(name="media.import-archive", queue="media", retry=Retry(max_attempts=2, wait=3.0))
    def import_archive(path: str) -> None:
        shop.warning("\x1b[33mlegacy header\x1b[0m in %s", path)
        raise LegacyFormatError(f"{path}: unknown record type 0x1f at offset 8192")


def _reports(app: Headway) -> None:
    @app.job(name="reports.extract", queue="reports")
    async def extract(day: str) -> int:
        await sleep(clock, 4)
        return random.randint(10_000, 90_000)

    @app.job(name="reports.monthly", queue="reports", timeout=600)
    async def monthly(month: str) -> dict[str, Any]:
        steps = ("reading orders", "joining customers", "adding up", "drawing charts", "writing the file")
        for done, text in enumerate(steps):
            current().progress(done, len(steps), text)
            shop.info("\x1b[1m%s\x1b[0m …", text)
            await sleep(clock, 6)
        return {"month": month, "revenue": random.randint(200_000, 400_000), "pages": 14}


def _shop(app: Headway) -> None:
    @app.job(name="shop.visitors")
    async def visitors() -> int:
        number = random.randint(1, 4)
        for _ in range(number):
            await _buy(app)
        return number


async def _buy(app: Headway) -> None:
    order = random.randint(10_000, 99_999)
    await app.function("billing.charge").asubmit(order, round(random.uniform(5, 240), 2))
    if random.random() < 0.5:
        await app.function("mail.welcome").asubmit(order, random.choice(("en", "de", "fr")))
    if random.random() < 0.1:
        await app.function("media.thumbnails").asubmit(order)
