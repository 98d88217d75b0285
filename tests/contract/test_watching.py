"""What becomes of jobs is told to whoever watches, whoever changed them: and only what was committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from headway.clock import SystemClock, deadline
from headway.model.events import Event, Transition
from headway.model.limits import Limit
from headway.model.states import State
from headway.model.submission import OnConflict, OnParentFailure
from headway.store.contract import Store
from headway.store.scripts.news import WATCHED
from tests.contract.house import TTL, House
from tests.logs import captured


class Witness:
    """Hears everything, and can wait for it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.missed = 0
        self._more = asyncio.Event()

    def heard(self, events: Sequence[Event]) -> None:
        self.events += events
        self.missed += not events
        self._more.set()

    async def misses_some(self) -> None:
        while not self.missed:
            self._more.clear()
            await self._more.wait()

    def of(self, *job_ids: UUID) -> list[str]:
        return [event.event for event in self.events if event.job_id in job_ids]

    async def hears(self, job_id: UUID, *told: str) -> None:
        """Exactly these events of the job, in this order, sooner or later."""
        try:
            async with deadline(SystemClock(), 30):
                while len(self.of(job_id)) < len(told):
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            pass
        assert self.of(job_id) == [f"job.{word}" for word in told]


@asynccontextmanager
async def watching(store: Store, **options: Any) -> AsyncIterator[Witness]:
    witness = Witness()
    stop = await store.watch(witness.heard, **options)
    try:
        yield witness
    finally:
        stop()


async def test_what_people_do_to_jobs_is_told(house: House) -> None:
    async with watching(house.store) as witness:
        job = await house.submit()
        await house.cancel(job)
        await house.retry(job)
        await house.delete(job)
        await witness.hears(job, "scheduled", "cancelled", "scheduled", "cancelled", "deleted")
        event = witness.events[0]
    assert (event.kind, event.name, event.queue, event.state) == ("call", "mail", "default", State.SCHEDULED)
    assert (event.outcome, event.attempt) == (None, 0)
    assert witness.events[1].outcome == "cancelled"


async def test_a_job_on_hold_and_the_end_of_its_hold_are_told(house: House) -> None:
    async with watching(house.store) as witness:
        job = await house.submit(hold=True)
        await house.schedule(job)
        await witness.hears(job, "creating", "scheduled")


async def test_a_running_job_that_is_to_stop_is_told(house: House) -> None:
    claim = await house.running()
    async with watching(house.store) as witness:
        await house.cancel(claim.id)
        await witness.hears(claim.id, "cancelling")
        assert witness.events[-1].attempt == 1


@pytest.mark.parametrize(
    ("policy", "told"), [(OnParentFailure.CANCEL, "cancelled"), (OnParentFailure.RUN, "scheduled")]
)
async def test_what_follows_from_an_end_is_told_and_leaves_a_line(
    house: House, policy: OnParentFailure, told: str
) -> None:
    parent = await house.running()
    child = await house.submit("child", after=(parent.id,), on_parent_failure=policy, correlation_id="order 1")
    grandchild = await house.submit("grandchild", after=(child,))
    async with watching(house.store) as witness:
        with captured() as lines:
            await house.fail(parent)
            await witness.hears(child, told)
            if told == "cancelled":
                await witness.hears(grandchild, "cancelled")
    changed = [line for line in lines if line["event"] == "job.state_changed" and line["job_id"] == str(child)]
    assert [(line["from"], line["to"], line["correlation_id"]) for line in changed] == [("blocked", told, "order 1")]


async def test_a_job_taken_back_from_a_lost_worker_is_told(house: House) -> None:
    claim = await house.running()
    house.clock.advance(TTL + 1)
    async with watching(house.store) as witness:
        with captured() as lines:
            await house.store.rescue()
            await witness.hears(claim.id, "scheduled")
    assert witness.events[-1].outcome == "lost"
    [line] = [line for line in lines if line["event"] == "job.state_changed"]
    assert (line["component"], line["from"], line["to"]) == ("duties", "running", "scheduled")


