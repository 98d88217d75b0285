"""A place for output that is slow, or fails: an end is recorded behind the output, and in spite of the place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

import headway
from headway import Headway, serve
from headway.model.errors import OutputUnavailable
from headway.model.job import Chunk, Claim
from headway.output.stored import StoredOutputs
from headway.store.contract import Store
from headway.worker import shipping
from tests.flow.waiting import until
from tests.logs import captured

BEHIND = 0.3
"""Seconds for which output is on its way after its job has ended: an end that doesn't wait overtakes it."""


class Place(StoredOutputs):
    """The store, by detours."""

    def __init__(self, store: Store, before: Callable[[], object]) -> None:
        super().__init__(store)
        self._before = before

    async def append(self, claim: Claim, chunks: Sequence[Chunk]) -> bool:
        waiting = self._before()
        if isinstance(waiting, asyncio.Event):
            await waiting.wait()
        return await super().append(claim, chunks)


def put_before(monkeypatch: pytest.MonkeyPatch, before: Callable[[], object]) -> None:
    monkeypatch.setattr(serve, "make_outputs", lambda url, store: Place(store, before))


async def test_an_end_waits_for_output_that_is_still_on_its_way(app: Headway, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    on_its_way, way, go = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def hold() -> asyncio.Event:
        on_its_way.set()
        return way

    def let_pass() -> None:
        told.append("stored")
        way.set()

    @app.job(name="speaks")
    async def speak() -> None:
        headway.current().log.info("hello")
        await go.wait()
        asyncio.get_running_loop().call_later(BEHIND, let_pass)

    @app.on_success
    def ended(job: object) -> None:
        told.append("ended")

    put_before(monkeypatch, hold)
    async with app.worker():
        job = await speak.asubmit()
        await asyncio.wait_for(on_its_way.wait(), 60)
        go.set()
        await app.await_ended(job.id, 60)
        await until(lambda: "ended" in told, "the hook to be called")
    assert told == ["stored", "ended"]
    assert b"hello" in await app.aoutput(job.id)


@pytest.mark.parametrize("error", [OutputUnavailable("the bucket is away"), OSError(28, "No space left on device")])
async def test_a_place_that_fails_is_tried_again(
    sqlite_app: Headway, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    failures = [error]

    def fail_once() -> None:
        if failures:
            raise failures.pop()

    @sqlite_app.job(name="speaks")
    async def speak() -> None:
        headway.current().log.info("hello")

    put_before(monkeypatch, fail_once)
    async with sqlite_app.worker():
        job = await speak.asubmit()
        assert (await sqlite_app.await_ended(job.id, 60)).state == "completed"
    assert not failures
    assert b"hello" in await sqlite_app.aoutput(job.id)


@pytest.mark.parametrize("error", [OutputUnavailable("the bucket is away"), ValueError("nobody has thought of this")])
async def test_a_place_that_stays_away_costs_the_output_and_not_the_end(
    sqlite_app: Headway, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail() -> None:
        raise error

    @sqlite_app.job(name="speaks")
    async def speak() -> str:
        headway.current().log.info("hello")
        return "done"

    monkeypatch.setattr(shipping, "OUTPUT_PATIENCE", 0.0)
    put_before(monkeypatch, fail)
    with captured() as logs:
        async with sqlite_app.worker():
            job = await speak.asubmit()
            assert (await sqlite_app.await_ended(job.id, 60)).result == "done"
    assert "worker.output_lost" in {line["event"] for line in logs}
