"""Submitting, and what a plain submission costs."""

from __future__ import annotations

from headway.contracts.stores.submit import *  # noqa: F403 - tests are found by their names
from headway.store.statements import Query, Script
from tests.contract.house import House


def count_statements(house: House, monkeypatch: object) -> list[str]:
    """The names of all statements that the store runs from now on."""
    names: list[str] = []
    driver = house.store._driver
    run = driver.run

    def noted(script: Script[object]) -> Script[object]:
        rows = None
        while True:
            try:
                query: Query = script.send(rows)  # type: ignore[arg-type]
            except StopIteration as stop:
                return stop.value
            names.append(query.name)
            rows = yield query

    async def noting(script, lane, **options):  # type: ignore[no-untyped-def]
        return await run(lambda: noted(script()), lane, **options)

    monkeypatch.setattr(driver, "run", noting)  # type: ignore[attr-defined]
    return names


async def test_a_plain_submit_is_one_statement(house: House, monkeypatch: object) -> None:
    names = count_statements(house, monkeypatch)
    await house.submit()
    await house.store.submit([house.job(payload='{"n": 1}') for _ in range(100)])
    assert names == ["insert_jobs", "insert_jobs"]
