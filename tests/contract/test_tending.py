"""The duties that keep a store in order."""

from typing import Any
from uuid import UUID

import msgspec
import pytest
from uuid_utils.compat import uuid7

from headway.clock import FakeClock
from headway.duties.tending import Tending
from headway.model.job import Chunk
from headway.model.limits import QueueSettings, Retention
from headway.model.states import State
from headway.model.submission import Dedupe
from tests.contract.house import House, worker

DAY = 86_400.0


async def ended(house: House, end: str, **options: Any) -> UUID:
    claim = await house.running(**options)
    if end == "cancel":
        await house.cancel(claim.id)
        await house.fail(claim)
    else:
        await getattr(house, end)(claim)
    return claim.id


async def prune(house: House, limit: int = 1000) -> int:
    """One whole walk."""
    removed, after_id = 0, None
    for _ in range(100):
        step = await house.store.prune(Retention(), after_id, limit)
        removed, after_id = removed + step.removed, step.after_id
        if after_id is None:
            return removed
    raise AssertionError("the walk has no end")


@pytest.mark.parametrize(("end", "days"), [("complete", 7), ("fail", 30), ("cancel", 30)])
async def test_an_ended_job_is_kept_for_its_time(house: House, end: str, days: int) -> None:
    job_id = await ended(house, end)
    house.clock.advance(days * DAY - 1)
    assert await prune(house) == 0
    house.clock.advance(1)
    assert await prune(house) == 1
    assert await house.gone(job_id)


async def test_an_open_job_is_never_pruned(house: House) -> None:
    parent = await house.submit(queue="parents", hold=True)
    jobs = [
        await house.submit(hold=True),
        await house.submit(delay=1000 * DAY),
        await house.submit(after=(parent,)),
        (await house.running(queue="running")).id,
    ]
    house.clock.advance(400 * DAY)
    assert await prune(house) == 0
    assert await house.states(*jobs) == ["creating", "scheduled", "blocked", "running"]


async def test_a_queue_may_keep_its_jobs_for_another_time(house: House) -> None:
    await house.store.set_queue(QueueSettings(name="short", keep_completed=60, keep_failed=120))
    await house.store.set_queue(QueueSettings(name="long", keep_completed=90 * DAY))
    completed, failed = await ended(house, "complete", queue="short"), await ended(house, "fail", queue="short")
    kept, normal = await ended(house, "complete", queue="long"), await ended(house, "complete")
    house.clock.advance(60)
    await prune(house)
    assert (await house.gone(completed), await house.gone(failed)) == (True, False)
    house.clock.advance(60)
    await prune(house)
    assert await house.gone(failed)
    house.clock.advance(30 * DAY)
    await prune(house)
    assert (await house.gone(kept), await house.gone(normal)) == (False, True)


async def test_a_job_may_be_kept_for_a_time_of_its_own(house: House) -> None:
    short, long = await ended(house, "complete", retain=10.0), await ended(house, "complete", retain=100 * DAY)
    house.clock.advance(10)
    await prune(house)
    assert (await house.gone(short), await house.gone(long)) == (True, False)
    house.clock.advance(99 * DAY)
    await prune(house)
    assert not await house.gone(long)


async def test_pruning_walks_in_steps_past_jobs_that_stay(house: House) -> None:
    for number in range(10):
        await ended(house, "complete", **({"retain": 100 * DAY} if number % 2 else {}))
    house.clock.advance(8 * DAY)
    assert await prune(house, limit=3) == 5
    assert await prune(house, limit=3) == 0


async def test_a_pruned_job_takes_everything_along(house: House) -> None:
    claim = await house.running("fetch", dedupe=Dedupe("a", 100 * DAY))
    await house.append(claim, [Chunk(seq=0, stream="log", data=b"x")])
    await house.complete(claim, result=b"x" * 300_000)
    house.clock.advance(8 * DAY)
    await prune(house)
    assert await house.store.result(claim.id) is None
    assert await house.store.chunks(claim.id, 1) == []
    assert await house.store.chunks(claim.id, 0, stream="result") == []
    assert await house.store.history(claim.id) == []
    assert not (await house.accept(house.job("fetch", dedupe=Dedupe("a")))).deduplicated


async def test_a_duty_has_one_holder_at_a_time(house: House) -> None:
    first, second = worker().id, worker().id
    assert await house.store.take_duty("prune", first, 60)
    assert not await house.store.take_duty("prune", second, 60)
    assert await house.store.take_duty("vacuum", second, 60)
    house.clock.advance(59)
    assert await house.store.take_duty("prune", first, 60)
    house.clock.advance(59)
    assert not await house.store.take_duty("prune", second, 60)
    house.clock.advance(1)
    assert await house.store.take_duty("prune", second, 60)
    assert not await house.store.take_duty("prune", first, 60)


async def test_workers_are_seen_while_they_renew_and_forgotten_afterwards(house: House) -> None:
    await house.renew()
    other = worker("other")
    await house.store.renew(other, 30, [], held=[])
    house.clock.advance(100)
    await house.store.renew(msgspec.structs.replace(other, slots=3), 30, [], held=[])
    seen = {info.name: info for info in await house.store.workers()}
    assert (seen["other"].seen_at, seen["other"].started_at) == (house.now, house.after(-100))
    assert (seen["other"].slots, seen["other"].queues, seen["other"].id) == (3, ("default",), other.id)
    assert list(await house.store.bury(99)) == ["worker"]
    assert [info.name for info in await house.store.workers()] == ["other"]
    await house.store.leave(other.id)
    assert await house.store.workers() == []


async def test_the_time_of_the_store_is_that_of_its_clock(house: House) -> None:
    house.clock.advance(123.456)
    assert await house.store.now() == house.now


@pytest.mark.parametrize(("ended", "crowd", "taken"), [(19_999, 1, False), (20_000, 1, True), (200, 100, True)])
async def test_vacuum_goes_by_what_all_workers_have_ended(
    house: House, clock: FakeClock, ended: int, crowd: int, taken: bool
) -> None:
    tending = Tending(
        uuid7(),
        clock,
        retention=Retention(),
        ended=lambda: ended,
        on_rescued=lambda rescued: None,
        crowd=lambda: crowd,
    )
    await tending.vacuum(house.store)
    assert await house.store.take_duty("vacuum", uuid7(), 60) is not taken


async def test_vacuum_does_no_harm(house: House) -> None:
    job_id = await house.submit()
    await house.store.vacuum()
    assert await house.state(job_id) is State.SCHEDULED


async def test_listeners_hear_when_jobs_become_claimable(house: House) -> None:
    heard: list[str] = []
    await house.store.listen(heard.append)
    await house.submit(queue="mail")
    # Whoever asks a question afterwards over the same connection has heard what came before.
    await house.store.peek(["mail"])
    assert "mail" in heard
