"""How fast workers drain a queue when RabbitMQ wakes them, against the store's own rings."""

from __future__ import annotations

import asyncio

import pytest

from headway.bench.dispatch import dispatch
from headway.bench.report import Line
from headway.bench.sites import PostgresSite
from headway.bench.sizes import NORMAL
from headway.bench.stage import Stage
from tests.servers import PostgresServer


async def measured(url: str) -> list[Line]:
    site = PostgresSite(url)
    try:
        return await dispatch(Stage(site, NORMAL, lambda _: None))
    finally:
        await site.close()


@pytest.mark.prove
def test_rabbitmq_dispatch_is_not_much_slower_than_the_stores_own() -> None:
    with PostgresServer() as postgres:
        [line] = asyncio.run(measured(postgres.admin_url))
    print(f"\nstore rings {line.ceiling:,.0f} jobs/s, RabbitMQ {line.value:,.0f}: {line.ratio:.0%}")
    assert [target.reached for target in line.targets] == [True]