async def test_an_expired_job_is_told(house: House) -> None:
    job = await house.submit(expires_in=10)
    async with watching(house.store) as witness:
        with captured() as lines:
            house.clock.advance(11)
            await house.store.expire()
            await witness.hears(job, "cancelled")
    assert witness.events[-1].outcome == "expired"
    [line] = [line for line in lines if line["event"] == "job.state_changed"]
    assert (line["component"], line["from"], line["to"]) == ("duties", "scheduled", "cancelled")


async def test_a_job_whose_schedule_got_lost_is_told(house: House) -> None:
    job = await house.submit(staged=True)
    async with watching(house.store) as witness:
        house.clock.advance(6)
        assert await house.store.take_up() == [job]
        await witness.hears(job, "scheduled")


async def test_jobs_blocked_at_a_limit_and_promoted_are_told(house: House) -> None:
    await house.store.set_key_limit("vip", Limit(max_running=1))
    first, second = [await house.submit(key="vip") for _ in range(2)]
    async with watching(house.store) as witness:
        [claim] = await house.claim(2)
        assert claim.id == first
        await witness.hears(second, "blocked")
        await house.complete(claim)
        await witness.hears(second, "blocked", "scheduled")


async def test_a_replaced_job_is_told(house: House) -> None:
    old = await house.submit(key="k")
    async with watching(house.store) as witness:
        new = await house.submit(key="k", on_conflict=OnConflict.REPLACE)
        await witness.hears(old, "cancelled")
        await witness.hears(new, "scheduled")


async def test_news_of_another_process_comes_too(shared: House) -> None:
    other = await shared.second()
    async with watching(shared.store) as witness:
        job = await other.submit()
        await other.cancel(job)
        await witness.hears(job, "scheduled", "cancelled")
        many = [other.job(f"{number} {'ä' * 60}") for number in range(100)]
        await other.store.submit(many)
        for each in many:
            await witness.hears(each.id, "scheduled")


async def test_workers_tell_what_they_do_when_everything_is_watched(shared: House) -> None:
    other = await shared.second()
    rung = asyncio.Event()
    stop = await other.store.listen(lambda channel: rung.set() if channel == WATCHED else None)
    job_id = shared.new_id()
    ran = Transition(job_id=job_id, kind="call", name="mail", queue="default", state=State.RUNNING, attempt=1)
    async with watching(shared.store) as witness, deadline(SystemClock(), 30):
        await rung.wait()
        await other.store.tell([ran])
        await witness.hears(job_id, "running")
        await other.store.tell([])
        await witness.misses_some()
    stop()


async def test_all_who_listen_are_rung_each_until_it_stops(house: House) -> None:
    one, other = asyncio.Queue[str](), asyncio.Queue[str]()

    async def rung(who: asyncio.Queue[str]) -> None:
        while await who.get() != "default":
            pass

    stop_one, stop_other = await house.store.listen(one.put_nowait), await house.store.listen(other.put_nowait)
    async with deadline(SystemClock(), 30):
        await house.submit()
        await rung(one)
        await rung(other)
        stop_one()
        await house.submit()
        await rung(other)
    assert "default" not in [one.get_nowait() for _ in range(one.qsize())]
    stop_other()


async def test_a_repeat_and_a_refusal_are_not_told(house: House) -> None:
    job = house.job()
    async with watching(house.store) as witness:
        await house.accept(job)
        await house.accept(job)
        refused = house.job(key="mail", on_conflict=OnConflict.REJECT)
        await house.refuse(refused)
        last = await house.submit()
        await witness.hears(last, "scheduled")
        assert witness.of(job.id, refused.id) == ["job.scheduled"]


async def test_nothing_is_told_any_more_once_the_watch_has_ended(house: House) -> None:
    async with watching(house.store) as witness:
        pass
    job = await house.submit()
    async with watching(house.store) as another:
        later = await house.submit()
        await another.hears(later, "scheduled")
    assert witness.of(job, later) == []
